// Brings a shard to the voters and the primary that its record wants (R14), one step at a time and never while a voter
// lags: first learners, then the change of voters under a new epoch with majorities of both sets, then the hand-over.
// It runs on the open primary alone; what is wanted is decided elsewhere (src/coordination/place-shards.ts).
import { toHex } from '../../base/bytes/bytes.ts';
import type { RandomPort } from '../../ports/clock.ts';
import type { ReplicaId, ReplicaRef } from '../../ports/replication.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';

/** A learner this close behind may become a voter. */
const LEARNER_LAG_MAX = 1000;
const NONCE_BYTES = 16;

export type NextStep =
  | { kind: 'none' }
  /** Under the same epoch. */
  | { kind: 'rewrite'; record: ShardRecord }
  /** Under the next one. */
  | { kind: 'change-voters'; record: ShardRecord }
  /** Under the next one, which is the heir's. */
  | { kind: 'hand-over'; record: ShardRecord; heir: ReplicaId };

export interface Lags {
  /** Entries that it lacks; undefined: it does not answer. */
  lagOf(replicaId: ReplicaId): number | undefined;
  /** It is whole, and may count. */
  countsOf(replicaId: ReplicaId): boolean;
}

/** Pure: whether both sets of voters count. */
export function isChange(record: ShardRecord | undefined): boolean {
  return record !== undefined && record.prevVoters !== null;
}

/** Pure: what the primary `self` should do next. */
export function nextStep(record: ShardRecord, self: ReplicaRef, lags: Lags): NextStep {
  // A change that was begun is ended first: until then both sets count.
  if (isChange(record)) return { kind: 'rewrite', record: { ...record, prevVoters: null } };
  const { wanted, voters, learners } = record;
  if (wanted === undefined) return { kind: 'none' };
  const isCaughtUp = ({ replicaId }: ReplicaRef) =>
    replicaId === self.replicaId ||
    (lags.countsOf(replicaId) && (lags.lagOf(replicaId) ?? Number.POSITIVE_INFINITY) <= LEARNER_LAG_MAX);
  const missing = wanted.voters.filter((ref) => !has(voters, ref));
  const leaving = voters.filter((ref) => !has(wanted.voters, ref));
  if (missing.length > 0 || leaving.length > 0) {
    const unknown = missing.filter((ref) => !has(learners, ref));
    if (unknown.length > 0)
      return { kind: 'rewrite', record: { ...record, learners: [...learners, ...unknown] } };
    if (!wanted.voters.every(isCaughtUp)) return { kind: 'none' };
    if (has(wanted.voters, self)) return changeVoters(record, self, wanted.voters);
    const [heir] = wanted.voters.filter((ref) => has(voters, ref));
    // Only who is in the new set may bring it there: when all are new, all but one of them first.
    if (heir === undefined) return changeVoters(record, self, [self, ...wanted.voters.slice(1)]);
    return handOver(record, heir);
  }
  const unwanted = learners.filter((ref) => !has(wanted.voters, ref));
  if (unwanted.length > 0) return { kind: 'rewrite', record: { ...record, learners: [] } };
  const heir = voters.find(({ replicaId }) => replicaId === wanted.primary);
  if (heir === undefined || heir.replicaId === self.replicaId || !voters.every(isCaughtUp))
    return { kind: 'none' };
  return handOver(record, heir);
}

function changeVoters(record: ShardRecord, self: ReplicaRef, voters: ReplicaRef[]): NextStep {
  return {
    kind: 'change-voters',
    record: {
      ...record,
      epoch: record.epoch + 1,
      primary: self,
      voters,
      prevVoters: record.voters,
      learners: record.learners.filter((ref) => !has(voters, ref)),
    },
  };
}

/** Pure: the step by which the voter `heir` is to lead; none when it is no voter. */
export function handOverTo(record: ShardRecord, heir: ReplicaId): NextStep {
  const ref = record.voters.find(({ replicaId }) => replicaId === heir);
  return ref === undefined ? { kind: 'none' } : handOver(record, ref);
}

/** The epoch is given to the heir before the primary lets go: nobody could take one while the registry is away (I15). */
function handOver(record: ShardRecord, heir: ReplicaRef): NextStep {
  const given = { ...record, epoch: record.epoch + 1, primary: heir };
  return { kind: 'hand-over', record: given, heir: heir.replicaId };
}

function has(refs: readonly ReplicaRef[], { replicaId }: ReplicaRef): boolean {
  return refs.some((ref) => ref.replicaId === replicaId);
}

/** With a nonce of its own: so that a swap whose answer is lost is known (R2). */
export function withNonce(record: ShardRecord, random: RandomPort): ShardRecord {
  return { ...record, nonce: toHex(random.bytes(NONCE_BYTES)) };
}
