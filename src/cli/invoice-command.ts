// holdfast price, holdfast invoice: what is charged, and what that came to.
import { writeFile } from 'node:fs/promises';
import { Refusal } from '../base/refusal.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatForeign, formatTable } from './format.ts';

/** As the operator API has them. */
interface PriceList {
  from: string;
  currency: string;
  prices: Record<string, string>;
}

interface Line {
  quantity: string;
  unitCost: string;
  totalCost: string;
}

interface Invoice {
  id: number;
  controlInvoiceId: number;
  isClosed: boolean;
  isOwed: boolean;
  subAccountId: number;
  subAccountName: string;
  accountNumber: string;
  controlAccountId: number;
  periodStart: string;
  periodEnd: string;
  currency: string;
  total: string;
  lines: Record<string, Line>;
}

interface InvoicePage {
  invoices: Invoice[];
  total: number;
}

export interface PriceOptions extends ConnectOptions {
  from: string;
  currency: string;
  storage: string;
  deleted?: string;
  minimumTb?: string;
  minimum?: string;
  apiCalls?: string;
  ingress?: string;
  egress?: string;
}

export interface InvoiceOptions extends ConnectOptions {
  month?: string;
  control?: string;
  sub?: string;
  page?: string;
  size?: string;
  csv?: boolean;
  pdf?: boolean;
  out?: string;
}

export async function listPrices(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const answer = (await client.call('GET', '/price-lists')) as { priceLists: PriceList[] };
  context.print(formatAnswer(options, answer, () => describeLists(answer.priceLists)));
}

export async function setPrices(context: CliContext, options: PriceOptions): Promise<void> {
  const { from, currency, storage, deleted, minimumTb, minimum, apiCalls, ingress, egress } = options;
  const prices = {
    activeStorage: storage,
    deletedStorage: deleted,
    minimumTB: minimumTb,
    minimumStorage: minimum,
    apiCalls,
    ingress,
    egress,
  };
  const client = await connect(context, options);
  const list = (await client.call('PUT', '/price-lists', { from, currency, prices })) as PriceList;
  context.print(formatAnswer(options, list, () => describeLists([list])));
}

function describeLists(lists: readonly PriceList[]): string {
  if (lists.length === 0) return 'There is no price list: nothing is charged. holdfast price set makes one.';
  const names = [
    'activeStorage',
    'deletedStorage',
    'minimumTB',
    'minimumStorage',
    'apiCalls',
    'ingress',
    'egress',
  ];
  return formatTable([
    ['FROM', 'CURRENCY', 'STORAGE', 'DELETED', 'MINIMUM TB', 'MINIMUM', '1000 CALLS', 'GB IN', 'GB OUT'],
    ...lists.map(({ from, currency, prices }) => [
      from,
      currency,
      ...names.map((name) => prices[name] ?? '-'),
    ]),
  ]);
}

export async function listInvoices(context: CliContext, options: InvoiceOptions): Promise<void> {
  const asked = askedOf(options);
  if (options.csv === true) return saveOrPrint(context, asked, { ...options, format: 'csv' });
  const pages = { page: wholeOf('--page', options.page), size: wholeOf('--size', options.size) };
  const client = await connect(context, options);
  const answer = (await client.call('POST', '/invoices/find', { ...asked, ...pages })) as InvoicePage;
  context.print(formatAnswer(options, answer, () => describePage(answer)));
}

/** `reference`: the number of an invoice; with --control that of a control account's month. */
export async function showInvoice(
  context: CliContext,
  reference: string,
  options: Omit<InvoiceOptions, 'control'> & { control?: boolean },
): Promise<void> {
  const number = wholeOf('the number', reference);
  const asked = options.control === true ? { controlInvoiceId: number } : { id: number };
  if (options.csv === true) return saveOrPrint(context, asked, { ...options, format: 'csv' });
  if (options.pdf === true) return saveOrPrint(context, asked, { ...options, format: 'pdf' });
  const client = await connect(context, options);
  const answer = (await client.call('POST', '/invoices/find', asked)) as InvoicePage;
  const [first] = answer.invoices;
  if (first === undefined) throw new Refusal('there is no such invoice');
  if (options.control === true)
    return context.print(formatAnswer(options, answer, () => describePage(answer)));
  context.print(formatAnswer(options, first, () => describeInvoice(first)));
}

