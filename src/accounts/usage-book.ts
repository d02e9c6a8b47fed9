// Daily records as partners see them (extensions 1.7): lists with pages, the newest first, and ids that stay. A sub-account has
// one record for each day since it was made, closed days only; on its first day that day. So where a record stands in a list
// follows from when sub-accounts were made, and only the records of a page are read.
import { BoundedMap } from '../base/bounded-map.ts';
import type { ClockPort } from '../ports/clock.ts';
import { bucketNumberOf, dayOf } from '../types/metered.ts';
import type { AccountId } from '../types/names.ts';
import { activeBytes, METERED_NOTHING, type UsageDay } from '../types/usage.ts';
import { createDayPages } from './day-pages.ts';
import { type Asker, OPERATORS, requireHere } from './present-places.ts';
import type { Page, PageOf } from './tenancy.ts';
import type { DayRange, Usages } from './usages.ts';

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

/** `asker`: default an operator. Throws ServiceUnavailable. */
export interface UsageBook {
  /** Of these sub-accounts, which are in order of ids. */
  list<Customer extends MeteredCustomer>(
    customers: readonly Customer[],
    filter: UsageFilter,
    page: Page,
    asker?: Asker,
  ): Promise<PageOf<CustomerUsage<Customer>>>;
  /** Undefined: the sub-account has no record of that day. */
  get<Customer extends MeteredCustomer>(
    customer: Customer,
    day: number,
    asker?: Asker,
  ): Promise<CustomerUsage<Customer> | undefined>;
  buckets(
    customer: MeteredCustomer,
    filter: BucketUsageFilter,
    page: Page,
    asker?: Asker,
  ): Promise<PageOf<BucketUsage>>;
  /** What accounts had stored at the end of the last closed day. */
  stored(): Promise<(accountId: AccountId) => StoredFigures>;
}

/** Days of an id: enough to the year 2243. */
const ID_DAYS = 100_000;
/** The same of a bucket's record, whose id has 53 bits: 36 of the bucket's number and 17 of the day. */
const BUCKET_ID_DAYS = 2 ** 17;
/** Accounts whose counts are kept: some numbers for each. */
const COUNTED_ACCOUNTS_MAX = 1000;
/** Records that are read at once to find those with a name, where days have fewer. */
const SEARCHED_RECORDS = 2000;
/** Records that are read at once for one list: the present of an account asks all shards. */
const READ_AT_ONCE = 4;
const NO_PAGE: PageOf<UsageDay> = { items: [], total: 0 };
const NOTHING_STORED: StoredFigures = { activeBytes: 0, deletedBytes: 0 };

export function usageId(customerId: number, day: number): number {
  return customerId * ID_DAYS + day;
}

export function readUsageId(id: number): { customerId: number; day: number } {
  return { customerId: Math.floor(id / ID_DAYS), day: id % ID_DAYS };
}

