// Majorities of voters. While voters are being changed both sets must agree (R14), so each question is asked of each.
import { must } from '../../base/assert.ts';
import type { ReplicaId } from '../../ports/replication.ts';

export interface VoterSets {
  readonly voters: readonly ReplicaId[];
  /** Absent unless they are being changed. */
  readonly prevVoters?: readonly ReplicaId[] | undefined;
}

/** Whether a majority of each set has it. */
export function hasMajority(sets: VoterSets, isOne: (id: ReplicaId) => boolean): boolean {
  return setsOf(sets).every((set) => set.filter(isOne).length > set.length / 2);
}

/** The greatest value that a majority of each set has reached. */
export function reachedByMajority(sets: VoterSets, reachedBy: (id: ReplicaId) => number): number {
  const reached = setsOf(sets).map((set) => {
    const values = set.map(reachedBy).sort((a, b) => b - a);
    // The majority's least: of 3 the second greatest.
    return must(values[Math.floor(values.length / 2)], 'a set of voters has members');
  });
  return Math.min(...reached);
}

export function isVoter(sets: VoterSets, id: ReplicaId): boolean {
  return setsOf(sets).some((set) => set.includes(id));
}

/** Everybody who is asked, once. */
export function allVoters(sets: VoterSets): ReplicaId[] {
  return [...new Set(setsOf(sets).flat())];
}

function setsOf({ voters, prevVoters }: VoterSets): (readonly ReplicaId[])[] {
  return prevVoters === undefined ? [voters] : [voters, prevVoters];
}
