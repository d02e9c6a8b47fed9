import fc from 'fast-check';
import { expect, test } from 'vitest';
import { independentTotal } from '../../tests/support/billing/independent-invoice.ts';
import { dateOf, daysOf } from '../types/months.ts';
import type { AccountId } from '../types/names.ts';
import type { PriceListRecord, Prices } from '../types/records/billing-records.ts';
import { DAY_MS, METERED_NOTHING, type UsageDay, type UsageFigures } from '../types/usage.ts';
import { computeInvoice, type StateSince } from './compute-invoice.ts';

const GB = 2 ** 30;
const TB = 2 ** 40;
const APRIL = daysOf('2026-04');

function prices(changed: Partial<Prices> = {}): Prices {
  return {
    activeStorage: '5.99',
    deletedStorage: '5.99',
    minimumTB: '1',
    minimumStorage: '5.99',
    apiCalls: '0',
    ingress: '0',
    egress: '0.04',
    ...changed,
  };
}

function priceList(from: string, changed: Partial<Prices> = {}): PriceListRecord {
  return { from, currency: 'USD', fractionDigits: 2, prices: prices(changed), changedAtMs: 0 };
}

/** Days of April 2026 by their number in the month, both ends inclusive. */
function april(from: number, to: number, figures: Partial<UsageFigures>): UsageDay[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({
    ...METERED_NOTHING,
    ...figures,
    day: APRIL.fromDay + from - 1 + at,
    accountId: '000000000001' as AccountId,
    isClosed: true,
  }));
}

function aprilMs(dayOfMonth: number, hour = 0): number {
  return Date.UTC(2026, 3, dayOfMonth, hour);
}

const ALWAYS_PAID: StateSince[] = [{ state: 'paid', fromMs: 0 }];
const LISTS = [priceList('2026-01-01')];

test('a GB-day costs 0.00019499 where a TB-month costs 5.99, and one TB for a month costs just that', () => {
  const days = april(1, 30, { paddedBytes: TB });
  const invoice = computeInvoice({ month: '2026-04', history: ALWAYS_PAID, days, priceLists: LISTS });
  expect(invoice.lines.activeStorage).toEqual({
    quantity: '30720',
    unitCost: '0.00019499',
    totalCost: '5.99',
  });
  expect(invoice.lines.minimumActiveStorage).toEqual({ quantity: '0', unitCost: '5.99', totalCost: '0' });
  expect(invoice.lines.egress.unitCost).toBe('0.04');
  expect(invoice.total).toBe('5.99');
});

test('one day of a month without any data costs the minimum of 1 TB for that day', () => {
  const history: StateSince[] = [{ state: 'paid', fromMs: aprilMs(30, 9) }];
  const invoice = computeInvoice({ month: '2026-04', history, days: [], priceLists: LISTS });
  expect(invoice.lines.minimumActiveStorage).toEqual({
    quantity: '0.0333333',
    unitCost: '5.99',
    totalCost: '0.19966667',
  });
  expect(invoice.total).toBe('0.20');
  expect(invoice.days).toEqual({ charged: 1, trial: 0, deleted: 0, none: 29, suspended: 0 });
});

test('a hundred TB cost a hundred times as much as one: unit costs are rounded for show alone', () => {
  const days = april(1, 30, { paddedBytes: 100 * TB });
  const invoice = computeInvoice({ month: '2026-04', history: ALWAYS_PAID, days, priceLists: LISTS });
  expect(invoice.total).toBe('599.00');
});

/**
 * | days | state | active | deleted | egress |
 * | 1-5 | trial, until the 5th at 18:00 | 2 TB | | 500 GB |
 * | 6-15 | paid | 2 TB | | 10 GB a day |
 * | 16-20 | paid | 0.5 TB | 1.5 TB | |
 * | 21-30 | suspended | 0.5 TB | 1.5 TB | |
 *
 * active: 10 x 2048 + 15 x 512 = 28160 GB-days, x 5.99/1024/30 = 5.49083333. deleted: 15 x 1536 = 23040 GB-days = 4.4925.
 * egress: 100 GB x 0.04 = 4. minimum: 25/30 TB-months, and 28160/30720 are stored: nothing is missing. Together 13.98333333.
 */
