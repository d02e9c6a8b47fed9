// How long a trial is, and how much it allows (extensions 1.4). Its days are free, so that partners have bounds, and none comes back.
import type { CustomerRecord } from '../types/records/tenancy-records.ts';
import { DAY_MS } from '../types/usage.ts';
import { refuse } from './account-rules.ts';
import { isOnTrial } from './plans.ts';
import type { ApiCaller, NewCustomer } from './tenancy.ts';

type Trial = NonNullable<CustomerRecord['trial']>;
type Terms = Pick<NewCustomer, 'trialDays' | 'trialQuotaTB'>;

const DAYS = 30;
const QUOTA_TB = 1;
/** What older clients mean by 1 TB: their trials are in GB (extensions 1.4). */
const QUOTA_GB = 1024;
const OF_PARTNERS = { daysMax: 90, quotaTBMax: 5 };
const OF_OPERATORS = { daysMax: 365, quotaTBMax: 1_000_000 };
const IS_OVER = 'cannot be changed: the trial is over, and none comes back';

/** Throws ValidationError. */
export function newTrial(caller: ApiCaller, terms: Terms, nowMs: number): Trial {
  return {
    quotaTB: quotaOf(caller, terms.trialQuotaTB ?? QUOTA_TB),
    endsAtMs: nowMs + daysOf(caller, terms.trialDays ?? DAYS) * DAY_MS,
  };
}

/** What is sent as it is already changes nothing, whatever is allowed by now. Throws ValidationError. */
export function changedTrial(
  caller: ApiCaller,
  record: Pick<CustomerRecord, 'createdAtMs' | 'history'> & { trial: Trial },
  { trialDays, trialQuotaTB }: Terms,
  nowMs: number,
): Trial {
  const { trial, createdAtMs } = record;
  const isOver = !isOnTrial(record, nowMs);
  const changed = { ...trial };
  if (trialQuotaTB !== undefined && inTB(trialQuotaTB) !== trial.quotaTB) {
    changed.quotaTB = quotaOf(caller, trialQuotaTB);
    if (isOver) refuse({ trialQuotaTB: IS_OVER });
  }
  // The clock that made its end is not the one that has written when it was made.
  const days = Math.round((trial.endsAtMs - createdAtMs) / DAY_MS);
  if (trialDays !== undefined && trialDays !== days) {
    changed.endsAtMs = createdAtMs + daysOf(caller, trialDays) * DAY_MS;
    if (isOver) refuse({ trialDays: IS_OVER });
    // Days that were free when they passed stay so.
    if (changed.endsAtMs <= nowMs)
      refuse({ trialDays: 'have passed already: trialToPaid ends the trial now' });
  }
  return changed;
}

function inTB(asked: number): number {
  return asked === QUOTA_GB ? QUOTA_TB : asked;
}

function daysOf({ level }: ApiCaller, days: number): number {
  const { daysMax } = level === 'admin' ? OF_OPERATORS : OF_PARTNERS;
  if (!Number.isInteger(days) || days < 1 || days > daysMax)
    refuse({ trialDays: `must be a whole number from 1 to ${daysMax}` });
  return days;
}

function quotaOf({ level }: ApiCaller, asked: number): number {
  const { quotaTBMax } = level === 'admin' ? OF_OPERATORS : OF_PARTNERS;
  const quotaTB = inTB(asked);
  if (!(quotaTB > 0 && quotaTB <= quotaTBMax))
    refuse({ trialQuotaTB: `must be above 0, and ${quotaTBMax} at most` });
  return quotaTB;
}
