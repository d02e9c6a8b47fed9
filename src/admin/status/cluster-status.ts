// The types of what is known of a cluster, and how it is added up from the reports of etcd, shards and nodes. Pure. The
// tables (print-status.ts), the alarms (alarms.ts) and `holdfast cluster status --json` are made from it.

import type { DiskState } from '../../chunks/placement/disk-states.ts';
import { voterCounts } from '../../coordination/place-shards.ts';
import type { NodeZones } from '../../coordination/plan-shards.ts';
import type { ChunkPort } from '../../ports/chunks.ts';
import type { ClusterIdentity } from '../../ports/cluster-identity.ts';
import type { LeavingNode, NodeLeave } from '../../ports/coordination.ts';
import type { Member, UnservedDisk } from '../../ports/members.ts';
import type { ResultOf } from '../../ports/metadata/port.ts';
import type { DiskId, DiskLeave, PlacementMap } from '../../ports/placement.ts';
import type { NodeId, ReplicaRef } from '../../ports/replication.ts';
import type { ReplicaStatus, VerificationStatus } from '../../ports/shard-calls.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import { joinDamage, type NamedDamage } from '../../types/named-damage.ts';
import type { AuditRecord, HistoryRecord } from '../../types/records/rows.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';

export interface VoterStatus {
  nodeId: NodeId;
  /** `unheard`: its node does not answer. */
  state: ReplicaStatus['state'] | 'unheard';
  appliedSeq?: number;
  /** Entries that the primary says it lacks. */
  lag?: number;
}

export interface ShardStatus {
  shard: number;
  incarnation: number;
  epoch: number;
  /** As the registry says; `isOpen`: it says itself that it serves. */
  primary: NodeId | undefined;
  isOpen: boolean;
  voters: VoterStatus[];
  /** While its voters are being changed: those of before, whose majority counts too (R14). */
  prevVoters: NodeId[];
  learners: NodeId[];
  /** As its primary reports; absent while there is none. */
  verification?: VerificationStatus;
}

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

/** Copies that are missing (R36). */
export interface RepairStatus {
  /** By the intact copies of the chunk that has fewest; without `copies`: nobody has looked yet. */
  debts: { copies?: number; blobCount: number; chunkCount: number }[];
  chunkCount: number;
  /** By how many fewer of them each second, just now; negative: more. Absent: none are missing. */
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
  state: DiskState['state'] | 'silent';
  leave?: DiskLeave;
  /**
   * Partitions that it owns, and that it owned before a change that is not done: with none of both it may be removed, once
   * no copies are missing.
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

export interface LeavingNodeStatus {
  nodeId: NodeId;
  leave: NodeLeave;
  /** It runs. */
  isThere: boolean;
  /** Shards that need it still. */
  voterCount: number;
}

export interface ClusterStatus extends ChunkStatus {
  clusterId: string;
  /** Set while etcd does not answer: members and voters are those of that time, wall clock ms. */
  knownAtMs?: number;
  members: Member[];
  shards: ShardStatus[];
  /** Metadata nodes that are to hold no shards, by the operator's word. */
  leavingNodes: LeavingNodeStatus[];
  /** Whose data no disk has intact. */
  damage: NamedDamage;
  alarms: string[];
}

/** What each metadata node that answers says of its replicas. */
export type ReportedReplicas = ReadonlyMap<NodeId, readonly ReplicaStatus[]>;

/**
 * All that is known of a cluster at one moment, as data: its tables show it, and its alarms are derived from it
 * (alarms.ts). read-cluster.ts reads it.
 */
export interface ClusterFacts extends Omit<ClusterStatus, 'alarms'> {
  nowMs: number;
  identity: ClusterIdentity;
  /** Why etcd does not answer. Absent: it does. */
  whyAway?: string;
  /** Of metadata nodes, also of those that are away. */
  zones: NodeZones;
  /** Gateways that have ended without leaving. */
  missingGateways: readonly Member[];
  replicas: ReportedReplicas;
  /** Why metadata nodes are not reached from here. */
  unreached: readonly string[];
  /** R23: of shards that have gone on with one replica, and whose operator has not confirmed it. */
  unconfirmed: ReadonlyMap<number, HistoryRecord>;
}

