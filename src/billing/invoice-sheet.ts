// What stands on a printed invoice, and on the statement of a control account over its invoices of a month.
import type { Sheet, SheetRow } from '../ports/pages.ts';
import { dateOf, daysOf } from '../types/months.ts';
import {
  INVOICE_METRICS,
  type InvoiceLine,
  type InvoiceMetric,
  type InvoiceRecord,
} from '../types/records/billing-records.ts';
import { exact, moneyText, sum } from './exact.ts';

const TITLES: Record<InvoiceMetric, { name: string; unit: string }> = {
  activeStorage: { name: 'Active storage', unit: 'GB-days' },
  deletedStorage: { name: 'Deleted storage', unit: 'GB-days' },
  apiCalls: { name: 'API calls', unit: 'calls' },
  ingress: { name: 'Ingress', unit: 'GB' },
  egress: { name: 'Egress', unit: 'GB' },
  minimumActiveStorage: { name: 'Minimum active storage', unit: 'TB-months' },
};
/** Digits behind the point of the amounts of lines; the total alone is rounded to cents. */
const AMOUNT_DIGITS = 4;

/** `isClosed` false: what an open month comes to by now. */
export function invoiceSheet(invoice: InvoiceRecord & { isClosed: boolean }): Sheet {
  const { control, customer, currency, month, isClosed } = invoice;
  return {
    sender: [control.name, control.email],
    title: isClosed ? 'Invoice' : 'Preview',
    receiver: { caption: 'Bill to', lines: [customer.name, customer.email] },
    facts: [
      ...(isClosed ? ([['Invoice number', String(invoice.id)]] as const) : []),
      ...(isClosed ? ([['Control invoice', String(invoice.controlInvoiceId)]] as const) : []),
      ['Period', periodText(month)],
      ...(isClosed ? ([['Date', dateText(invoice.closedAtMs)]] as const) : []),
      ['Account number', customer.accountId],
      ['Currency', currency],
    ],
    columns: [
      { caption: 'Item', share: 0.32, isNumeric: false },
      { caption: 'Quantity', share: 0.22, isNumeric: true },
      { caption: 'Unit', share: 0.13, isNumeric: false },
      { caption: 'Unit price', share: 0.16, isNumeric: true },
      { caption: 'Amount', share: 0.17, isNumeric: true },
    ],
    rows: invoice.segments.length > 1 ? rowsBySegment(invoice) : rowsOf(invoice.lines, INVOICE_METRICS),
    total: { caption: `Total ${currency}`, amount: grouped(invoice.total) },
    notes: [
      daysText(invoice),
      'GB = 2^30 bytes, TB = 2^40 bytes. Prices per month are for 30 days. Minimum active storage is what is missing of the ' +
        'smallest amount of storage that is charged.',
      'The total is rounded once, from exact amounts.',
    ],
    madeAtMs: invoice.closedAtMs,
  };
}

/** All invoices of one control account and month, in order of sub-accounts. At least one. */
export function statementSheet(invoices: readonly InvoiceRecord[]): Sheet {
  const sorted = invoices.toSorted((a, b) => a.customer.id - b.customer.id);
  const [first] = sorted;
  if (first === undefined) throw new RangeError('a statement has invoices');
  const { control, governance, currency, month } = first;
  return {
    sender: governance === undefined ? [''] : [governance.name, governance.email],
    title: 'Statement',
    receiver: { caption: 'Control account', lines: [control.name, control.email] },
    facts: [
      ['Control invoice', String(first.controlInvoiceId)],
      ['Period', periodText(month)],
      ['Date', dateText(Math.max(...sorted.map(({ closedAtMs }) => closedAtMs)))],
      ['Invoices', String(sorted.length)],
      ['Currency', currency],
    ],
    columns: [
      { caption: 'Invoice', share: 0.12, isNumeric: false },
      { caption: 'Sub-account', share: 0.46, isNumeric: false },
      { caption: 'Account number', share: 0.22, isNumeric: false },
      { caption: 'Amount', share: 0.2, isNumeric: true },
    ],
    rows: sorted.map(({ id, customer, total }) => ({
      cells: [String(id), customer.name, customer.accountId, grouped(total)],
    })),
    total: { caption: `Total ${currency}`, amount: grouped(totalOf(sorted)) },
    notes: ['Each invoice is rounded by itself; the total is their sum.'],
    madeAtMs: Math.max(...sorted.map(({ closedAtMs }) => closedAtMs)),
  };
}

/** The sum of totals, which have as many digits as their currency. */
export function totalOf(invoices: readonly Pick<InvoiceRecord, 'total'>[]): string {
  const digits = Math.max(0, ...invoices.map(({ total }) => (total.split('.')[1] ?? '').length));
  return moneyText(sum(invoices.map(({ total }) => exact(total))), digits);
}

function rowsBySegment(invoice: InvoiceRecord): SheetRow[] {
  const metered = INVOICE_METRICS.filter((metric) => metric !== 'minimumActiveStorage');
  const rows = invoice.segments.flatMap(({ from, to, lines }) => [
    { caption: `${from} to ${to}` },
    ...rowsOf(lines, metered),
  ]);
  const wholeMonth = rowsOf(invoice.lines, ['minimumActiveStorage']);
  return [...rows, { caption: 'Whole month' }, ...wholeMonth];
}

/** Items without a quantity are left out, except where that leaves nothing. */
function rowsOf<Metric extends InvoiceMetric>(
  lines: Record<Metric, InvoiceLine>,
  metrics: readonly Metric[],
): SheetRow[] {
  const used = metrics.filter((metric) => lines[metric].quantity !== '0');
  return (used.length === 0 ? metrics.slice(0, 1) : used).map((metric) => {
    const { quantity, unitCost, totalCost } = lines[metric];
    const { name, unit } = TITLES[metric];
    return {
      cells: [
        name,
        grouped(quantity),
        unit,
        grouped(unitCost),
        grouped(moneyText(exact(totalCost), AMOUNT_DIGITS)),
      ],
    };
  });
}

function daysText({ days, month }: InvoiceRecord): string {
  const { fromDay, toDay } = daysOf(month);
  const parts = [`${days.charged} of ${toDay - fromDay + 1} days are charged`];
  if (days.suspended > 0) parts.push(`${days.suspended} of them while the account was suspended`);
  if (days.trial > 0) parts.push(`${days.trial} days of trial are free`);
  if (days.deleted > 0) parts.push(`${days.deleted} days after the account was deleted have no minimum`);
  return `${parts.join('; ')}.`;
}

function periodText(month: string): string {
  const { fromDay, toDay } = daysOf(month);
  return `${dateOf(fromDay)} to ${dateOf(toDay)}`;
}

function dateText(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

/** `1,234,567.89` */
function grouped(decimal: string): string {
  const [whole = '', behind] = decimal.split('.');
  const groups = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return behind === undefined ? groups : `${groups}.${behind}`;
}