export async function previewInvoices(
  context: CliContext,
  month: string,
  options: InvoiceOptions,
): Promise<void> {
  const pages = { page: wholeOf('--page', options.page), size: wholeOf('--size', options.size) };
  const asked = { ...askedOf({ ...options, month }), ...pages };
  const client = await connect(context, options);
  const answer = (await client.call('POST', '/invoices/preview', asked)) as InvoicePage;
  const [only] = answer.invoices;
  const isOne = options.sub !== undefined && only !== undefined;
  context.print(formatAnswer(options, answer, () => (isOne ? describeInvoice(only) : describePage(answer))));
}

export async function closeInvoices(
  context: CliContext,
  month: string,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  const answer = (await client.call('POST', '/invoices/close', { month })) as {
    createdCount: number;
    existingCount: number;
  };
  const { createdCount, existingCount } = answer;
  const isClosed = createdCount === 0 && existingCount > 0;
  const text = isClosed
    ? `${month} is closed already, with ${existingCount} invoices`
    : `${month} is closed: ${createdCount + existingCount} invoices`;
  context.print(formatAnswer(options, answer, () => text));
}

async function saveOrPrint(
  context: CliContext,
  asked: object,
  options: ConnectOptions & { format: 'csv' | 'pdf'; out?: string },
): Promise<void> {
  const { format, out } = options;
  const client = await connect(context, options);
  const file = (await client.call('POST', '/invoices/document', { ...asked, format })) as {
    fileName: string;
    base64: string;
  };
  const bytes = Buffer.from(file.base64, 'base64');
  // A PDF is no text for a terminal.
  if (format === 'csv' && out === undefined) return context.print(bytes.toString('utf8').trimEnd());
  const path = out ?? file.fileName;
  await writeFile(path, bytes);
  context.print(`wrote ${path}`);
}

function askedOf({ month, control, sub }: InvoiceOptions): object {
  return {
    month,
    controlAccountId: wholeOf('--control', control),
    subAccountId: wholeOf('--sub', sub),
  };
}

function wholeOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Refusal(`${flag} must be a whole number`);
  return Number(text);
}

function describePage({ invoices, total }: InvoicePage): string {
  if (total === 0) return 'no invoices';
  const rows = invoices.map((invoice) => [
    invoice.isClosed ? String(invoice.id) : '-',
    invoice.isClosed ? String(invoice.controlInvoiceId) : '-',
    invoice.periodStart.slice(0, 7),
    String(invoice.subAccountId),
    formatForeign(invoice.subAccountName),
    invoice.isOwed ? `${invoice.total} ${invoice.currency}` : NONE,
  ]);
  const table = formatTable([['INVOICE', 'CONTROL', 'MONTH', 'SUB-ACCOUNT', 'NAME', 'TOTAL'], ...rows]);
  const hasFree = invoices.some(({ isOwed }) => !isOwed);
  const isPart = total > invoices.length;
  return [
    table,
    ...(hasFree ? [`${NONE}: ${FREE}`] : []),
    ...(isPart ? [`${invoices.length} of ${total}; --page and --size show others`] : []),
  ].join('\n');
}

const NONE = 'no invoice';
const FREE = 'nothing is charged: on trial, without a price list that holds, or deleted long before';

function describeInvoice(invoice: Invoice): string {
  const { lines, currency } = invoice;
  const head = formatTable([
    ...(invoice.isClosed
      ? [
          ['invoice', String(invoice.id)],
          ['control invoice', String(invoice.controlInvoiceId)],
        ]
      : [['invoice', invoice.isOwed ? 'none yet: the month is open' : `none: ${FREE}`]]),
    ['sub-account', `${invoice.subAccountId} ${formatForeign(invoice.subAccountName)}`],
    ['account number', invoice.accountNumber],
    ['period', `${invoice.periodStart} to ${invoice.periodEnd}`],
  ]);
  const rows = Object.entries(lines).map(([metric, line]) => [
    metric,
    line.quantity,
    line.unitCost,
    line.totalCost,
  ]);
  const table = formatTable([['ITEM', 'QUANTITY', 'UNIT COST', 'COST'], ...rows]);
  return `${head}\n\n${table}\n\ntotal  ${invoice.total} ${currency}`;
}
