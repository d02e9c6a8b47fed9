// What is wrong with a single node, in sentences: what `holdfast status` shows as alarms. Pure. Those of a cluster are
// admin/shard-alarms.ts and admin/chunk-alarms.ts.

import type { Room } from '../chunks/disk/disk-reserve.ts';
import { formatCount, formatDuration } from '../cli/format.ts';
import { LIMITS } from '../types/limits.ts';
import { alarmsOfRoom } from './room-report.ts';

export interface NodeState {
  room: Room;
  /** Chunks of live data that are known to be damaged, and to be missing. */
  damagedCount: number;
  missingCount: number;
  /** How far the clock has jumped, waiting for the operator's word; else 0. */
  clockJumpMs: number;
  /** The longest time that the event loop stood still, lately; 0 when it was not long. */
  loopHeldMs: number;
}

/** Empty: nothing is wrong. */
export function alarmsOfNode({
  room,
  damagedCount,
  missingCount,
  clockJumpMs,
  loopHeldMs,
}: NodeState): string[] {
  const lost = [
    ...(damagedCount > 0 ? [`${formatCount(damagedCount)} chunks are damaged`] : []),
    ...(missingCount > 0 ? [`${formatCount(missingCount)} chunks are missing`] : []),
  ];
  const jump = `the clock has jumped by ${formatDuration(clockJumpMs)}: \`holdfast clock accept\` says that the time is right`;
  const held = `nothing was served for ${formatDuration(loopHeldMs)} within the last ${formatDuration(LIMITS.loopHeldShownMs)}: the machine has too much to do, or one piece of work kept the server (event-loop-held in the log)`;
  return [
    ...alarmsOfRoom('the disk of the data folder', room, 'new chunks'),
    ...(lost.length > 0 ? [`${lost.join(', ')}: \`holdfast fsck --read-data\` names the objects`] : []),
    ...(clockJumpMs === 0 ? [] : [jump]),
    ...(loopHeldMs === 0 ? [] : [held]),
  ];
}
