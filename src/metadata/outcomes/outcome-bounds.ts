// What a shard stores of requests that have ended, for clients that repeat them or read their answer: outcomes under tokens
// (tokens.ts), and jobs of prefix renames (jobs.ts). Clients may send such requests without end, so their rows are counted,
// for each account and for all, and a command that would store more than the limit is refused with nothing done. Jobs that
// no token leads to are counted by themselves. Where accounts have filled the shard, each other one still has a little.

import type { CounterDelta, DecideContext, ScalarDelta } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import { COUNTER } from '../schema/counters.ts';

interface OutcomeBound {
  /** The counters of all that is kept in the shard, and of one account's. */
  all: string;
  ofAccount(owner: AccountId): string;
  allMax: number;
  perAccountMax: number;
}

export const UNDER_TOKENS: OutcomeBound = {
  all: COUNTER.keptBytes,
  ofAccount: COUNTER.accountOutcomeBytes,
  allMax: LIMITS.storedOutcomesBytesMax,
  perAccountMax: LIMITS.storedOutcomesPerAccountBytesMax,
};
export const TOKENLESS: OutcomeBound = {
  all: COUNTER.tokenlessBytes,
  ofAccount: COUNTER.accountTokenlessBytes,
  allMax: LIMITS.tokenlessOutcomesBytesMax,
  perAccountMax: LIMITS.tokenlessOutcomesPerAccountBytesMax,
};

/** `addedBytes` below zero: they are kept no more. `owner` is that of the bucket. */
export function outcomeDeltas(
  owner: AccountId | undefined,
  addedBytes: number,
  { isTokenless = false } = {},
): ScalarDelta[] {
  if (addedBytes === 0) return [];
  const { all, ofAccount } = isTokenless ? TOKENLESS : UNDER_TOKENS;
  const shared = { name: all, delta: addedBytes };
  return owner === undefined ? [shared] : [shared, { name: ofAccount(owner), delta: addedBytes }];
}

/** Whether what a command is about to add to these counters may be kept: always so where that is nothing. */
export function mayBeStored(
  owner: AccountId,
  counters: readonly CounterDelta[],
  { counter }: Pick<DecideContext, 'counter'>,
): boolean {
  const addedTo = (bounded: string) =>
    counters.reduce((sum, { name, delta }) => (name === bounded ? sum + Number(delta) : sum), 0);
  return [UNDER_TOKENS, TOKENLESS].every(({ all, ofAccount, allMax, perAccountMax }) => {
    const addedBytes = addedTo(all);
    if (addedBytes <= 0) return true;
    const ownBytes = counter(ofAccount(owner)) + addedBytes;
    if (counter(all) + addedBytes > allMax) return ownBytes <= LIMITS.outcomesAtLeastBytes;
    return ownBytes <= perAccountMax;
  });
}
