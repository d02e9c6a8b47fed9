// Invoices as CSV (RFC 4180, UTF-8): a line for each, with the fields of extensions 1.6 by their names there, and its currency.
import { dateOf, daysOf } from '../types/months.ts';
import { INVOICE_METRICS, type InvoiceRecord } from '../types/records/billing-records.ts';

const COLUMNS: readonly [string, (invoice: InvoiceRecord) => string][] = [
  ['id', ({ id }) => String(id)],
  ['subInvoiceId', ({ id }) => String(id)],
  ['controlInvoiceId', ({ controlInvoiceId }) => String(controlInvoiceId)],
  ['subAccountId', ({ customer }) => String(customer.id)],
  ['subAccountName', ({ customer }) => harmless(customer.name)],
  ['subAccountEmail', ({ customer }) => harmless(customer.email)],
  ['accountNumber', ({ customer }) => customer.accountId],
  ['controlAccountId', ({ control }) => String(control.id)],
  ['controlAccountName', ({ control }) => harmless(control.name)],
  ['controlAccountEmail', ({ control }) => harmless(control.email)],
  ['channelAccountId', ({ channel }) => String(channel?.id ?? '')],
  ['channelAccountName', ({ channel }) => harmless(channel?.name ?? '')],
  ['governanceAccountId', ({ governance }) => String(governance?.id ?? '')],
  ['governanceAccountName', ({ governance }) => harmless(governance?.name ?? '')],
  ['periodStart', ({ month }) => dateOf(daysOf(month).fromDay)],
  ['periodEnd', ({ month }) => dateOf(daysOf(month).toDay)],
  ['currency', ({ currency }) => currency],
  ...INVOICE_METRICS.flatMap((metric): [string, (invoice: InvoiceRecord) => string][] => [
    [metric, ({ lines }) => lines[metric].quantity],
    [`${metric}UnitCost`, ({ lines }) => lines[metric].unitCost],
    [`${metric}TotalCost`, ({ lines }) => lines[metric].totalCost],
  ]),
  ['totalStorage', ({ total }) => total],
];

export function invoicesCsv(invoices: readonly InvoiceRecord[]): string {
  const lines = [
    COLUMNS.map(([name]) => name),
    ...invoices.map((invoice) => COLUMNS.map(([, value]) => quoted(value(invoice)))),
  ];
  return lines.map((cells) => `${cells.join(',')}\r\n`).join('');
}

/**
 * Names come from clients: a spreadsheet takes a cell that begins so for a formula, where it goes by semicolons what is behind one,
 * too. The wide forms of these characters count in East Asia.
 */
function harmless(text: string): string {
  return text.replace(/(^|;)(?=[=+\-@\t\r＝＋－＠])/g, "$1'");
}

function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
