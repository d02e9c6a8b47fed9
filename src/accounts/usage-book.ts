// Daily records as partners see them (extensions 1.7): lists with pages, the newest first, and ids that stay. A sub-account has
// one record for each day since it was made, closed days only; on its first day that day. So where a record stands in a list
// follows from when sub-accounts were made, and only the records of a page are read.
import { BoundedMap } from '../base/bounded-map.ts';
import type { ClockPort } from '../ports/clock.ts';
import { dayOf } from '../types/metered.ts';
import type { AccountId, BucketId } from '../types/names.ts';
import { activeBytes, METERED_NOTHING, type UsageDay } from '../types/usage.ts';
import type { Page, PageOf } from './tenancy.ts';
import type { Usages } from './usages.ts';

/** A sub-account whose usage is asked for. */
export interface MeteredCustomer {
  id: number;
  accountId: AccountId;
  createdAtMs: number;
}

/** Days, both inclusive. `latest`: the newest record of each sub-account or bucket. */
export interface UsageFilter {
  fromDay?: number;
  toDay?: number;
  latest?: boolean;
}

export interface BucketUsageFilter extends UsageFilter {
  /** A part of it, without regard to case. */
  name?: string;
  bucketNumber?: number;
}

export interface CustomerUsage<Customer> {
  id: number;
  customer: Customer;
  usage: UsageDay;
}

export interface BucketUsage {
  id: number;
  bucketNumber: number;
  usage: UsageDay;
}

export interface StoredFigures {
  activeBytes: number;
  deletedBytes: number;
}

export interface UsageBook {
  /** Of these sub-accounts, which are in order of ids. */
  list<Customer extends MeteredCustomer>(
    customers: readonly Customer[],
    filter: UsageFilter,
    page: Page,
  ): Promise<PageOf<CustomerUsage<Customer>>>;
  /** Undefined: the sub-account has no record of that day. */
  get<Customer extends MeteredCustomer>(
    customer: Customer,
    day: number,
  ): Promise<CustomerUsage<Customer> | undefined>;
  buckets(customer: MeteredCustomer, filter: BucketUsageFilter, page: Page): Promise<PageOf<BucketUsage>>;
  /** What accounts had stored at the end of the last closed day. */
  stored(): Promise<(accountId: AccountId) => StoredFigures>;
}

/** Days of an id: enough to the year 2243. */
const ID_DAYS = 100_000;
/** The same of a bucket's record, whose id has 53 bits: 36 of the bucket's number and 17 of the day. */
const BUCKET_ID_DAYS = 2 ** 17;
const BUCKET_NUMBER_DIGITS = 9;
/** Accounts whose counts are kept: some numbers for each. */
const COUNTED_ACCOUNTS_MAX = 1000;
/** Of all buckets, that are read at once to find those of one. */
const SEARCHED_DAYS = 20;
/** Accounts whose present is read at once. */
const CURRENT_ACCOUNTS = 20;
const NOTHING_STORED: StoredFigures = { activeBytes: 0, deletedBytes: 0 };

export function usageId(customerId: number, day: number): number {
  return customerId * ID_DAYS + day;
}

export function readUsageId(id: number): { customerId: number; day: number } {
  return { customerId: Math.floor(id / ID_DAYS), day: id % ID_DAYS };
}

/** Of two buckets of an account hardly ever the same: 36 bits of an id that is random. */
export function bucketNumberOf(bucketId: BucketId): number {
  return Number.parseInt(bucketId.slice(0, BUCKET_NUMBER_DIGITS), 16);
}