const WORKED: StateSince[] = [
  { state: 'trial', fromMs: Date.UTC(2026, 2, 6) },
  { state: 'paid', fromMs: aprilMs(5, 18) },
  { state: 'suspended', fromMs: aprilMs(21, 8) },
];
const WORKED_DAYS = [
  ...april(1, 5, { paddedBytes: 2 * TB, downloadBytes: 100 * GB }),
  ...april(6, 15, { paddedBytes: 2 * TB, downloadBytes: 10 * GB }),
  ...april(16, 30, { paddedBytes: TB / 2, deletedBytes: 1.5 * TB }),
];

test('a month worked through by hand: a trial that ends, early deletes, a suspension', () => {
  const input = { month: '2026-04', history: WORKED, days: WORKED_DAYS, priceLists: LISTS };
  const { lines, total, days } = computeInvoice(input);
  expect(lines.activeStorage).toEqual({ quantity: '28160', unitCost: '0.00019499', totalCost: '5.49083333' });
  expect(lines.deletedStorage).toEqual({ quantity: '23040', unitCost: '0.00019499', totalCost: '4.4925' });
  expect(lines.egress).toEqual({ quantity: '100', unitCost: '0.04', totalCost: '4' });
  expect(lines.minimumActiveStorage.totalCost).toBe('0');
  expect(total).toBe('13.98');
  expect(days).toEqual({ charged: 25, trial: 5, deleted: 0, none: 0, suspended: 10 });
  expect(independentTotal(input)).toBe(1398n);
});

test('a price that changes within a month holds from its day on, and the minimum goes by the average', () => {
  const priceLists = [
    ...LISTS,
    priceList('2026-04-11', { activeStorage: '6.99', minimumStorage: '6.99', egress: '0' }),
  ];
  const days = april(1, 30, { paddedBytes: TB / 2, downloadBytes: GB });
  const { lines, segments, total } = computeInvoice({
    month: '2026-04',
    history: ALWAYS_PAID,
    days,
    priceLists,
  });
  // 5120 GB-days at 5.99 and 10240 at 6.99: 0.99833333 + 2.33.
  expect(segments.map(({ from, to }) => [from, to])).toEqual([
    ['2026-04-01', '2026-04-10'],
    ['2026-04-11', '2026-04-30'],
  ]);
  expect(segments.map((segment) => segment.lines.activeStorage.totalCost)).toEqual(['0.99833333', '2.33']);
  expect(lines.activeStorage).toEqual({ quantity: '15360', unitCost: '0.00021669', totalCost: '3.32833333' });
  expect(lines.egress).toEqual({ quantity: '30', unitCost: '0.01333333', totalCost: '0.4' });
  // Half a TB is missing: at (5.99 x 10 + 6.99 x 20) / 30.
  expect(lines.minimumActiveStorage).toEqual({
    quantity: '0.5',
    unitCost: '6.65666667',
    totalCost: '3.32833333',
  });
  expect(total).toBe('7.06');
});

test('after its deletion an account pays for what it still has deleted, and no minimum', () => {
  const history: StateSince[] = [...ALWAYS_PAID, { state: 'deleted', fromMs: aprilMs(11) }];
  const days = april(1, 30, { deletedBytes: TB });
  const { lines, days: counted } = computeInvoice({ month: '2026-04', history, days, priceLists: LISTS });
  expect(lines.deletedStorage.totalCost).toBe('5.99');
  expect(lines.minimumActiveStorage.quantity).toBe('0.3333333');
  expect(counted).toEqual({ charged: 10, trial: 0, deleted: 20, none: 0, suspended: 0 });
});

test('storage above the minimum on some days makes up for less on others', () => {
  const days = april(1, 15, { paddedBytes: 2 * TB });
  const { lines } = computeInvoice({ month: '2026-04', history: ALWAYS_PAID, days, priceLists: LISTS });
  expect(lines.minimumActiveStorage.quantity).toBe('0');
});

test('what only compositions keep and metadata count as active, and calls are charged by the thousand', () => {
  const days = april(3, 3, {
    paddedBytes: GB,
    orphanedBytes: GB,
    metadataBytes: GB,
    getCalls: 1500,
    otherCalls: 500,
  });
  const priceLists = [priceList('2026-01-01', { apiCalls: '0.005' })];
  const { lines } = computeInvoice({ month: '2026-04', history: ALWAYS_PAID, days, priceLists });
  expect(lines.activeStorage.quantity).toBe('3');
  expect(lines.apiCalls).toEqual({ quantity: '2000', unitCost: '0.000005', totalCost: '0.01' });
});