export function createUsageBook(usages: Usages, clock: Pick<ClockPort, 'wallMs'>): UsageBook {
  /** By account, of days that are closed: they never change. */
  const counted = new BoundedMap<AccountId, { throughDay: number; counts: Map<number, number> }>(
    COUNTED_ACCOUNTS_MAX,
  );
  const dayPages = createDayPages(usages);
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
    { closedDay, asker }: { closedDay: number; asker: Asker },
  ): Promise<CustomerUsage<Customer>[]> {
    const closed = places.filter(({ day }) => day <= closedDay);
    const days = Map.groupBy(closed, ({ customer }) => customer.accountId);
    const of = [...days].map(([accountId, some]) => ({
      accountId,
      fromDay: Math.min(...some.map(({ day }) => day)),
      toDay: Math.max(...some.map(({ day }) => day)),
    }));
    const sums = of.length === 0 ? [] : await usages.inPlace(asker, () => usages.sums(of));
    const found = new Map(sums.map((usage) => [`${usage.accountId} ${usage.day}`, usage]));
    const read = async ({ customer, day }: { customer: Customer; day: number }) => {
      const { id, accountId } = customer;
      const isClosed = day <= closedDay;
      const none = { ...METERED_NOTHING, accountId, day, isClosed };
      const usage = isClosed
        ? (found.get(`${accountId} ${day}`) ?? none)
        : { ...none, ...(await usages.currentOf(accountId, asker)) };
      return { id: usageId(id, day), customer, usage };
    };
    const records: CustomerUsage<Customer>[] = [];
    for (let at = 0; at < places.length; at += READ_AT_ONCE)
      records.push(...(await Promise.all(places.slice(at, at + READ_AT_ONCE).map(read))));
    return records;
  }

  async function bucketsOn(
    customer: MeteredCustomer,
    asked: { closedDay: number; filter: BucketUsageFilter; page: Page; asker: Asker },
  ): Promise<PageOf<UsageDay>> {
    const { closedDay, filter, page, asker } = asked;
    const { accountId } = customer;
    const { fromDay, toDay } = rangeOf(filter, { first: firstDayOf(customer), closedDay });
    const { bucketNumber } = filter;
    const ofNumber = bucketNumber === undefined ? {} : { bucketNumber };
    const isNow = today() >= (filter.fromDay ?? 0) && today() <= (filter.toDay ?? Number.MAX_SAFE_INTEGER);
    const isWanted = (usage: UsageDay) => usage.bucketId !== undefined && matches(usage, filter);
    const fresh = isNow
      ? await usages.current(accountId, { page, asker, isWanted, withoutRecordOf: closedDay, ...ofNumber })
      : NO_PAGE;
    const closed = { fromDay, toDay, throughDay: closedDay, fresh, filter, page, asker };
    return closedBuckets(customer, closed);
  }

  /** Behind the fresh ones: of an account that makes and deletes buckets all day a day has millions. */
  async function closedBuckets(
    customer: MeteredCustomer,
    asked: DayRange & {
      throughDay: number;
      fresh: PageOf<UsageDay>;
      filter: BucketUsageFilter;
      page: Page;
      asker: Asker;
    },
  ): Promise<PageOf<UsageDay>> {
    const { fromDay, toDay, throughDay, fresh, filter, page, asker } = asked;
    const { accountId } = customer;
    const { bucketNumber } = filter;
    // For one look each: sums and pages of the asker do not wait for the end of his long searches.
    const inPlace = <T>(look: () => Promise<T>) => usages.inPlace(asker, look);
    if (bucketNumber !== undefined) {
      const range = { fromDay, toDay, bucketNumber };
      const found = fromDay > toDay ? [] : await inPlace(() => usages.byBucket(accountId, range));
      const closed = found.filter((usage) => matches(usage, filter)).sort(byNewest);
      const fromAt = Math.max(0, (page.page - 1) * page.size - fresh.total);
      const rest = closed.slice(fromAt, fromAt + page.size - fresh.items.length);
      return { items: [...fresh.items, ...rest], total: fresh.total + closed.length };
    }
    const counts = await inPlace(() => countsOf(customer, throughDay));
    const days = descending(fromDay, toDay).filter((day) => counts.has(day));
    if (filter.name !== undefined) return search(accountId, { fresh, days, counts, filter, page, asker });
    const total = days.reduce((sum, day) => sum + (counts.get(day) ?? 0), fresh.total);
    const items = [...fresh.items];
    let skipped = Math.max(0, (page.page - 1) * page.size - fresh.total);
    for (const day of days) {
      if (items.length >= page.size) break;
      const count = counts.get(day) ?? 0;
      if (skipped < count) {
        const size = page.size - items.length;
        const part = { offset: skipped, size };
        items.push(...(await inPlace(() => dayPages.read(accountId, day, part))));
      }
      skipped = Math.max(0, skipped - count);
    }
    return { items, total };
  }

  /** By name: there is no index, so all records of these days are read, and those of the page kept. */
  async function search(
    accountId: AccountId,
    asked: {
      fresh: PageOf<UsageDay>;
      days: readonly number[];
      counts: ReadonlyMap<number, number>;
      filter: BucketUsageFilter;
      page: Page;
      asker: Asker;
    },
  ): Promise<PageOf<UsageDay>> {
    const { fresh, counts, filter, page, asker } = asked;
    const items = [...fresh.items];
    let total = fresh.total;
    const note = (usage: UsageDay) => {
      if (!matches(usage, filter)) return;
      if (total >= (page.page - 1) * page.size && items.length < page.size) items.push(usage);
      total++;
    };
    let walkedCount = 0;
    for (const [toDay = 0, ...others] of runsOf(asked.days, counts)) {
      requireHere(asker);
      const fromDay = others.at(-1) ?? toDay;
      await usages.inPlace(asker, async () => {
        if (others.length > 0) {
          const found = await usages.byBucket(accountId, { fromDay, toDay });
          for (const usage of found.sort(byNewest)) note(usage);
          return;
        }
        const walk = { day: toDay, wanted: counts.get(toDay) ?? 0 };
        for await (const usage of usages.walkDay(accountId, walk)) {
          if (++walkedCount % SEARCHED_RECORDS === 0) requireHere(asker);
          note(usage);
        }
      });
    }
    return { items, total };
  }

  return {
    async list(customers, filter, page, asker = OPERATORS) {
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
          // The oldest come first: of an early day, which has few, the others are not looked at.
          const untilCount = Math.min(count, skipped + page.size - places.length);
          let seenCount = 0;
          for (let at = 0; seenCount < untilCount && at < customers.length; at++) {
            const customer = customers[at];
            if (customer === undefined || !isOf(firsts[at] ?? 0)) continue;
            if (seenCount++ >= skipped) places.push({ customer, day });
          }
        }
        skipped = Math.max(0, skipped - count);
      }
      const total = groups.reduce((sum, { count }) => sum + count, 0);
      return { items: await readAll(places, { closedDay, asker }), total };
    },

    async get(customer, day, asker = OPERATORS) {
      const closedDay = (await usages.lastClosedDay()) ?? -1;
      const first = firstDayOf(customer);
      const isThere = first > closedDay ? day === today() : day >= first && day <= closedDay;
      return isThere ? (await readAll([{ customer, day }], { closedDay, asker }))[0] : undefined;
    },

    async buckets(customer, filter, page, asker = OPERATORS) {
      const closedDay = (await usages.lastClosedDay()) ?? -1;
      const { items, total } = await bucketsOn(customer, { closedDay, filter, page, asker });
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

/** Days, the newest first, in runs that are read at once: of so many records together, or single days. */
function runsOf(days: readonly number[], counts: ReadonlyMap<number, number>): number[][] {
  const runs: number[][] = [];
  let records = 0;
  for (const day of days) {
    const count = counts.get(day) ?? 0;
    const last = runs.at(-1);
    if (last === undefined || records + count > SEARCHED_RECORDS) {
      runs.push([day]);
      records = count;
    } else {
      last.push(day);
      records += count;
    }
  }
  return runs;
}

function byNewest(a: UsageDay, b: UsageDay): number {
  return b.day - a.day;
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

function bucketUsage(usage: UsageDay): BucketUsage[] {
  if (usage.bucketId === undefined) return [];
  const bucketNumber = bucketNumberOf(usage.bucketId);
  return [{ id: bucketNumber * BUCKET_ID_DAYS + usage.day, bucketNumber, usage }];
}
