// Plans how a shard that has lost the majority of its voters for good continues with what one replica has left (R23):
// acknowledged data that is not in it is given up. The plan is pure: the record to write, or the reason against it.
import { isDeepStrictEqual } from 'node:util';
import type { ReplicaId } from '../ports/replication.ts';
import type { RegisteredShard, ShardRecord, ShardRegistryPort } from '../ports/shard-registry.ts';
import { type FoundReplica, highestEpoch, latestSeen } from './rebuild-records.ts';

export interface RecoveryFacts {
  found: readonly FoundReplica[];
  registered: RegisteredShard | undefined;
  /** On nodes that are announced, or answer. */
  present: ReadonlySet<ReplicaId>;
}

export type RecoveryPlan =
  | { kind: 'recover'; expected: number; record: ShardRecord }
  | { kind: 'cannot'; why: string };

/** Times that a record is read anew because only its wish has changed. */
const TRIES_MAX = 5;

export interface RecoveryChoice {
  from: ReplicaId;
  nonce: string;
  /** Of the last rebuild that is known of any shard. A record from before it would be taken for an old one. */
  rebuiltAtMs?: number;
}

/**
 * Writes the planned record. Where other nodes should hold the shard (`wanted`) may change meanwhile, as new nodes are announced
 * just then in place of lost ones: that says nothing against the plan, and the new record is replaced. `changed`: more of it has
 * changed, and nothing was written. Throws what the registry throws.
 */
export async function writeRecovery(
  registry: Pick<ShardRegistryPort, 'read' | 'swap'>,
  shard: number,
  { registered: first, ...facts }: RecoveryFacts,
  choice: RecoveryChoice,
): Promise<'done' | 'changed' | Extract<RecoveryPlan, { kind: 'cannot' }>> {
  let registered = first;
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const plan = planRecovery({ ...facts, registered }, choice);
    if (plan.kind === 'cannot') return plan;
    if ((await registry.swap(shard, plan)).kind === 'done') return 'done';
    const present = await registry.read(shard);
    if (!isDeepStrictEqual(withoutWish(present), withoutWish(registered))) return 'changed';
    registered = present;
  }
  return 'changed';
}

function withoutWish(registered: RegisteredShard | undefined): object | undefined {
  return registered && { ...registered.record, wanted: undefined };
}

/** What would be written for these facts. It writes nothing. */
export function planRecovery(
  { found, registered, present }: RecoveryFacts,
  { from, nonce, rebuiltAtMs: known = 0 }: RecoveryChoice,
): RecoveryPlan {
  const chosen = found.find(({ replicaId }) => replicaId === from);
  if (chosen === undefined) return cannot(`replica ${from} was not found`);
  const record = registered?.record;
  const incarnation = Math.max(record?.incarnation ?? 0, ...found.map((replica) => replica.incarnation));
  const { nodeId, state } = chosen;
  if (record?.recoveredFrom === from && record.primary === null && record.voters.length === 1)
    return cannot(`it goes on with replica ${from} already, as soon as that runs`);
  if (chosen.incarnation < incarnation)
    return cannot(
      `replica ${from} is of a history that was given up: ${chosen.incarnation}, not ${incarnation}`,
    );
  if (state !== 'live' && state !== 'quarantined')
    return cannot(`replica ${from} is ${state}: it is not whole`);
  const ours = found.filter((replica) => replica.incarnation === incarnation);
  const others = [record, latestSeen(ours)].flatMap((set) =>
    set === undefined ? [] : [...set.voters, ...(set.prevVoters ?? [])],
  );
  const on = others.find(({ replicaId }) => replicaId !== from && present.has(replicaId));
  if (on !== undefined)
    return cannot(
      `node ${on.nodeId} is there, with replica ${on.replicaId}: bring the shard back by it, or stop it`,
    );
  const epoch = Math.max(
    record?.epoch ?? 0,
    ...found.map(highestEpoch),
    ...found.map((one) => one.seen?.epoch ?? 0),
  );
  const rebuiltAtMs = Math.max(
    known,
    record?.rebuiltAtMs ?? 0,
    ...found.map(({ seen }) => seen?.rebuiltAtMs ?? 0),
  );
  return {
    kind: 'recover',
    expected: registered?.revision ?? 0,
    record: {
      incarnation: incarnation + 1,
      epoch: epoch + 1,
      primary: null,
      voters: [{ replicaId: from, nodeId }],
      prevVoters: null,
      learners: [],
      ...(rebuiltAtMs > 0 && { rebuiltAtMs }),
      recoveredFrom: from,
      nonce,
    },
  };
}

function cannot(why: string): RecoveryPlan {
  return { kind: 'cannot', why };
}
