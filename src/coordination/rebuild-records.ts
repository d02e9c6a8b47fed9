// Rebuilds the records of the registry from what replicas durably know, after etcd was lost or restored from a backup (R23,
// A14). Pure. A majority of the last voters knows the last voters: a primary of a new epoch has fenced majorities of both
// sets, with the record by which it leads.

import type { StoredReplica } from '../ports/node-records.ts';
import type { NodeId, ReplicaId, ReplicaRef, SeenRecord, VoterRefs } from '../ports/replication.ts';
import type { RegisteredShard, ShardRecord } from '../ports/shard-registry.ts';
import { areSameReplicas, compareMoments, compareRecords } from '../types/registry-order.ts';

/** One replica, and where it was found. */
export interface FoundReplica extends StoredReplica {
  replicaId: ReplicaId;
  nodeId: NodeId;
}

export type ShardPlan =
  | { kind: 'as-it-is' }
  /** `expected`: for the registry's swap. */
  | { kind: 'rebuild'; expected: number; record: ShardRecord }
  /** The registry is not behind: as `rebuild`, because others are rebuilt. */
  | { kind: 'renew'; expected: number; record: ShardRecord }
  /** `rivals`: two sets of voters that each went on by itself. */
  | { kind: 'cannot'; why: string; missing: ReplicaRef[]; rivals?: [ReplicaRef[], ReplicaRef[]] };

export interface ShardFacts {
  /** All replicas that were found of the shard, each once. */
  found: readonly FoundReplica[];
  registered: RegisteredShard | undefined;
}

/** Of a record that is written. `rebuiltAtMs`: later than in every existing one; `nonce`: of this write. */
export interface RebuiltMark {
  rebuiltAtMs: number;
  nonce: string;
}

/**
 * Of all shards. Nodes compare what they read of one shard with what they have seen of another (R23): where some records
 * are rebuilt, the others would seem to be from before that for good, and rows that nobody lists would never be deleted.
 */
export function planRebuilds(shards: readonly ShardFacts[], mark: () => RebuiltMark): ShardPlan[] {
  const plans = shards.map((facts) => planRebuild(facts, mark()));
  const times = shards.flatMap(({ registered }) => (registered ? [registered.record.rebuiltAtMs ?? 0] : []));
  // Of one moment, or an earlier rebuild ended before it had written all.
  const isUneven = new Set(times).size > 1;
  if (!isUneven && !plans.some(({ kind }) => kind === 'rebuild')) return plans;
  return plans.map((plan, index) => {
    const registered = shards[index]?.registered;
    if (plan.kind !== 'as-it-is' || registered === undefined) return plan;
    // Its voters are those of the record: no replica knows later ones.
    const { recoveredFrom: _, ...record } = registered.record;
    return {
      kind: 'renew',
      expected: registered.revision,
      record: { ...record, ...mark(), epoch: record.epoch + 1, primary: null },
    };
  });
}

export function planRebuild(
  { found, registered }: ShardFacts,
  { rebuiltAtMs, nonce }: RebuiltMark,
): ShardPlan {
  if (found.length === 0) return { kind: 'cannot', why: 'no replica of it was found', missing: [] };
  const incarnation = Math.max(...found.map((replica) => replica.incarnation));
  const ours = found.filter((replica) => replica.incarnation === incarnation);
  const seen = latestSeen(ours);
  if (registered !== undefined && registered.record.incarnation > incarnation)
    return { kind: 'cannot', why: 'the registry knows a later history than all replicas found', missing: [] };
  if (seen === undefined)
    return { kind: 'cannot', why: 'no replica was found that knows who its voters were', missing: [] };
  const sound = new Set(ours.filter(isSound).map(({ replicaId }) => replicaId));
  const { voters, prevVoters, learners } = seen;
  const rivals = findRivals(
    ours,
    registered?.record.incarnation === incarnation ? registered.record : undefined,
  );
  if (rivals !== undefined)
    return {
      kind: 'cannot',
      why: 'two sets of voters have each gone on without the other',
      missing: [],
      rivals,
    };
  const missing = [voters, prevVoters ?? []].flatMap((set) => missingOf(set, sound));
  if (missing.length > 0) return { kind: 'cannot', why: 'no majority of its last voters was found', missing };
  if (registered !== undefined && ours.every((replica) => isUpTo(registered, replica)))
    return { kind: 'as-it-is' };
  const epochs = [seen.epoch, ...ours.map(highestEpoch)];
  if (registered?.record.incarnation === incarnation) epochs.push(registered.record.epoch);
  const epoch = Math.max(...epochs) + 1;
  return {
    kind: 'rebuild',
    expected: registered?.revision ?? 0,
    record: { incarnation, epoch, primary: null, voters, prevVoters, learners, rebuiltAtMs, nonce },
  };
}