test('days before the first price list are free', () => {
  const days = april(1, 30, { paddedBytes: TB });
  const priceLists = [priceList('2026-04-16')];
  const invoice = computeInvoice({ month: '2026-04', history: ALWAYS_PAID, days, priceLists });
  expect(invoice.total).toBe('3.00');
  expect(invoice.days.none).toBe(15);
});

test('a currency without cents is rounded to whole units, and one with mills to three digits', () => {
  const ofCurrency = (currency: string, fractionDigits: number) =>
    computeInvoice({
      month: '2026-04',
      history: WORKED,
      days: WORKED_DAYS,
      priceLists: [{ ...priceList('2026-01-01'), currency, fractionDigits }],
    }).total;
  expect(ofCurrency('JPY', 0)).toBe('14');
  expect(ofCurrency('KWD', 3)).toBe('13.983');
});

const price = fc.integer({ min: 0, max: 2_000_000_000 }).map((units) => (units / 1e8).toFixed(8));
const anyPrices: fc.Arbitrary<Prices> = fc.record({
  activeStorage: price,
  deletedStorage: price,
  minimumTB: fc.integer({ min: 0, max: 300 }).map((hundredths) => (hundredths / 100).toFixed(2)),
  minimumStorage: price,
  apiCalls: price,
  ingress: price,
  egress: price,
});
const anyHistory = fc
  .array(
    fc.record({
      state: fc.constantFrom<StateSince['state']>('trial', 'paid', 'suspended', 'deleted'),
      // Also on midnight, where days meet.
      fromMs: fc.integer({ min: -48, max: 24 * 40 }).map((hours) => aprilMs(1) + hours * 3_600_000),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((history) =>
    [...new Map(history.map((since) => [since.fromMs, since])).values()].sort((a, b) => a.fromMs - b.fromMs),
  );
const size = fc.integer({ min: 0, max: 4 * TB });
const count = fc.integer({ min: 0, max: 1_000_000 });
const anyDay = fc.record({
  ...(Object.fromEntries(
    Object.keys(METERED_NOTHING).map((name) => [name, name.endsWith('Calls') ? count : size]),
  ) as Record<keyof UsageFigures, fc.Arbitrary<number>>),
  day: fc.integer({ min: APRIL.fromDay - 2, max: APRIL.toDay + 2 }),
});

test('an invoice agrees to the cent with a calculation that was written independently', () => {
  const property = fc.property(
    fc.uniqueArray(anyDay, { selector: ({ day }) => day, maxLength: 34 }),
    anyHistory,
    fc.array(fc.record({ prices: anyPrices, day: fc.integer({ min: 1, max: 29 }) }), { maxLength: 3 }),
    anyPrices,
    (usages, history, changes, first) => {
      const days = usages.map((usage) => ({
        ...usage,
        accountId: '000000000001' as AccountId,
        isClosed: true,
      }));
      const lists = [{ from: '2026-03-20', prices: first }].concat(
        changes.map((change) => ({ from: dateOf(APRIL.fromDay + change.day), prices: change.prices })),
      );
      const priceLists = [...new Map(lists.map((list) => [list.from, list])).values()]
        .sort((a, b) => (a.from < b.from ? -1 : 1))
        .map((list) => ({ ...priceList(list.from), prices: list.prices }));
      const input = { month: '2026-04', history, days, priceLists };
      expect(
        computeInvoice(input)
          .total.replace('.', '')
          .replace(/^0+(?=\d)/, ''),
      ).toBe(String(independentTotal(input)));
    },
  );
  fc.assert(property, { numRuns: 300 });
});

test('the order of daily records does not change an invoice', () => {
  const inputs = [WORKED_DAYS, WORKED_DAYS.toReversed()].map((days) =>
    computeInvoice({ month: '2026-04', history: WORKED, days, priceLists: LISTS }),
  );
  expect(inputs[0]).toEqual(inputs[1]);
  expect(DAY_MS).toBe(86_400_000);
});
