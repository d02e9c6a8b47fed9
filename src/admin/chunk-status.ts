// What `holdfast cluster status` says of chunks: the placement map and how far shards have audited it, copies that are owed,
// disks with their use. Asked of the primaries of shards and of the nodes of disks; the map comes from etcd.

import { type SeenDisk, seeDisks } from '../chunks/placement/see-disks.ts';
import type { Config } from '../config/schema.ts';
import { createChunkClient } from '../platform/chunk-http/client.ts';
import { openRpcCredentials } from '../platform/rpc/credentials.ts';
import { systemClock } from '../platform/system-clock.ts';
import type { ChunkPort } from '../ports/chunks.ts';
import type { Member, UnservedDisk } from '../ports/members.ts';
import type { ResultOf } from '../ports/metadata.ts';
import type { DiskId, DiskLeave, PlacementMap } from '../ports/placement.ts';
import type { NodeId } from '../ports/replication.ts';
import { COPIES_UNKNOWN } from '../types/debts.ts';
import type { AuditRecord } from '../types/records/rows.ts';
import type { AskPrimary } from './ask-primary.ts';
import { securityOf } from './join-cluster.ts';
import { chunkCredentials } from './open-chunks.ts';
import { SILENT } from './operator-tools.ts';

/** Between the two counts by which the rate of repair is known. */
const RATE_OVER_MS = 2000;

export interface PlacementStatus {
  version: number;
  /** Owners that each partition is to have. */
  copies: number;
  partitionCount: number;
  /** With former owners that may have chunks alone: a change that is not done. */
  pendingCount: number;
  /** The version of the last change of owners. */
  auditFrom: number;
  audits: AuditsStatus;
}

/** How far the shards have looked at where their chunks lie (R39). */
export interface AuditsStatus {
  /** By the map of which version all shards have ended one; absent: some have ended none, or do not answer. */
  leastVersion?: number;
  /** Shards that have ended one since the last change of owners. */
  doneCount: number;
  underWayCount: number;
  unansweredCount: number;
  /** When the first one since the last change of owners began, shard time ms. */
  beganAtMs?: number;
}

/** Copies that are owed (R36). */
export interface RepairStatus {
  /** By the intact copies of the chunk that has fewest; without `copies`: nobody has looked yet. */
  debts: { copies?: number; blobCount: number; chunkCount: number }[];
  chunkCount: number;
  /** Fewer of them each second, just now; negative: more. Absent: none are owed. */
  chunksPerSecond?: number;
  /** At that rate. */
  leftMs?: number;
  /** Shards that do not say. */
  unansweredCount: number;
}

export interface DiskStatus {
  diskId: DiskId;
  /** Who serves it, or did last. */
  nodeId: NodeId;
  address: string;
  zone: string;
  capacityBytes: number;
  /** `silent`: its node is there and does not answer for it. */
  state: SeenDisk['state'] | 'silent';
  leave?: DiskLeave;
  /**
   * Partitions that it owns, and that it owned before a change that is not done: with none of both it may be
   * removed, once no copies are owed.
   */
  ownedCount: number;
  pendingCount: number;
  /** Why its node does not serve it, in the node's words. Absent: it does, or does not say. */
  reason?: string;
  /** Absent: it does not answer. */
  usage?: Awaited<ReturnType<ChunkPort['usage']>>;
}

export interface ChunkStatus {
  /** Absent: there is no map yet. */
  placement?: PlacementStatus;
  repair: RepairStatus;
  disks: DiskStatus[];
}

export async function readChunkStatus(parts: {
  config: Config;
  clusterId: string;
  shardCount: number;
  map: PlacementMap | undefined;
  members: readonly Member[];
  /** `isKnown`: what is said of members is of an earlier time. */
  ask: AskPrimary;
  answerMaxMs: number;
}): Promise<ChunkStatus> {
  const { map, shardCount, ask } = parts;
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const [audits, repair, disks] = await Promise.all([
    Promise.all(shards.map((shard) => ask(shard, 'get-audit', {}))),
    readRepair(shards, ask),
    readDisks(parts),
  ]);
  return {
    ...(map && { placement: placementStatus(map, describeAudits(audits, map.auditFrom)) }),
    ...{ repair, disks },
  };
}

function placementStatus(map: PlacementMap, audits: AuditsStatus): PlacementStatus {
  const { version, copies, owners, previous, auditFrom } = map;
  const pendingCount = previous.filter(({ length }) => length > 0).length;
  return { ...{ version, copies, partitionCount: owners.length, pendingCount, auditFrom }, audits };
}

