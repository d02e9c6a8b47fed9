import { beforeEach, expect, test, vi } from 'vitest';
import {
  type BilledWorld,
  billedAmong,
  billedCustomer,
  openBilledWorld,
  TB,
  usedDays,
} from '../../tests/support/billing/billed-world.ts';
import { AppError } from '../types/errors.ts';
import { dayOf } from '../types/months.ts';
import type { InvoiceFilter } from './invoice-book.ts';
import { createInvoices } from './invoices.ts';

const MARCH = { fromMs: Date.UTC(2026, 2, 1), toMs: Date.UTC(2026, 2, 31) };
const APRIL = { fromMs: Date.UTC(2026, 3, 1), toMs: Date.UTC(2026, 3, 30) };
const ALL = { page: 1, size: 100 };
const LIST = { from: '2026-01-01', currency: 'USD', prices: { activeStorage: '6', minimumTB: '0' } };

let billed: BilledWorld;
beforeEach(async () => {
  billed = await openBilledWorld();
  const [ann, bob] = [
    billedCustomer(11, { createdAtMs: MARCH.fromMs }),
    billedCustomer(12, { controlId: 2, createdAtMs: APRIL.fromMs }),
  ];
  billed.customers.push(ann, bob);
  billed.days.push(...usedDays(ann, { fromMs: MARCH.fromMs, toMs: APRIL.toMs }, { paddedBytes: TB }));
  billed.days.push(...usedDays(bob, APRIL, { paddedBytes: 2 * TB }));
  billed.lastClosedDay = dayOf(APRIL.toMs);
  await billed.invoices.setPriceList(LIST);
});

async function fieldsOf(doing: Promise<unknown>): Promise<object | undefined> {
  const error = await doing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AppError);
  return (error as AppError).fields;
}

const ids = async (filter: InvoiceFilter, page = ALL) => {
  const { items, total } = await billed.invoices.list(filter, page);
  return [items.map(({ id }) => id), total];
};

test('months are closed in order, once all their days are counted, and never twice', async () => {
  const { invoices } = billed;
  expect(await fieldsOf(invoices.close('2026-04'))).toEqual({
    month: 'comes behind 2026-03, which is not closed yet',
  });
  expect(await fieldsOf(invoices.close('2026-02'))).toEqual({
    month: 'is before 2026-03, the first month with invoices',
  });
  expect(await invoices.close('2026-03')).toEqual({ createdCount: 1, existingCount: 0 });
  expect(await invoices.close('2026-04')).toEqual({ createdCount: 2, existingCount: 0 });
  expect(await fieldsOf(invoices.close('2026-05'))).toEqual({
    month: 'is still open: it ends on 2026-05-31, and counted to 2026-04-30',
  });
  expect(await fieldsOf(invoices.close('2026-5'))).toEqual({ month: 'must be a month, as 2026-01' });
  const before = await invoices.list({}, ALL);
  // Neither other usage nor another name changes what is closed.
  billed.days = [];
  expect(await invoices.close('2026-03')).toEqual({ createdCount: 0, existingCount: 1 });
  expect(await invoices.close('2026-04')).toEqual({ createdCount: 0, existingCount: 2 });
  expect(await invoices.list({}, ALL)).toEqual(before);
});

test('of sub-accounts only those are read whole that are charged at once, and none to know which month is next', async () => {
  const { invoices } = billed;
  billed.customers = Array.from({ length: 130 }, (_, at) =>
    billedCustomer(at + 1, { createdAtMs: MARCH.fromMs }),
  );
  billed.lastClosedDay = undefined;
  expect(await invoices.closeNext()).toBeUndefined();
  expect(billed.readCounts).toEqual([]);
  billed.lastClosedDay = dayOf(APRIL.toMs);
  expect(await invoices.closeNext()).toBe('2026-03');
  expect(billed.readCounts).toEqual([50, 50, 30]);
  expect((await invoices.preview('2026-04', {}, { page: 2, size: 100 })).items).toHaveLength(30);
  expect(billed.readCounts.slice(3)).toEqual([30]);
  // A long page of closed ones is read in parts, too.
  const asked = vi.spyOn(billed.world.shards, 'query');
  expect((await invoices.list({}, { page: 1, size: 1000 })).items).toHaveLength(130);
  const read = asked.mock.calls.filter(([, name]) => name === 'get-invoices');
  expect(read.map(([, , query]) => (query as { ids: number[] }).ids.length)).toEqual([100, 30]);
});

