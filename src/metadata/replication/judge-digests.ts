// Who is right when replicas of a shard have different digests of one range, at one entry (R22). Pure.
import type { ReplicaId } from '../../ports/replication.ts';
import { hasMajority, type VoterSets } from './quorum.ts';

export type Verdict =
  /** Of the replicas that have sent a digest. */
  | { kind: 'same' }
  /** These differ from what a majority of voters has. */
  | { kind: 'odd'; odd: ReplicaId[] }
  /** They differ, and no majority agrees: nobody knows who is right. */
  | { kind: 'undecided' };

/** `digests`: of those that have sent one. The shard can do without the odd ones, because it is a majority that agrees. */
export function judgeDigests(digests: ReadonlyMap<ReplicaId, string>, sets: VoterSets): Verdict {
  const different = new Set(digests.values());
  if (different.size <= 1) return { kind: 'same' };
  for (const digest of different) {
    if (!hasMajority(sets, (id) => digests.get(id) === digest)) continue;
    return { kind: 'odd', odd: [...digests.keys()].filter((id) => digests.get(id) !== digest) };
  }
  return { kind: 'undecided' };
}
