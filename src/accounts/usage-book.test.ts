// Lists of daily records against all records made one by one: pages, days, filters, ids, and what was stored.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { runUntilIdle } from '../../tests/support/metadata/run-worker.ts';
import { nextTurn } from '../base/async/next-turn.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from '../metadata/usage/close-usage-worker.ts';
import { accountTrafficId, bucketNumberOf, DEFAULT_METERING, METERED } from '../types/metered.ts';
import type { AccountId, BucketId, BucketName } from '../types/names.ts';
import { DAY_MS } from '../types/usage.ts';
import { createUsageBook, type MeteredCustomer, readUsageId, type UsageBook, usageId } from './usage-book.ts';
import { createUsages } from './usages.ts';

const PAGE = { page: 1, size: 100 };
const accountOf = (id: number) => String(id).padStart(12, '0') as AccountId;
const bucketOf = (id: number, at = 0) => `${id}${at}`.padEnd(16, 'b') as BucketId;

let world: MetadataShards;
let book: UsageBook;
let customers: MeteredCustomer[];
let first: number;

const today = () => Math.floor(world.clock.wallMs() / DAY_MS);

async function addCustomer(id: number, buckets = 1): Promise<void> {
  customers.push({ id, accountId: accountOf(id), createdAtMs: world.clock.wallMs() });
  for (let at = 0; at < buckets; at++)
    await world.execute(
      'create-bucket',
      { bucketId: bucketOf(id, at), name: `bucket-${id}-${at}` as BucketName, owner: accountOf(id) },
      id % 2,
    );
}

/** As a gateway counts it. */
async function get(id: number, at?: number): Promise<void> {
  const bucketId = at === undefined ? accountTrafficId(accountOf(id)) : bucketOf(id, at);
  const figures = METERED.map((field) => (field === 'getCalls' ? 1 : 0));
  const days = [{ accountId: accountOf(id), bucketId, day: today(), figures }];
  await world.execute('add-traffic', { days }, at === undefined ? 0 : id % 2);
}

function closeDays(): Promise<void> {
  const { shards: metadata, clock } = world;
  const telemetry = { gauge() {} };
  const how = { metadata, shards: () => [0, 1], clock, metering: DEFAULT_METERING, telemetry };
  return runUntilIdle(createUsageCloser(how));
}

async function nextDay(): Promise<void> {
  world.clock.advance(DAY_MS);
  world.clock.advance(CLOSED_AFTER_MS);
  await closeDays();
  world.clock.advance(-CLOSED_AFTER_MS);
}

beforeEach(async () => {
  world = await openMetadata({ shardCount: 2 });
  world.clock.advance(12 * 3_600_000);
  book = createUsageBook(createUsages(world.shards, world.clock), world.clock);
  customers = [];
  first = today();
});
afterEach(() => world.shards.close());

test('a sub-account has one record for each day that is over, and on its first day that day', async () => {
  await addCustomer(1);
  await get(1, 0);
  await get(1);
  const fresh = await book.list(customers, {}, PAGE);
  expect(fresh).toMatchObject({
    total: 1,
    items: [{ id: usageId(1, first), usage: { day: first, isClosed: false, getCalls: 2 } }],
  });
  await nextDay();
  await addCustomer(2, 0);
  await nextDay();
  await addCustomer(3);
  const { items, total } = await book.list(customers, {}, PAGE);
  expect(total).toBe(4);
  expect(
    items.map(({ id, customer, usage }) => [
      id,
      customer.id,
      usage.day - first,
      usage.isClosed,
      usage.getCalls,
    ]),
  ).toEqual([
    [usageId(3, first + 2), 3, 2, false, 0],
    [usageId(1, first + 1), 1, 1, true, 0],
    [usageId(2, first + 1), 2, 1, true, 0],
    [usageId(1, first), 1, 0, true, 2],
  ]);
  const dayOf = async (filter: object) =>
    (await book.list(customers, filter, PAGE)).items.map(({ id }) => readUsageId(id));
  expect(await dayOf({ latest: true })).toEqual([
    { customerId: 3, day: first + 2 },
    { customerId: 1, day: first + 1 },
    { customerId: 2, day: first + 1 },
  ]);
  expect(await dayOf({ toDay: first })).toEqual([{ customerId: 1, day: first }]);
  expect(await dayOf({ fromDay: first + 1, toDay: first + 1 })).toHaveLength(2);
  expect(await dayOf({ fromDay: first + 3 })).toEqual([]);
  expect(await book.list([], {}, PAGE)).toEqual({ items: [], total: 0 });
});

