import { expect, test } from 'vitest';
import { finishAtOnce } from '../base/async/steps.ts';
import type { AccountId } from '../types/names.ts';
import type { InvoiceLine, InvoiceRecord } from '../types/records/billing-records.ts';
import { invoicesCsv } from './invoice-csv.ts';
import { invoiceSheet, statementSheet, totalOf } from './invoice-sheet.ts';

const NONE: InvoiceLine = { quantity: '0', unitCost: '0.04', totalCost: '0' };
const STORAGE: InvoiceLine = { quantity: '28160', unitCost: '0.00019499', totalCost: '5.49083333' };

function invoiceOf(id: number, changes: Partial<InvoiceRecord> = {}): InvoiceRecord & { isClosed: boolean } {
  const lines = {
    activeStorage: STORAGE,
    deletedStorage: NONE,
    apiCalls: NONE,
    ingress: NONE,
    egress: NONE,
    minimumActiveStorage: NONE,
  };
  return {
    id,
    controlInvoiceId: 3,
    month: '2026-04',
    closedAtMs: Date.UTC(2026, 4, 1, 0, 5),
    isClosed: true,
    customer: { id, accountId: '000000000012' as AccountId, name: 'Ann', email: 'ann@example.com' },
    control: { id: 2, name: 'Northwind', email: 'n@example.com' },
    currency: 'USD',
    total: '1234.56',
    lines,
    segments: [{ from: '2026-04-01', to: '2026-04-30', lines }],
    days: { charged: 25, trial: 5, deleted: 0, none: 0, suspended: 10 },
    ...changes,
  };
}

test('an invoice in print leaves out what was not used, and says which days are charged', () => {
  const sheet = invoiceSheet(invoiceOf(12));
  expect(sheet.rows).toEqual([{ cells: ['Active storage', '28,160', 'GB-days', '0.00019499', '5.4908'] }]);
  expect(sheet.total).toEqual({ caption: 'Total USD', amount: '1,234.56' });
  expect(sheet.facts).toContainEqual(['Date', '2026-05-01']);
  expect(sheet.notes[0]).toBe(
    '25 of 30 days are charged; 10 of them while the account was suspended; 5 days of trial are free.',
  );
});

test('where prices have changed, each part of the month has its own lines', () => {
  const { segments } = invoiceOf(12);
  const two = [...segments, ...segments.map((segment) => ({ ...segment, from: '2026-04-11' }))];
  const { rows } = invoiceSheet(invoiceOf(12, { segments: two }));
  expect(rows.flatMap((row) => ('caption' in row ? [row.caption] : []))).toEqual([
    '2026-04-01 to 2026-04-30',
    '2026-04-11 to 2026-04-30',
    'Whole month',
  ]);
});

test('what an open month comes to by now has no number and no date', () => {
  const { title, facts } = invoiceSheet({ ...invoiceOf(0), isClosed: false });
  expect(title).toBe('Preview');
  expect(facts.map(([name]) => name)).toEqual(['Period', 'Account number', 'Currency']);
});

test('a statement lists the invoices of a control account, and its total is their sum', () => {
  const sheet = statementSheet([invoiceOf(13, { total: '0.10' }), invoiceOf(12, { total: '0.20' })]);
  expect(sheet.rows).toEqual([
    { cells: ['12', 'Ann', '000000000012', '0.20'] },
    { cells: ['13', 'Ann', '000000000012', '0.10'] },
  ]);
  expect(sheet.total.amount).toBe('0.30');
  expect(totalOf([{ total: '14' }, { total: '15' }])).toBe('29');
});

test('CSV has a line for each invoice, quotes what needs it, and no name is a formula', () => {
  const customer = { ...invoiceOf(12).customer, name: '=HYPERLINK("x"), "Ann"\r\n' };
  const csvOf = (...invoices: InvoiceRecord[]) => Buffer.from(finishAtOnce(invoicesCsv(invoices))).toString();
  const text = csvOf(invoiceOf(12, { customer }), invoiceOf(13));
  const [head = '', ...rest] = text.split('\r\n');
  expect(head.split(',')).toEqual([
    'id',
    'subInvoiceId',
    'controlInvoiceId',
    'subAccountId',
    'subAccountName',
    'subAccountEmail',
    'accountNumber',
    'controlAccountId',
    'controlAccountName',
    'controlAccountEmail',
    'channelAccountId',
    'channelAccountName',
    'governanceAccountId',
    'governanceAccountName',
    'periodStart',
    'periodEnd',
    'currency',
    ...['activeStorage', 'deletedStorage', 'apiCalls', 'ingress', 'egress', 'minimumActiveStorage'].flatMap(
      (metric) => [metric, `${metric}UnitCost`, `${metric}TotalCost`],
    ),
    'totalStorage',
  ]);
  expect(text).toContain(
    `12,12,3,12,"'=HYPERLINK(""x""), ""Ann""\r\n",ann@example.com,000000000012,2,Northwind,`,
  );
  const nameOf = (name: string) =>
    csvOf(invoiceOf(12, { customer: { ...customer, name } }))
      .split('\r\n')[1]
      ?.split(',')[4];
  expect(nameOf('A;=1+1;b')).toBe("A;'=1+1;b");
  expect(nameOf('＝1+1')).toBe("'＝1+1");
  expect(nameOf('Ann-Marie + Bo = 2; @home')).toBe('Ann-Marie + Bo = 2; @home');
  expect(rest.at(-2)).toContain('2026-04-01,2026-04-30,USD,28160,0.00019499,5.49083333,0,0.04,0,');
  expect(text.endsWith(',1234.56\r\n')).toBe(true);
});

test('CSV of many invoices is written some lines at a time', () => {
  const count = 20_000;
  const steps = invoicesCsv(Array.from({ length: count }, (_, at) => invoiceOf(at)));
  let stepCount = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) stepCount++;
  const lines = Buffer.from(step.value).toString().split('\r\n');
  expect(lines.slice(1, -1).map((line) => Number.parseInt(line, 10))).toEqual(
    Array.from({ length: count }, (_, at) => at),
  );
  expect(stepCount).toBeGreaterThanOrEqual(count / 200);
});