/** As the primaries say. Their counts are of the first ones alone: `repair` has all. */
export function damageOf(replicas: ReportedReplicas, { debts }: RepairStatus): NamedDamage {
  const lost = debts.find(({ copies }) => copies === 0);
  if (lost === undefined) return joinDamage([]);
  const leading = [...replicas.values()].flat().filter(({ role }) => role === 'primary');
  return joinDamage(
    leading.flatMap(({ damage }) => damage ?? []),
    lost.blobCount,
  );
}

// ---- shards ----

/** Who leads by what the nodes say: the record may be of before a takeover. */
export function presentRecord(shard: number, record: ShardRecord, reported: ReportedReplicas): ShardRecord {
  const { voters } = record;
  let present = record;
  for (const primary of voters)
    for (const { shard: of, role, epoch, incarnation } of reported.get(primary.nodeId) ?? [])
      if (of === shard && role === 'primary' && epoch >= present.epoch)
        present = { ...present, incarnation, epoch, primary };
  return present;
}

export function describeShard(shard: number, record: ShardRecord, reported: ReportedReplicas): ShardStatus {
  const { incarnation, epoch, primary, voters, prevVoters, learners } = record;
  const of = ({ nodeId }: ReplicaRef) => reported.get(nodeId)?.find((status) => status.shard === shard);
  const leading = primary === null ? undefined : of(primary);
  return {
    shard,
    incarnation,
    epoch,
    primary: primary?.nodeId,
    isOpen: leading?.role === 'primary',
    voters: voters.map((ref) => {
      const status = of(ref);
      const lag = leading?.lags.find(({ replicaId }) => replicaId === ref.replicaId)?.lag;
      return {
        nodeId: ref.nodeId,
        state: status?.state ?? 'unheard',
        ...(status && { appliedSeq: status.appliedSeq }),
        ...(lag !== undefined && { lag }),
      };
    }),
    prevVoters: prevVoters?.map(({ nodeId }) => nodeId) ?? [],
    learners: learners.map(({ nodeId }) => nodeId),
    ...(leading?.verification && { verification: leading.verification }),
  };
}

/**
 * Each replica that the node is to hold leads its shard or follows one that does. One without any shards is ready: it waits
 * for some. What was taken from it, and what was given up (R23), does not count.
 */
export function isMetadataReady(statuses: readonly ReplicaStatus[]): boolean {
  return statuses.every(({ state, role, primary, isRegistryBehind }) => {
    if (state === 'removed' || state === 'superseded') return true;
    if (state !== 'live' || isRegistryBehind) return false;
    return role === 'primary' || (role === 'follower' && primary !== undefined);
  });
}

// ---- where chunks lie ----

export function placementStatus(map: PlacementMap, audits: AuditsStatus): PlacementStatus {
  const { version, copies, owners, previous, auditFrom } = map;
  const pendingCount = previous.filter(({ length }) => length > 0).length;
  return { version, copies, partitionCount: owners.length, pendingCount, auditFrom, audits };
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

export function withRate(repair: RepairStatus, chunksPerSecond: number): RepairStatus {
  const leftMs = Math.round((repair.chunkCount / chunksPerSecond) * 1000);
  return { ...repair, chunksPerSecond, ...(chunksPerSecond > 0 && { leftMs }) };
}

export function sumRepairs(answers: readonly (ResultOf<'count-debts'> | undefined)[]): RepairStatus {
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

export function unservedDisks(members: readonly Member[]): (UnservedDisk & { nodeId: NodeId })[] {
  return members.flatMap(({ nodeId, unserved = [] }) => unserved.map((disk) => ({ ...disk, nodeId })));
}

// ---- metadata nodes that leave ----

/** Without those that are removed and of which nothing is left: they are no part of the cluster any more. */
export function describeLeaving(
  nodes: readonly LeavingNode[],
  { members, records }: { members: readonly Member[]; records: readonly (ShardRecord | undefined)[] },
): LeavingNodeStatus[] {
  const needing = voterCounts(records);
  return nodes.flatMap(({ nodeId, leave }) => {
    const isThere = members.some((member) => member.nodeId === nodeId);
    const voterCount = needing.get(nodeId) ?? 0;
    if (leave === 'gone' && !isThere && voterCount === 0) return [];
    return [{ nodeId, leave, isThere, voterCount }];
  });
}
