// What is wrong with chunks and disks, in sentences. Pure.

import { areEnough, neededCopies, nodeCountOf } from '../chunks/copies/write-needs.ts';
import { chunkRoomOf, isFull } from '../chunks/disk/disk-reserve.ts';
import { countOwnerNodes, isMissed } from '../chunks/placement/see-disks.ts';
import { formatCount } from '../cli/format.ts';
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { Member } from '../ports/members.ts';
import type { NodeId } from '../ports/replication.ts';
import {
  type ChunkStatus,
  type DiskStatus,
  type PlacementStatus,
  type RepairStatus,
  unservedDisks,
} from './chunk-status.ts';
import { short } from './operator-tools.ts';
import { alarmsOfRoom } from './room-report.ts';

/** A change of owners that takes longer does not go on, or its disks are too slow. */
export const PENDING_LONG_MS = 6 * 3600 * 1000;

/** `members`: who is there, as etcd says just now; undefined: it does not. */
export function alarmsOfChunks(
  { placement, repair, disks }: ChunkStatus,
  {
    identity,
    nowMs,
    members,
  }: { identity: ClusterIdentity; nowMs: number; members: readonly Member[] | undefined },
): string[] {
  return [
    ...alarmsOfRepair(repair, identity),
    ...(placement === undefined ? [] : alarmsOfPlacement(placement, { nowMs, identity })),
    ...(members ? alarmsOfDisks(disks, identity) : []),
    ...(members && placement ? alarmsOfWriting(disks, placement) : []),
    ...alarmsOfUnserved(unservedDisks(members ?? []), disks),
    ...disks.flatMap(alarmsOfUse),
  ];
}

function alarmsOfRepair({ debts }: RepairStatus, { chunkCopies }: ClusterIdentity): string[] {
  const alarms: string[] = [];
  for (const { copies, blobCount, chunkCount } of debts) {
    const what = `${formatCount(chunkCount)} chunks of ${formatCount(blobCount)} blobs`;
    if (copies === 0)
      alarms.push(`of ${what} no intact copy is found: \`holdfast fsck --read-data\` names them`);
    else if (copies === 1 && chunkCopies > 1) alarms.push(`of ${what} one copy may be left, and no more`);
  }
  return alarms;
}

function alarmsOfPlacement(
  { pendingCount, audits, auditFrom }: PlacementStatus,
  { nowMs, identity: { shardCount } }: { nowMs: number; identity: ClusterIdentity },
): string[] {
  const { beganAtMs, doneCount, unansweredCount } = audits;
  if (pendingCount === 0) {
    // A disk that has joined the owners has replaced nobody: that it lacks everything is known by the audit alone.
    const leftCount = shardCount - doneCount - unansweredCount;
    if (leftCount <= 0) return [];
    return [
      `${leftCount} of ${shardCount} shards have not looked yet whether chunks have the copies that placement map ${auditFrom} wants`,
    ];
  }
  if (beganAtMs === undefined || nowMs - beganAtMs < PENDING_LONG_MS) return [];
  const hours = Math.floor((nowMs - beganAtMs) / 3_600_000);
  return [
    `the placement map of version ${auditFrom} is not carried out after ${hours} h: ${formatCount(pendingCount)} partitions still have former owners`,
  ];
}

/** Disks that chunks are placed on, and that nobody serves. */
function alarmsOfDisks(disks: readonly DiskStatus[], { chunkCopies }: ClusterIdentity): string[] {
  const nodeCount = countOwnerNodes(disks);
  const few =
    nodeCount > 0 && nodeCount < chunkCopies
      ? [`chunks lie on ${nodeCount} storage nodes, and not on ${chunkCopies}`]
      : [];
  return [
    ...few,
    ...disks.flatMap((disk) => {
      const { state, leave, reason } = disk;
      const name = nameOf(disk);
      if (!isMissed(disk)) return [];
      if (state === 'silent') return [`${name} does not answer`];
      if (state !== 'away') return [];
      const why = reason === undefined ? '' : ` (${reason})`;
      return [`${name} is away${why}${leave === 'absent' ? ': its data is being copied to others' : ''}`];
    }),
  ];
}

/** Too few disks, or nodes, that take new chunks for any to be acknowledged (R35). */
function alarmsOfWriting(disks: readonly DiskStatus[], { copies }: PlacementStatus): string[] {
  const placed = disks.filter(({ state }) => state !== 'new' && state !== 'removed');
  if (placed.length === 0) return ['new chunks are refused: there is no disk to place them on'];
  const needed = neededCopies(placed, copies);
  const taking = placed.filter((disk) => whyNotWritten(disk) === undefined);
  if (areEnough(taking, needed)) return [];
  const nodeCount = nodeCountOf(taking);
  const lack =
    nodeCount < needed.nodes
      ? `of ${needed.nodes} storage nodes that they need ${nodeCount} takes them`
      : `of ${needed.copies} disks that they need ${taking.length} takes them`;
  const kept = new Map<NodeId, Set<string>>();
  for (const disk of placed) {
    const why = whyNotWritten(disk);
    if (why !== undefined) kept.set(disk.nodeId, (kept.get(disk.nodeId) ?? new Set()).add(why));
  }
  const reasons = [...kept].map(([nodeId, whys]) => `${short(nodeId)} ${[...whys].join(' and ')}`);
  return [`new chunks are refused: ${lack} (${reasons.join(', ')})`];
}

/** Why a disk of the map takes no new chunks. */
function whyNotWritten({ state, usage }: DiskStatus): string | undefined {
  if (state === 'away') return 'is away';
  if (usage === undefined) return 'does not answer';
  return isFull(usage) ? 'is full' : undefined;
}

/** Disks that their nodes are to serve and do not, unless that is said already. */
function alarmsOfUnserved(
  unserved: ReturnType<typeof unservedDisks>,
  disks: readonly DiskStatus[],
): string[] {
  const told = new Set(
    disks.filter((disk) => disk.state === 'away' && isMissed(disk)).map(({ diskId }) => diskId),
  );
  return unserved
    .filter(({ diskId }) => diskId === undefined || !told.has(diskId))
    .map(({ nodeId, name, reason }) => `storage node ${short(nodeId)} does not serve ${name}: ${reason}`);
}

function alarmsOfUse(disk: DiskStatus): string[] {
  const { usage } = disk;
  if (usage === undefined) return [];
  const { asideCount = 0, unreadCount = 0 } = usage;
  const alarms = alarmsOfRoom(nameOf(disk), chunkRoomOf(usage), 'new chunks');
  if (asideCount > 0) alarms.push(`${nameOf(disk)} has ${formatCount(asideCount)} damaged copies set aside`);
  if (unreadCount > 0) alarms.push(`${nameOf(disk)} cannot read ${formatCount(unreadCount)} of its chunks`);
  return alarms;
}

const nameOf = ({ diskId, nodeId }: DiskStatus) => `disk ${short(diskId)} of storage node ${short(nodeId)}`;