export function createUsageBook(usages: Usages, clock: Pick<ClockPort, 'wallMs'>): UsageBook {
  /** By account, of days that are closed: they never change. */
  const counted = new BoundedMap<AccountId, { throughDay: number; counts: Map<number, number> }>(
    COUNTED_ACCOUNTS_MAX,
  );
  let storage: { day: number; figures: ReturnType<Usages['totals']> } | undefined;
  const firstDayOf = ({ createdAtMs }: MeteredCustomer) => dayOf(createdAtMs);
  const today = () => dayOf(clock.wallMs());

  async function countsOf(customer: MeteredCustomer, throughDay: number): Promise<Map<number, number>> {
    const { accountId } = customer;
    const known = counted.get(accountId) ?? { throughDay: firstDayOf(customer) - 1, counts: new Map() };
    if (known.throughDay >= throughDay) return known.counts;
    const range = { fromDay: known.throughDay + 1, toDay: throughDay };
    const counts = new Map([...known.counts, ...(await usages.countByBucket(accountId, range))]);
    counted.set(accountId, { throughDay, counts });
    return counts;
  }

  async function readAll<Customer extends MeteredCustomer>(
    places: readonly { customer: Customer; day: number }[],
    closedDay: number,
  ): Promise<CustomerUsage<Customer>[]> {
    const closed = places.filter(({ day }) => day <= closedDay);
    const days = Map.groupBy(closed, ({ customer }) => customer.accountId);
    const of = [...days].map(([accountId, some]) => ({
      accountId,
      fromDay: Math.min(...some.map(({ day }) => day)),
      toDay: Math.max(...some.map(({ day }) => day)),
    }));
    const found = new Map((await usages.sums(of)).map((usage) => [`${usage.accountId} ${usage.day}`, usage]));
    const read = async ({ customer, day }: { customer: Customer; day: number }) => {
      const { id, accountId } = customer;
      const isClosed = day <= closedDay;
      const none = { ...METERED_NOTHING, accountId, day, isClosed };
      const usage = isClosed
        ? (found.get(`${accountId} ${day}`) ?? none)
        : { ...none, ...(await usages.currentOf(accountId)) };
      return { id: usageId(id, day), customer, usage };
    };
    const records: CustomerUsage<Customer>[] = [];
    for (let at = 0; at < places.length; at += CURRENT_ACCOUNTS)
      records.push(...(await Promise.all(places.slice(at, at + CURRENT_ACCOUNTS).map(read))));
    return records;
  }

  async function bucketsOn(
    customer: MeteredCustomer,
    { closedDay, filter, page }: { closedDay: number; filter: BucketUsageFilter; page: Page },
  ): Promise<PageOf<UsageDay>> {
    const { accountId } = customer;
    const { fromDay, toDay } = rangeOf(filter, { first: firstDayOf(customer), closedDay });
    const isNarrow = filter.name !== undefined || filter.bucketNumber !== undefined;
    const isNow = today() >= (filter.fromDay ?? 0) && today() <= (filter.toDay ?? Number.MAX_SAFE_INTEGER);
    const fresh = isNow
      ? (await usages.current(accountId, { withoutRecordOf: closedDay })).filter(
          (usage) => usage.bucketId !== undefined && matches(usage, filter),
        )
      : [];
    const counts = await countsOf(customer, closedDay);
    const days = descending(fromDay, toDay).filter((day) => counts.has(day));
    if (isNarrow) {
      const found = [...fresh];
      for (let at = 0; at < days.length; at += SEARCHED_DAYS) {
        const [to = 0, from = to] = [days[at], days[Math.min(at + SEARCHED_DAYS, days.length) - 1]];
        const some = await usages.byBucket(accountId, { fromDay: from, toDay: to });
        found.push(...some.filter((usage) => matches(usage, filter)).sort((a, b) => b.day - a.day));
      }
      return { items: sliceOf(found, page), total: found.length };
    }
    const total = days.reduce((sum, day) => sum + (counts.get(day) ?? 0), fresh.length);
    const items: UsageDay[] = [];
    let skipped = (page.page - 1) * page.size;
    const take = async (count: number, read: () => UsageDay[] | Promise<UsageDay[]>) => {
      if (skipped < count && items.length < page.size)
        items.push(...(await read()).slice(skipped, skipped + page.size - items.length));
      skipped = Math.max(0, skipped - count);
    };
    await take(fresh.length, () => fresh);
    for (const day of days) {
      if (items.length >= page.size) break;
      await take(counts.get(day) ?? 0, () => usages.byBucket(accountId, { fromDay: day, toDay: day }));
    }
    return { items, total };
  }

  return {
    async list(customers, filter, page) {
      const closedDay = (await usages.lastClosedDay()) ?? -1;
      const firsts = customers.map(firstDayOf);
      const now = today();
      const asksNow = now >= (filter.fromDay ?? 0) && now <= (filter.toDay ?? Number.MAX_SAFE_INTEGER);
      const sorted = [...firsts].sort((a, b) => a - b);
      const range = rangeOf(filter, { first: sorted[0] ?? 0, closedDay });
      const groups: { day: number; count: number; isOf(first: number): boolean }[] = [];
      const youngCount = sorted.length - countUpTo(sorted, closedDay);
      if (asksNow && youngCount > 0)
        groups.push({ day: now, count: youngCount, isOf: (one) => one > closedDay });
      for (const day of descending(range.fromDay, range.toDay))
        groups.push({ day, count: countUpTo(sorted, day), isOf: (one) => one <= day });
      const places: { customer: (typeof customers)[number]; day: number }[] = [];
      let skipped = (page.page - 1) * page.size;
      for (const { day, count, isOf } of groups) {
        if (places.length >= page.size) break;
        if (skipped < count) {
          const some = customers.filter((_, at) => isOf(firsts[at] ?? 0));
          const rest = some.slice(skipped, skipped + page.size - places.length);
          places.push(...rest.map((customer) => ({ customer, day })));
        }
        skipped = Math.max(0, skipped - count);
      }
      const total = groups.reduce((sum, { count }) => sum + count, 0);
      return { items: await readAll(places, closedDay), total };
    },

    async get(customer, day) {
      const closedDay = (await usages.lastClosedDay()) ?? -1;
      const first = firstDayOf(customer);
      const isThere = first > closedDay ? day === today() : day >= first && day <= closedDay;
      return isThere ? (await readAll([{ customer, day }], closedDay))[0] : undefined;
    },

    async buckets(customer, filter, page) {
      const closedDay = (await usages.lastClosedDay()) ?? -1;
      const { items, total } = await bucketsOn(customer, { closedDay, filter, page });
      return { items: items.flatMap(bucketUsage), total };
    },

    async stored() {
      const day = await usages.lastClosedDay();
      if (day === undefined) return () => NOTHING_STORED;
      if (storage?.day !== day) {
        const asked = { day, figures: usages.totals(day) };
        storage = asked;
        asked.figures.catch(() => {
          if (storage === asked) storage = undefined;
        });
      }
      const figures = await storage.figures;
      return (accountId) => {
        const one = figures.get(accountId);
        return one === undefined
          ? NOTHING_STORED
          : { activeBytes: activeBytes(one), deletedBytes: one.deletedBytes };
      };
    },
  };
}

