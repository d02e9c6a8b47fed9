import { expect, test } from 'vitest';
import { chunkRoomOf } from '../chunks/disk/disk-reserve.ts';
import { alarmsOfNode } from './node-alarms.ts';

const GiB = 1024 ** 3;
const TOTAL = 100 * GiB;
const roomWith = (diskFreeBytes: number) => chunkRoomOf({ diskFreeBytes, diskTotalBytes: TOTAL });
const WELL = { room: roomWith(50 * GiB), damagedCount: 0, missingCount: 0, clockJumpMs: 0, loopHeldMs: 0 };

test('a single node that is well has no alarm', () => {
  expect(alarmsOfNode(WELL)).toEqual([]);
});

test('a disk that is full, or nearly so, is an alarm, by the same bounds as a disk of a cluster', () => {
  const { fullBelowBytes, scarceBelowBytes } = WELL.room;
  expect(alarmsOfNode({ ...WELL, room: roomWith(fullBelowBytes - 1) })).toEqual([
    expect.stringMatching(/^the disk of the data folder is full: it has .* and takes no new chunks$/),
  ]);
  expect(alarmsOfNode({ ...WELL, room: roomWith(scarceBelowBytes - 1) })).toEqual([
    expect.stringMatching(/^the disk of the data folder is nearly full: .* are left$/),
  ]);
  expect(alarmsOfNode({ ...WELL, room: roomWith(scarceBelowBytes) })).toEqual([]);
});

test('damaged and missing chunks, and a jump of the clock, are alarms that say what to do', () => {
  expect(alarmsOfNode({ ...WELL, damagedCount: 2, missingCount: 1, clockJumpMs: 8 * 86_400_000 })).toEqual([
    '2 chunks are damaged, 1 chunks are missing: `holdfast fsck --read-data` names the objects',
    expect.stringMatching(
      /^the clock has jumped by 8 d.*: `holdfast clock accept` says that the time is right$/,
    ),
  ]);
});

test('an event loop that stood still is an alarm', () => {
  expect(alarmsOfNode({ ...WELL, loopHeldMs: 2100 })).toEqual([
    expect.stringMatching(/^nothing was served for 2.* within the last 5 min.*event-loop-held/),
  ]);
});