test('pages of every size hold each record once, in one order', async () => {
  for (let id = 1; id <= 4; id++) {
    await addCustomer(id, 2);
    await nextDay();
  }
  await addCustomer(5, 2);
  const [customer] = customers;
  if (customer === undefined) throw new Error('there is one');
  const all = (await book.list(customers, {}, PAGE)).items.map(({ id }) => id);
  const buckets = (await book.buckets(customer, {}, PAGE)).items.map(({ id }) => id);
  expect([all.length, new Set(all).size]).toEqual([4 + 3 + 2 + 1 + 1, 11]);
  expect([buckets.length, new Set(buckets).size]).toEqual([8, 8]);
  for (const size of [1, 2, 3, 7]) {
    const paged: number[][] = [[], []];
    for (let page = 1; page <= 12; page++) {
      const found = await book.list(customers, {}, { page, size });
      const ofBuckets = await book.buckets(customer, {}, { page, size });
      expect([found.total, ofBuckets.total]).toEqual([11, 8]);
      paged[0]?.push(...found.items.map(({ id }) => id));
      paged[1]?.push(...ofBuckets.items.map(({ id }) => id));
    }
    expect(paged, `size ${size}`).toEqual([all, buckets]);
  }
});

test('a page of early days, which have few sub-accounts, does not look at all of them for each day', async () => {
  const [count, days] = [2000, 500];
  const all = Array.from({ length: count }, (_, at) => ({
    id: at + 1,
    accountId: accountOf(at),
    createdAtMs: (at === 0 ? 1000 : 1000 + days) * DAY_MS,
  }));
  let looks = 0;
  const counted = new Proxy(all, {
    get(target, name, self) {
      if (typeof name === 'string' && /^\d+$/.test(name)) looks++;
      return Reflect.get(target, name, self);
    },
  });
  const usages = {
    ...createUsages(world.shards, world.clock),
    lastClosedDay: async () => 1000 + days,
    sums: async () => [],
  };
  const found = await createUsageBook(usages, world.clock).list(
    counted,
    { toDay: 999 + days },
    { page: 1, size: 1000 },
  );
  expect(found.items.map(({ customer }) => customer.id)).toEqual(Array.from({ length: days }, () => 1));
  expect(looks).toBeLessThanOrEqual(2 * count);
});

test('a record is found by its id, and no other day has one', async () => {
  await addCustomer(1);
  await get(1, 0);
  const [customer] = customers;
  if (customer === undefined) throw new Error('there is one');
  expect(await book.get(customer, first)).toMatchObject({ usage: { isClosed: false, getCalls: 1 } });
  await nextDay();
  expect(await book.get(customer, first)).toMatchObject({
    id: usageId(1, first),
    usage: { isClosed: true, getCalls: 1 },
  });
  for (const day of [first - 1, first + 1, 0]) expect(await book.get(customer, day)).toBeUndefined();
});

test('buckets: a new one has a record of today; they are found by name, number and day; requests without one are none', async () => {
  await addCustomer(1, 2);
  await get(1);
  const [customer] = customers;
  if (customer === undefined) throw new Error('there is one');
  const namesOf = async (filter: object) =>
    (await book.buckets(customer, filter, PAGE)).items.map(({ usage }) => [
      usage.bucketName,
      usage.day - first,
    ]);
  expect(await namesOf({})).toEqual([
    ['bucket-1-0', 0],
    ['bucket-1-1', 0],
  ]);
  await nextDay();
  await world.execute(
    'create-bucket',
    { bucketId: bucketOf(1, 2), name: 'late' as BucketName, owner: accountOf(1) },
    0,
  );
  expect(await namesOf({})).toEqual([
    ['late', 1],
    ['bucket-1-0', 0],
    ['bucket-1-1', 0],
  ]);
  expect(await namesOf({ name: 'LAT' })).toEqual([['late', 1]]);
  await nextDay();
  expect(await namesOf({ latest: true })).toEqual([
    ['bucket-1-0', 1],
    ['bucket-1-1', 1],
    ['late', 1],
  ]);
  expect(await namesOf({ name: '1-1' })).toEqual([
    ['bucket-1-1', 1],
    ['bucket-1-1', 0],
  ]);
  expect(await namesOf({ bucketNumber: bucketNumberOf(bucketOf(1, 2)) })).toEqual([['late', 1]]);
  const bucketNumber = bucketNumberOf(bucketOf(1, 1));
  expect(await namesOf({ bucketNumber })).toEqual([
    ['bucket-1-1', 1],
    ['bucket-1-1', 0],
  ]);
  expect(await namesOf({ bucketNumber, toDay: first })).toEqual([['bucket-1-1', 0]]);
  expect(await namesOf({ bucketNumber, name: '1-0' })).toEqual([]);
  expect(await namesOf({ bucketNumber: Number.MAX_SAFE_INTEGER })).toEqual([]);
  expect(await namesOf({ bucketNumber: 16 ** 9 - 1 })).toEqual([]);
  expect(await namesOf({ fromDay: first, toDay: first })).toHaveLength(2);
});