/** The registered state with the last voters. */
export function latestSeen(found: readonly FoundReplica[]): SeenRecord | undefined {
  let latest: SeenRecord | undefined;
  for (const { seen } of found) {
    if (seen === null) continue;
    if (latest === undefined || compareRecords(seen, latest) > 0) latest = seen;
  }
  return latest;
}

type Sets = VoterRefs & { readonly epoch: number };

/**
 * Two sets of voters of one history of which neither came from the other: the registry was once made anew without it. A set
 * is only left by the promises of its majority, to an epoch above its own (R2, R14), whoever of them noticed it.
 */
function findRivals(
  ours: readonly FoundReplica[],
  record: ShardRecord | undefined,
): [ReplicaRef[], ReplicaRef[]] | undefined {
  const known: Sets[] = ours.flatMap(({ seen }) => (seen === null ? [] : [seen]));
  if (record !== undefined) known.push(record);
  const sound = ours.filter(isSound);
  const isLeft = ({ voters, epoch }: Sets) => {
    const stayed = sound.filter(
      (one) => one.promised <= epoch && voters.some(({ replicaId }) => replicaId === one.replicaId),
    );
    return stayed.length * 2 <= voters.length;
  };
  for (const earlier of known)
    for (const later of known) {
      // In epoch 0 nobody has led yet. While both sets count nothing is acknowledged without either.
      if (earlier.epoch === 0 || earlier.epoch > later.epoch) continue;
      if (isPartOf(earlier, later) || isPartOf(later, earlier)) continue;
      if (earlier.epoch === later.epoch || !isLeft(earlier)) return [[...earlier.voters], [...later.voters]];
    }
  return undefined;
}

function isPartOf({ voters }: Sets, { voters: present, prevVoters }: Sets): boolean {
  return areSameReplicas(voters, present) || (prevVoters !== null && areSameReplicas(voters, prevVoters));
}

/** R17: its rows can be trusted, and it would count. */
function isSound({ state, promised, last, witness }: FoundReplica): boolean {
  if (state !== 'live' || witness === 'damaged') return false;
  return witness === null || (promised >= witness.epoch && last.seq >= witness.seq);
}

/** The members of a set that has no majority of `sound` replicas and are not sound themselves. */
function missingOf(set: readonly ReplicaRef[], sound: ReadonlySet<ReplicaId>): ReplicaRef[] {
  const missing = set.filter(({ replicaId }) => !sound.has(replicaId));
  return missing.length * 2 < set.length || set.length === 0 ? [] : missing;
}

/** The highest epoch that it has promised, by its rows or its witness. */
export function highestEpoch({ promised, witness }: StoredReplica): number {
  return Math.max(promised, witness === null || witness === 'damaged' ? 0 : witness.epoch);
}

/** Whether the registry has everything that the replica knows. */
function isUpTo({ record, registryRevision }: RegisteredShard, replica: FoundReplica): boolean {
  const { rebuiltAtMs = 0, epoch } = record;
  if (epoch < highestEpoch(replica)) return false;
  const { seen } = replica;
  if (seen === null || rebuiltAtMs > seen.rebuiltAtMs) return true;
  return compareMoments({ rebuiltAtMs, revision: registryRevision }, seen) >= 0 && epoch >= seen.epoch;
}