test('a month whose closing was cut short goes on with the prices it began with', async () => {
  const { world, invoices } = billed;
  await world.execute('begin-month', { month: '2026-03' });
  expect(await fieldsOf(invoices.setPriceList({ ...LIST, from: '2026-03-31' }))).toEqual({
    from: 'must be behind 2026-03, whose invoices are written',
  });
  await invoices.setPriceList({ ...LIST, from: '2026-04-01', prices: { activeStorage: '7' } });
  expect(await world.execute('begin-month', { month: '2026-04' })).toEqual({
    kind: 'out-of-order',
    next: '2026-03',
  });
  expect(await invoices.closeNext()).toBe('2026-03');
  expect(await invoices.closeNext()).toBe('2026-04');
  expect(await invoices.closeNext()).toBeUndefined();
  const totals = (await invoices.list({ subAccountId: 11 }, ALL)).items.map(({ month, total }) => [
    month,
    total,
  ]);
  expect(totals).toEqual([
    ['2026-04', '7.00'],
    // 31 days of 30.
    ['2026-03', '6.20'],
  ]);
  expect(await world.execute('begin-month', { month: '2026-03' })).toEqual({ kind: 'closed' });
  expect(await world.execute('close-invoices', { month: '2026-04', invoices: [] })).toEqual({
    kind: 'not-begun',
  });
  expect(await world.execute('end-month', { month: '2026-04' })).toEqual({ kind: 'ended' });
  expect(await world.execute('end-month', { month: '2026-06' })).toEqual({ kind: 'not-begun' });
});

test('an invoice that is sent a second time with other figures stays as it was', async () => {
  const { world, invoices } = billed;
  await world.execute('begin-month', { month: '2026-03' });
  const { items } = await invoices.preview('2026-03', {}, ALL);
  const [computed] = items;
  if (computed === undefined) throw new Error('there is a customer');
  const write = (total: string) =>
    world.execute('close-invoices', { month: '2026-03', invoices: [{ ...computed, total }] });
  expect(await write('1.00')).toEqual({ kind: 'closed', createdCount: 1, existingCount: 0 });
  expect(await write('2.00')).toEqual({ kind: 'closed', createdCount: 0, existingCount: 1 });
  expect(await invoices.get(1)).toMatchObject({ total: '1.00' });
});

test('numbers have no gaps, and invoices of one control account and month share one', async () => {
  billed.customers.push(billedCustomer(13, { controlId: 2, createdAtMs: APRIL.fromMs }));
  await billed.invoices.close('2026-03');
  await billed.invoices.close('2026-04');
  const { items } = await billed.invoices.list({}, ALL);
  expect(
    items.map(({ id, month, customer, controlInvoiceId }) => [id, month, customer.id, controlInvoiceId]),
  ).toEqual([
    [4, '2026-04', 13, 3],
    [3, '2026-04', 12, 3],
    [2, '2026-04', 11, 2],
    [1, '2026-03', 11, 1],
  ]);
});

test('lists filter by every field, page, and tell the true total', async () => {
  await billed.invoices.close('2026-03');
  await billed.invoices.close('2026-04');
  expect(await ids({})).toEqual([[3, 2, 1], 3]);
  expect(await ids({}, { page: 2, size: 2 })).toEqual([[1], 3]);
  expect(await ids({}, { page: 9, size: 2 })).toEqual([[], 3]);
  expect(await ids({ latest: true })).toEqual([[3, 2], 2]);
  expect(await ids({ from: '2026-04-01' })).toEqual([[3, 2], 2]);
  expect(await ids({ from: '2026-03-02', to: '2026-04-29' })).toEqual([[], 0]);
  expect(await ids({ to: '2026-03-31' })).toEqual([[1], 1]);
  expect(await ids({ periodEnd: '2026-04-30' })).toEqual([[3, 2], 2]);
  expect(await ids({ controlAccountId: 2 })).toEqual([[3], 1]);
  expect(await ids({ governanceAccountId: 900, subAccountId: 11 })).toEqual([[2, 1], 2]);
  expect(await ids({ channelAccountId: 1 })).toEqual([[], 0]);
  expect(await ids({ accountNumber: '000000000012' })).toEqual([[3], 1]);
  expect(await ids({ id: 2 })).toEqual([[2], 1]);
  expect(await ids({ subInvoiceId: 2, controlInvoiceId: 1 })).toEqual([[], 0]);
  expect(await ids({ within: { controlAccountId: 2 } })).toEqual([[3], 1]);
  expect(await ids({ within: { governanceAccountId: 901 } })).toEqual([[], 0]);
  expect(await ids({ within: { controlAccountId: 2 }, governanceAccountId: 901 })).toEqual([[3], 1]);
  expect(await billed.invoices.get(3, { controlAccountId: 2 })).toMatchObject({ id: 3, isClosed: true });
  await expect(billed.invoices.get(3, { controlAccountId: 1 })).rejects.toMatchObject({
    code: 'NoSuchEntity',
  });
  await expect(billed.invoices.get(4)).rejects.toMatchObject({ code: 'NoSuchEntity' });
});