/** Closed days that are asked for. None: `toDay` is below `fromDay`. */
function rangeOf(
  { fromDay, toDay, latest }: UsageFilter,
  { first, closedDay }: { first: number; closedDay: number },
): { fromDay: number; toDay: number } {
  const from = Math.max(fromDay ?? 0, first);
  const to = Math.min(toDay ?? closedDay, closedDay);
  return { fromDay: latest ? Math.max(from, to) : from, toDay: to };
}

function descending(fromDay: number, toDay: number): number[] {
  return Array.from({ length: Math.max(0, toDay - fromDay + 1) }, (_, at) => toDay - at);
}

/** How many of a sorted list are no larger. */
function countUpTo(sorted: readonly number[], limit: number): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sorted[middle] ?? 0) <= limit) from = middle + 1;
    else to = middle;
  }
  return from;
}

function matches(
  { bucketId, bucketName = '' }: UsageDay,
  { name, bucketNumber }: BucketUsageFilter,
): boolean {
  if (bucketId === undefined) return false;
  if (name !== undefined && !bucketName.includes(name.toLowerCase())) return false;
  return bucketNumber === undefined || bucketNumberOf(bucketId) === bucketNumber;
}

function sliceOf<T>(items: readonly T[], { page, size }: Page): T[] {
  return items.slice((page - 1) * size, page * size);
}

function bucketUsage(usage: UsageDay): BucketUsage[] {
  if (usage.bucketId === undefined) return [];
  const bucketNumber = bucketNumberOf(usage.bucketId);
  return [{ id: bucketNumber * BUCKET_ID_DAYS + usage.day, bucketNumber, usage }];
}
