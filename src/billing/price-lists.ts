// Price lists: what an operator may set, and which one holds on a day.
import { invalidFields } from '../types/errors.ts';
import { dateOf, parseDate } from '../types/months.ts';
import type { PriceListRecord, Prices } from '../types/records/billing-records.ts';

/** As an operator gives it. Prices may be numbers; strings lose no digit. */
export interface PriceListInput {
  /** YYYY-MM-DD. */
  from: string;
  currency: string;
  prices: Partial<Record<keyof Prices, string | number>>;
}

/** Price lists that may be kept: a change each week for 19 years. */
export const PRICE_LISTS_MAX = 1000;
/** Days after 1970-01-01: the end of the year 9999. */
const LAST_DAY = 2_932_896;

const PRICE = /^\d{1,9}(\.\d{1,8})?$/;
const PRICE_RULE =
  'must be a decimal number, not negative, of 9 digits before and 8 behind the point at most';
const FIELDS = [
  'activeStorage',
  'deletedStorage',
  'minimumTB',
  'minimumStorage',
  'apiCalls',
  'ingress',
  'egress',
] as const satisfies (keyof Prices)[];

/** Throws ValidationError that names each field which is wrong. `others`: the lists that are there. */
export function checkPriceList(
  input: PriceListInput,
  others: readonly PriceListRecord[],
): Omit<PriceListRecord, 'changedAtMs'> {
  const problems: Record<string, string> = {};
  const fromDay = parseDate(input.from);
  if (fromDay === undefined || fromDay > LAST_DAY) problems.from = 'must be a day, as 2026-01-31';
  if (!isCurrency(input.currency)) problems.currency = 'must be a currency of ISO 4217, as USD';
  for (const [field, value] of Object.entries(input.prices)) {
    if (!FIELDS.some((known) => known === field)) problems[`prices.${field}`] = 'is no price';
    else if (!PRICE.test(String(value))) problems[`prices.${field}`] = PRICE_RULE;
  }
  if (input.prices.activeStorage === undefined) problems['prices.activeStorage'] = 'is missing';
  if (others.length >= PRICE_LISTS_MAX && !others.some(({ from }) => from === input.from))
    problems.from = `there are ${PRICE_LISTS_MAX} price lists, which is the most`;
  if (fromDay !== undefined) Object.assign(problems, currencyProblem(input, others));
  if (Object.keys(problems).length > 0) throw invalidFields(problems);
  return {
    from: input.from,
    currency: input.currency,
    fractionDigits: fractionDigitsOf(input.currency),
    prices: withDefaults(input.prices),
  };
}

function withDefaults(given: PriceListInput['prices']): Prices {
  const text = (field: keyof Prices, absent: string) => String(given[field] ?? absent);
  const activeStorage = text('activeStorage', '0');
  return {
    activeStorage,
    deletedStorage: text('deletedStorage', activeStorage),
    minimumTB: text('minimumTB', '1'),
    minimumStorage: text('minimumStorage', activeStorage),
    apiCalls: text('apiCalls', '0'),
    ingress: text('ingress', '0'),
    egress: text('egress', '0'),
  };
}

/** An invoice has one currency, so another one begins with a month. */
function currencyProblem(
  { from, currency }: PriceListInput,
  others: readonly PriceListRecord[],
): Record<string, string> {
  const sorted = others.filter((other) => other.from !== from).toSorted(byDate);
  const isStart = (date: string) => date.endsWith('-01');
  const before = sorted.findLast((other) => other.from < from);
  const after = sorted.find((other) => other.from > from);
  if (before !== undefined && before.currency !== currency && !isStart(from))
    return { from: `must be the first day of a month, because the currency changes from ${before.currency}` };
  if (after !== undefined && after.currency !== currency && !isStart(after.from))
    return { currency: `must be ${after.currency}, which holds from ${after.from}, within a month` };
  return {};
}

function isCurrency(code: string): boolean {
  return Intl.supportedValuesOf('currency').includes(code);
}

function fractionDigitsOf(currency: string): number {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

function byDate(a: PriceListRecord, b: PriceListRecord): number {
  return a.from < b.from ? -1 : a.from > b.from ? 1 : 0;
}

/** The list that holds on a day; undefined before the first one. `sorted` by date, ascending. */
export function listInForce(sorted: readonly PriceListRecord[], day: number): PriceListRecord | undefined {
  const date = dateOf(day);
  return sorted.findLast(({ from }) => from <= date);
}
