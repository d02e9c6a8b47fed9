// Since when a sub-account was in which state: invoices are made of it.
import { dayOf } from '../../types/metered.ts';
import type { CustomerRecord } from '../../types/records/tenancy-records.ts';

type History = CustomerRecord['history'];

/** Of a day all are kept up to here. */
const CHANGES_OF_DAY = 20;

/**
 * The history with a state that begins now. Of a day with very many changes it keeps the last one into each state, which is all
 * that charges look at: a partner may suspend and restore an account any number of times, and lists of accounts read it whole.
 */
export function withState(history: History, state: CustomerRecord['state'], nowMs: number): History {
  const today = dayOf(nowMs);
  const after = [...history, { state, fromMs: nowMs }];
  const isOfToday = ({ fromMs }: History[number]) => dayOf(fromMs) >= today;
  if (after.filter(isOfToday).length <= CHANGES_OF_DAY) return after;
  const isLast = (at: number) => !after.slice(at + 1).some((later) => later.state === after[at]?.state);
  // Its creation stays, whatever comes behind it.
  return after.filter((since, at) => at === 0 || !isOfToday(since) || isLast(at));
}
