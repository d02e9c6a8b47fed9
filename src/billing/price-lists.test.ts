import { expect, test } from 'vitest';
import { AppError } from '../types/errors.ts';
import { parseDate } from '../types/months.ts';
import type { PriceListRecord } from '../types/records/billing-records.ts';
import { checkPriceList, listInForce, type PriceListInput } from './price-lists.ts';

const GOOD: PriceListInput = { from: '2026-01-01', currency: 'USD', prices: { activeStorage: '5.99' } };

function problemsOf(input: unknown, others: PriceListRecord[] = []): object {
  try {
    checkPriceList(input as PriceListInput, others);
  } catch (error) {
    if (error instanceof AppError && error.code === 'ValidationError') return error.fields ?? {};
    throw error;
  }
  return {};
}

function withPrice(field: string, value: unknown): unknown {
  return { ...GOOD, prices: { activeStorage: '5.99', [field]: value } };
}

test('what a list leaves out: storage has one price, the minimum is 1 TB, all else is free', () => {
  expect(checkPriceList(GOOD, [])).toEqual({
    from: '2026-01-01',
    currency: 'USD',
    fractionDigits: 2,
    prices: {
      activeStorage: '5.99',
      deletedStorage: '5.99',
      minimumTB: '1',
      minimumStorage: '5.99',
      apiCalls: '0',
      ingress: '0',
      egress: '0',
    },
  });
  expect(checkPriceList({ ...GOOD, currency: 'JPY' }, []).fractionDigits).toBe(0);
});

test.each([
  [withPrice('egress', '-0.01'), 'prices.egress'],
  [withPrice('egress', -1), 'prices.egress'],
  [withPrice('egress', Number.NaN), 'prices.egress'],
  [withPrice('egress', '1e3'), 'prices.egress'],
  [withPrice('egress', '0.(3)'), 'prices.egress'],
  [withPrice('egress', '1/3'), 'prices.egress'],
  [withPrice('ingress', '0.123456789'), 'prices.ingress'],
  [withPrice('minimumTB', '1234567890'), 'prices.minimumTB'],
  [withPrice('discount', '1'), 'prices.discount'],
  [{ ...GOOD, prices: {} }, 'prices.activeStorage'],
  [{ ...GOOD, currency: 'XYZ' }, 'currency'],
  [{ ...GOOD, currency: 'usd' }, 'currency'],
  [{ ...GOOD, from: '2026-02-30' }, 'from'],
  [{ ...GOOD, from: '2026/01/01' }, 'from'],
  [{ ...GOOD, from: '1969-12-31' }, 'from'],
  [{ ...GOOD, from: '' }, 'from'],
])('a wrong list names its field: %j', (input, field) => {
  expect(Object.keys(problemsOf(input))).toEqual([field]);
});

test('another currency begins with a month', () => {
  const dollars = { ...checkPriceList(GOOD, []), changedAtMs: 0 };
  const euros = { ...GOOD, currency: 'EUR' };
  expect(Object.keys(problemsOf({ ...euros, from: '2026-03-15' }, [dollars]))).toEqual(['from']);
  expect(problemsOf({ ...euros, from: '2026-03-01' }, [dollars])).toEqual({});
  // A list that is put in front of another one, or in its place.
  const later = { ...dollars, from: '2026-03-15' };
  expect(Object.keys(problemsOf({ ...euros, from: '2026-03-01' }, [dollars, later]))).toEqual(['currency']);
  expect(problemsOf(euros, [dollars])).toEqual({});
});

test('a list holds from its day on until the next one does', () => {
  const lists = ['2026-01-01', '2026-03-15'].map((from) => ({
    ...checkPriceList({ ...GOOD, from }, []),
    changedAtMs: 0,
  }));
  const at = (date: string) => listInForce(lists, parseDate(date) ?? 0)?.from;
  expect(['2025-12-31', '2026-01-01', '2026-03-14', '2026-03-15', '2030-01-01'].map(at)).toEqual([
    undefined,
    '2026-01-01',
    '2026-01-01',
    '2026-03-15',
    '2026-03-15',
  ]);
});