test('what is stored is that of the last closed day, in shards that are ahead, too', async () => {
  await addCustomer(1);
  await addCustomer(2);
  const sized = (sizeBytes: number) =>
    world.put('k', {
      bucketId: bucketOf(2),
      data: world.newData({ sizeBytes }),
      version: { owner: accountOf(2) },
    });
  await sized(5000);
  expect((await book.stored())(accountOf(2))).toEqual({ activeBytes: 0, deletedBytes: 0 });
  await nextDay();
  const stored = await book.stored();
  expect([1, 2, 3].map((id) => stored(accountOf(id)).activeBytes)).toEqual([0, 5048, 0]);
  await sized(6000);
  world.clock.advance(DAY_MS + CLOSED_AFTER_MS);
  const { shards, clock } = world;
  await runUntilIdle(
    createUsageCloser({
      metadata: shards,
      shards: () => [0],
      clock,
      metering: DEFAULT_METERING,
      telemetry: { gauge() {} },
    }),
  );
  const ahead = createUsageBook(createUsages(shards, clock), clock);
  expect((await ahead.stored())(accountOf(2)).activeBytes).toBe(5048);
  await closeDays();
  expect((await ahead.stored())(accountOf(2))).toEqual({ activeBytes: 6048, deletedBytes: 5000 });
});

/** The book asks two shards from here on; gives the most of these queries that have been under way at once. */
function countQueries(names: readonly string[]): () => number {
  let [underWay, most] = [0, 0];
  const { shards } = world;
  const query: typeof shards.query = async (...asked) => {
    if (!names.includes(asked[1])) return shards.query(...asked);
    most = Math.max(most, ++underWay);
    try {
      await nextTurn();
      return await shards.query(...asked);
    } finally {
      underWay--;
    }
  };
  const metadata = { shardCount: 2, query, execute: shards.execute.bind(shards) };
  book = createUsageBook(createUsages(metadata, world.clock), world.clock);
  return () => most;
}

test('the present of few accounts is read at once, however many lists ask for it', async () => {
  for (let id = 1; id <= 12; id++) await addCustomer(id);
  const most = countQueries(['sum-current-usages']);
  const lists = await Promise.all([1, 2, 3].map(() => book.list(customers, {}, PAGE)));
  expect(lists.map(({ total }) => total)).toEqual([12, 12, 12]);
  // Four accounts, each in two shards.
  expect([most() > 0, most() <= 8]).toEqual([true, true]);
});

test('closed days of few accounts are read at once, however many lists ask for them', async () => {
  for (let id = 1; id <= 12; id++) await addCustomer(id);
  await nextDay();
  const most = countQueries(['count-usages', 'list-usages', 'sum-usages']);
  const asker = { payer: 'partner 1' };
  const lists = await Promise.all([
    ...customers.map((customer) => book.buckets(customer, { name: 'bucket' }, PAGE, asker)),
    ...customers.map((customer) => book.list([customer], {}, PAGE, asker)),
  ]);
  expect(lists.map(({ total }) => total)).toEqual(lists.map(() => 1));
  const gone = () => AbortSignal.abort();
  const [customer] = customers as [MeteredCustomer];
  const search = book.buckets(customer, { name: 'bucket' }, PAGE, { ...asker, gone });
  await expect(search).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  // Four at once, each in two shards.
  expect([most() > 0, most() <= 8]).toEqual([true, true]);
});