export function describeAudits(
  answers: readonly ({ audit: AuditRecord | null } | undefined)[],
  auditFrom: number,
): AuditsStatus {
  const records = answers.flatMap((answer) => (answer === undefined ? [] : [answer.audit]));
  const ended = records.map((audit) => audit?.ended?.mapVersion);
  const least = ended.reduce(
    (min: number | undefined, version) =>
      min === undefined || version === undefined ? undefined : Math.min(min, version),
    Number.POSITIVE_INFINITY,
  );
  const begins = records.flatMap((audit) => {
    if (audit === null) return [];
    const { ended: last } = audit;
    return [audit, ...(last ? [last] : [])]
      .filter(({ mapVersion }) => mapVersion >= auditFrom)
      .map(({ beganAtMs }) => beganAtMs);
  });
  const isKnown = records.length === answers.length && records.length > 0;
  return {
    ...(isKnown && least !== undefined && { leastVersion: least }),
    doneCount: ended.filter((version) => version !== undefined && version >= auditFrom).length,
    underWayCount: records.filter((audit) => audit?.isUnderWay === true).length,
    unansweredCount: answers.length - records.length,
    ...(begins.length > 0 && { beganAtMs: Math.min(...begins) }),
  };
}

async function readRepair(shards: readonly number[], ask: AskPrimary): Promise<RepairStatus> {
  const first = await countDebts(shards, ask);
  if (first.chunkCount === 0) return first;
  const atMs = systemClock.monotonicMs();
  await systemClock.sleep(RATE_OVER_MS);
  const second = await countDebts(shards, ask);
  const seconds = (systemClock.monotonicMs() - atMs) / 1000;
  // A shard that has answered once alone would count as repaired.
  if (second.unansweredCount !== first.unansweredCount) return second;
  return withRate(second, (first.chunkCount - second.chunkCount) / seconds);
}

export function withRate(repair: RepairStatus, chunksPerSecond: number): RepairStatus {
  const leftMs = Math.round((repair.chunkCount / chunksPerSecond) * 1000);
  return { ...repair, chunksPerSecond, ...(chunksPerSecond > 0 && { leftMs }) };
}

async function countDebts(shards: readonly number[], ask: AskPrimary): Promise<RepairStatus> {
  const answers = await Promise.all(shards.map((shard) => ask(shard, 'count-debts', {})));
  return sumDebts(answers);
}

export function sumDebts(answers: readonly (ResultOf<'count-debts'> | undefined)[]): RepairStatus {
  const byCopies = new Map<number, { blobCount: number; chunkCount: number }>();
  for (const { copies, blobCount, chunkCount } of answers.flatMap((answer) => answer?.debts ?? [])) {
    const sum = byCopies.get(copies) ?? { blobCount: 0, chunkCount: 0 };
    byCopies.set(copies, {
      blobCount: sum.blobCount + blobCount,
      chunkCount: sum.chunkCount + chunkCount,
    });
  }
  const debts = [...byCopies]
    .sort(([a], [b]) => a - b)
    .map(([copies, counts]) => ({ ...(copies < COPIES_UNKNOWN && { copies }), ...counts }));
  return {
    debts,
    chunkCount: debts.reduce((sum, { chunkCount }) => sum + chunkCount, 0),
    unansweredCount: answers.filter((answer) => answer === undefined).length,
  };
}

async function readDisks(parts: {
  config: Config;
  clusterId: string;
  map: PlacementMap | undefined;
  members: readonly Member[];
  answerMaxMs: number;
}): Promise<DiskStatus[]> {
  const { config, clusterId, map, answerMaxMs } = parts;
  const reasons = new Map(unservedDisks(parts.members).map(({ diskId, reason }) => [diskId, reason]));
  await using closing = new AsyncDisposableStack();
  const credentials = await openRpcCredentials(securityOf(config), { clock: systemClock, log: SILENT });
  closing.defer(() => credentials.close());
  const client = createChunkClient({
    ...{ clusterId, clock: systemClock },
    credentials: chunkCredentials(config, { credentials }),
  });
  closing.defer(() => client.close());
  // Awaited here: the client ends with this function.
  return await Promise.all(
    seeDisks(map, parts.members).map(async ({ disk, state, ...held }): Promise<DiskStatus> => {
      const { id: diskId, nodeId, address, zone, capacityBytes, leave } = disk;
      const isAway = state === 'away';
      const usage = isAway
        ? undefined
        : await Promise.race([
            client.chunksOf(disk).usage(),
            systemClock.sleep(answerMaxMs).then(() => undefined),
          ]).catch(() => undefined);
      const reason = isAway ? reasons.get(diskId) : undefined;
      return {
        ...{ diskId, nodeId, address, zone, capacityBytes },
        state: isAway || usage !== undefined ? state : 'silent',
        ...(reason !== undefined && { reason }),
        ...(leave && { leave }),
        ...held,
        ...(usage && { usage }),
      };
    }),
  );
}

export function unservedDisks(members: readonly Member[]): (UnservedDisk & { nodeId: NodeId })[] {
  return members.flatMap(({ nodeId, unserved = [] }) => unserved.map((disk) => ({ ...disk, nodeId })));
}