test('a preview goes to the present day, is marked, and becomes what is closed', async () => {
  const { invoices } = billed;
  billed.nowMs = Date.UTC(2026, 3, 15, 12);
  const { items, total } = await invoices.preview('2026-04', {}, ALL);
  expect(items.map((item) => [item.customer.id, item.total, item.isClosed, item.id])).toEqual([
    [11, '3.00', false, 0],
    [12, '6.00', false, 0],
  ]);
  expect(total).toBe(2);
  expect((await invoices.preview('2026-04', { controlAccountId: 2 }, ALL)).total).toBe(1);
  expect(await fieldsOf(invoices.preview('2026-05', {}, ALL))).toEqual({ month: 'has not begun yet' });
  const unknown = { subAccountId: 99 };
  expect(await fieldsOf(invoices.preview('2026-04', unknown, ALL))).toEqual({ subAccountId: 'is not known' });
  billed.nowMs = Date.UTC(2026, 4, 3);
  const whole = await invoices.preview('2026-04', { subAccountId: 12 }, ALL);
  await invoices.close('2026-03');
  await invoices.close('2026-04');
  const closed = await invoices.preview('2026-04', { subAccountId: 12 }, ALL);
  const numbers = { id: 3, controlInvoiceId: 3, isClosed: true, closedAtMs: expect.any(Number) };
  expect(closed.items).toEqual(whole.items.map((item) => ({ ...item, ...numbers })));
});

test('months without a price list, without sub-accounts, or without any charge have no invoices', async () => {
  const empty = await openBilledWorld();
  expect(await fieldsOf(empty.invoices.close('2026-04'))).toEqual({
    month: 'has no price list that holds in it',
  });
  expect(await fieldsOf(empty.invoices.preview('2026-04', {}, ALL))).toEqual({
    month: 'has no price list that holds in it',
  });
  await empty.invoices.setPriceList(LIST);
  expect(await fieldsOf(empty.invoices.close('2026-04'))).toEqual({ month: 'there are no sub-accounts yet' });
  expect(await empty.invoices.closeNext()).toBeUndefined();
  const createdAtMs = MARCH.fromMs;
  const trial = [{ state: 'trial' as const, fromMs: createdAtMs }];
  const gone = [
    { state: 'paid' as const, fromMs: createdAtMs },
    { state: 'deleted' as const, fromMs: createdAtMs + 1 },
  ];
  empty.customers.push(billedCustomer(1, { createdAtMs, history: trial }));
  empty.customers.push(billedCustomer(2, { createdAtMs, history: gone }));
  empty.lastClosedDay = dayOf(APRIL.toMs);
  expect(await empty.invoices.close('2026-03')).toEqual({ createdCount: 1, existingCount: 0 });
  expect(await empty.invoices.close('2026-04')).toEqual({ createdCount: 0, existingCount: 0 });
});

test('price lists are replaced by day, and two set at once leave both', async () => {
  const { invoices } = billed;
  const set = (from: string, price: string) =>
    invoices.setPriceList({ ...LIST, from, prices: { activeStorage: price } });
  await Promise.all([set('2026-05-01', '1'), set('2026-06-01', '2'), set('2026-07-01', '3')]);
  await set('2026-06-01', '4');
  const lists = await invoices.priceLists();
  expect(lists.map(({ from, prices }) => [from, prices.activeStorage])).toEqual([
    ['2026-01-01', '6'],
    ['2026-05-01', '1'],
    ['2026-06-01', '4'],
    ['2026-07-01', '3'],
  ]);
  expect(await fieldsOf(set('2026-08-01', '-1'))).toHaveProperty(['prices.activeStorage']);
});

test('another gateway sees what one has closed', async () => {
  const other = createInvoices({
    metadata: billed.world.shards,
    customers: billedAmong(() => []),
    usages: { byAccount: async () => [], lastClosedDay: async () => undefined },
    clock: { wallMs: () => 0 },
  });
  expect((await other.list({}, ALL)).total).toBe(0);
  await billed.invoices.close('2026-03');
  const [first, second] = await Promise.all([other.list({}, ALL), other.list({}, ALL)]);
  expect([first.total, second.total]).toEqual([1, 1]);
});
