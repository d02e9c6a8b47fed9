// What a shard keeps of requests that are over, for whoever repeats them or reads their answer: outcomes under tokens
// (tokens.ts), and jobs of prefix renames (jobs.ts). Anybody may send such requests without end, so their rows are counted,
// of each account and of all, and a command that would have more kept than may be is refused with nothing done.
import { LIMITS } from '../model/limits.ts';
import type { AccountId } from '../model/names.ts';
import type { IdempotencyToken } from '../ports/extension-calls.ts';
import type { CounterDelta, DecideContext } from '../ports/state-machine.ts';
import { COUNTER } from './counters.ts';

/** `addedBytes` below zero: they are kept no more. `owner` is that of the bucket. */
export function keptDeltas(owner: AccountId | undefined, addedBytes: number): CounterDelta[] {
  if (addedBytes === 0) return [];
  const shared = { name: COUNTER.keptBytes, delta: addedBytes };
  if (owner === undefined) return [shared];
  return [shared, { name: COUNTER.accountKeptBytes(owner), delta: addedBytes }];
}

/** Whether what a command is about to add to these counters may be kept: always so where that is nothing. */
export function mayBeKept(
  { owner, token }: { owner: AccountId; token: IdempotencyToken | undefined },
  counters: readonly CounterDelta[],
  { counter }: Pick<DecideContext, 'counter'>,
): boolean {
  const share = token === undefined ? 1 : LIMITS.keptForTokensShareMax;
  const bounds: [name: string, max: number][] = [
    [COUNTER.keptBytes, LIMITS.keptOutcomesBytesMax],
    [COUNTER.accountKeptBytes(owner), LIMITS.keptOutcomesPerAccountBytesMax],
  ];
  return bounds.every(([bounded, max]) => {
    const added = counters.filter(({ name }) => name === bounded);
    const addedBytes = added.reduce((sum, { delta }) => sum + delta, 0);
    return addedBytes <= 0 || counter(bounded) + addedBytes <= share * max;
  });
}
