// Price lists and invoices, for `holdfast price` and `holdfast invoice`.
import type { FastifyInstance } from 'fastify';
import {
  type Invoice,
  type InvoiceFilter,
  type InvoicePage,
  ofMonth,
} from '../../../accounts/invoice-book.ts';
import type { PriceListInput } from '../../../billing/price-lists.ts';
import { invalidFields } from '../../../types/errors.ts';
import { dateOf, daysOf, parseMonth } from '../../../types/months.ts';
import {
  INVOICE_METRICS,
  type InvoiceLine,
  type InvoiceMetric,
  type PriceListRecord,
  type Prices,
} from '../../../types/records/billing-records.ts';
import {
  booleanOf,
  inputOf,
  listOf,
  mapOf,
  numberOf,
  objectOf,
  oneOf,
  optional,
  textOf,
} from '../../http/json-schemas.ts';
import { invoiceDocument } from '../invoice-documents.ts';
import type { OperatorContext } from '../operator-context.ts';

const TAGS = ['invoices'];
const PAGE_SIZE = 100;
const PAGE_SIZE_MAX = 1000;
const PAGE_MAX = 1_000_000_000;

// ---- price lists ----

interface ShownList {
  from: string;
  currency: string;
  prices: Prices;
  changedAt: string;
}

const PRICES = {
  activeStorage: 'Per TB and month of 30 days.',
  deletedStorage: 'Per TB and month: what is deleted inside the minimum duration. Absent: as activeStorage.',
  minimumTB: 'Active storage that is charged at least, TB. Absent: 1.',
  minimumStorage: 'Per TB and month: what is missing of it. Absent: as activeStorage.',
  apiCalls: 'Per 1000. Absent: 0.',
  ingress: 'Per GB. Absent: 0.',
  egress: 'Per GB. Absent: 0.',
} satisfies Record<keyof Prices, string>;

const PRICE_LIST = objectOf<ShownList>({
  from: textOf('The day from which it holds, UTC.'),
  currency: textOf('ISO 4217.'),
  prices: objectOf<Prices>(
    Object.fromEntries(Object.entries(PRICES).map(([name, help]) => [name, textOf(help)])) as Record<
      keyof Prices,
      ReturnType<typeof textOf>
    >,
  ),
  changedAt: textOf('ISO 8601.'),
});

const PRICE_LIST_INPUT = inputOf<PriceListInput>({
  from: textOf('YYYY-MM-DD: the day from which it holds, UTC. In the place of a list of the same day.'),
  currency: textOf('ISO 4217, as USD.'),
  prices: {
    ...mapOf({ anyOf: [{ type: 'string' }, { type: 'number' }] }),
    description: `Decimal numbers, not negative. ${Object.entries(PRICES)
      .map(([name, help]) => `${name}: ${help}`)
      .join(' ')}`,
  },
});

function shownList({ from, currency, prices, changedAtMs }: PriceListRecord): ShownList {
  return { from, currency, prices, changedAt: new Date(changedAtMs).toISOString() };
}

function addPriceLists(app: FastifyInstance, { invoices }: OperatorContext): void {
  app.get(
    '/price-lists',
    {
      schema: {
        operationId: 'ListPriceLists',
        summary: 'List the price lists, by the day from which they hold',
        tags: TAGS,
        response: {
          200: {
            description: 'All of them.',
            ...objectOf<{ priceLists: unknown }>({ priceLists: listOf(PRICE_LIST) }),
          },
        },
      },
      config: { errors: ['ServiceUnavailable'] },
    },
    async () => ({ priceLists: (await invoices.priceLists()).map(shownList) }),
  );
  app.put<{ Body: PriceListInput }>(
    '/price-lists',
    {
      schema: {
        operationId: 'SetPriceList',
        summary: 'Set what is charged from a day on',
        description: 'Months whose invoices are written keep their prices: their days are refused.',
        tags: TAGS,
        body: PRICE_LIST_INPUT,
        response: { 200: { description: 'The list.', ...PRICE_LIST } },
      },
      config: { errors: ['ServiceUnavailable'] },
    },
    async ({ body }) => shownList(await invoices.setPriceList(body)),
  );
}

// ---- invoices ----

interface Asked {
  id?: number;
  controlInvoiceId?: number;
  subAccountId?: number;
  controlAccountId?: number;
  governanceAccountId?: number;
  month?: string;
}

const ASKED = {
  id: optional(numberOf()),
  controlInvoiceId: optional(numberOf('Invoices of one control account and month share it.')),
  subAccountId: optional(numberOf()),
  controlAccountId: optional(numberOf()),
  governanceAccountId: optional(numberOf()),
  month: optional(textOf('YYYY-MM.')),
};

interface ShownInvoice {
  id: number;
  controlInvoiceId: number;
  isClosed: boolean;
  isOwed: boolean;
  subAccountId: number;
  subAccountName: string;
  subAccountEmail: string;
  accountNumber: string;
  controlAccountId: number;
  controlAccountName: string;
  periodStart: string;
  periodEnd: string;
  currency: string;
  total: string;
  lines: Record<InvoiceMetric, InvoiceLine>;
}

const LINE = objectOf<InvoiceLine>({
  quantity: textOf('GB-days of storage, TB-months of minimum storage, GB of traffic, calls.'),
  unitCost: textOf(),
  totalCost: textOf(),
});

const INVOICE = objectOf<ShownInvoice>({
  id: numberOf('0 while it has none.'),
  controlInvoiceId: numberOf('The same for all of a control account and month.'),
  isClosed: booleanOf('false: what an open month comes to by now.'),
  isOwed: booleanOf('false: nothing is charged by now, so there would be no invoice.'),
  subAccountId: numberOf(),
  subAccountName: textOf(),
  subAccountEmail: textOf(),
  accountNumber: textOf('12 digits.'),
  controlAccountId: numberOf(),
  controlAccountName: textOf(),
  periodStart: textOf('The first day, YYYY-MM-DD.'),
  periodEnd: textOf('The last day.'),
  currency: textOf('ISO 4217.'),
  total: textOf('Sum of the costs of all lines, rounded once.'),
  lines: objectOf<ShownInvoice['lines']>(
    Object.fromEntries(INVOICE_METRICS.map((metric) => [metric, LINE])) as Record<InvoiceMetric, typeof LINE>,
  ),
});

const INVOICES = {
  200: {
    description: 'One page of them, and how many there are.',
    ...objectOf<{ invoices: unknown; total: number }>({
      invoices: listOf(INVOICE),
      total: numberOf(),
    }),
  },
};

interface PageInput {
  page?: number;
  size?: number;
}
const PAGE_INPUT = {
  page: optional(numberOf('From 1 on. Absent: 1.')),
  size: optional(numberOf(`Up to ${PAGE_SIZE_MAX}. Absent: ${PAGE_SIZE}.`)),
};

function shownInvoices({ items, total }: InvoicePage) {
  return { invoices: items.map(shownInvoice), total };
}

function shownInvoice(invoice: Invoice): ShownInvoice {
  const { customer, control, month } = invoice;
  const { fromDay, toDay } = daysOf(month);
  return {
    id: invoice.id,
    controlInvoiceId: invoice.controlInvoiceId,
    isClosed: invoice.isClosed,
    isOwed: invoice.isOwed,
    subAccountId: customer.id,
    subAccountName: customer.name,
    subAccountEmail: customer.email,
    accountNumber: customer.accountId,
    controlAccountId: control.id,
    controlAccountName: control.name,
    periodStart: dateOf(fromDay),
    periodEnd: dateOf(toDay),
    currency: invoice.currency,
    total: invoice.total,
    lines: invoice.lines,
  };
}

/** Throws ValidationError. */
function pageOf({ page = 1, size = PAGE_SIZE }: PageInput): { page: number; size: number } {
  const problems = {
    ...(!(Number.isInteger(page) && page >= 1 && page <= PAGE_MAX) && {
      page: 'must be a whole number from 1 on',
    }),
    ...(!(Number.isInteger(size) && size >= 1 && size <= PAGE_SIZE_MAX) && {
      size: `must be a whole number from 1 to ${PAGE_SIZE_MAX}`,
    }),
  };
  if (Object.keys(problems).length > 0) throw invalidFields(problems);
  return { page, size };
}

function filterOf({ month, ...ids }: Asked): InvoiceFilter {
  if (month === undefined) return ids;
  if (parseMonth(month) === undefined) throw invalidFields({ month: 'must be a month, as 2026-01' });
  return { ...ids, ...ofMonth(month) };
}

function addInvoices(app: FastifyInstance, context: OperatorContext): void {
  app.post<{ Body: Asked & PageInput }>(
    '/invoices/find',
    {
      schema: {
        operationId: 'FindInvoices',
        summary: 'List closed invoices, the newest first',
        tags: TAGS,
        body: inputOf<Asked & PageInput>({ ...ASKED, ...PAGE_INPUT }),
        response: INVOICES,
      },
      config: { errors: ['ServiceUnavailable'] },
    },
    async ({ body: { page, size, ...asked } }) => {
      const bounds = { ...(page !== undefined && { page }), ...(size !== undefined && { size }) };
      return shownInvoices(await context.invoices.list(filterOf(asked), pageOf(bounds)));
    },
  );
  app.post<{ Body: Asked & { format: 'csv' | 'pdf' } }>(
    '/invoices/document',
    {
      schema: {
        operationId: 'GetInvoiceDocument',
        summary: 'Read invoices as a file',
        description:
          'PDF: one invoice by its id, or the statement of a control account and month by controlInvoiceId. CSV: any of them, a ' +
          'line for each behind its head. The same invoices always give the same bytes.',
        tags: TAGS,
        body: inputOf<Asked & { format: string }>({ ...ASKED, format: oneOf('csv', 'pdf') }),
        response: {
          200: {
            description: 'The file.',
            ...objectOf<{ fileName: string; contentType: string; base64: string }>({
              fileName: textOf('A name for it.'),
              contentType: textOf(),
              base64: textOf('Its bytes.'),
            }),
          },
        },
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    async ({ body: { format, ...asked } }) => {
      const { fileName, contentType, bytes } = await invoiceDocument(context, filterOf(asked), { format });
      return { fileName, contentType, base64: Buffer.from(bytes).toString('base64') };
    },
  );
}

interface PreviewAsked extends PageInput {
  month: string;
  subAccountId?: number;
  controlAccountId?: number;
}

const MONTH = textOf('YYYY-MM.');

function addMonths(app: FastifyInstance, context: OperatorContext): void {
  app.post<{ Body: PreviewAsked }>(
    '/invoices/preview',
    {
      schema: {
        operationId: 'PreviewInvoices',
        summary: 'What a month comes to by now',
        description:
          'By sub-account, of all days that are counted; nothing is written. Of a month that is closed: its invoices.',
        tags: TAGS,
        body: inputOf<PreviewAsked>({
          month: MONTH,
          subAccountId: optional(numberOf()),
          controlAccountId: optional(numberOf()),
          ...PAGE_INPUT,
        }),
        response: INVOICES,
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    async ({ body: { month, page, size, ...filter } }) => {
      const bounds = { ...(page !== undefined && { page }), ...(size !== undefined && { size }) };
      return shownInvoices(await context.invoices.preview(month, filter, pageOf(bounds)));
    },
  );
  app.post<{ Body: { month: string } }>(
    '/invoices/close',
    {
      schema: {
        operationId: 'CloseInvoices',
        summary: 'Write the invoices of a month',
        description:
          'The worker does so by itself once all days of the month are counted. Of a month that is closed nothing changes; one that ' +
          'is still open is refused, and so is one that is not next.',
        tags: TAGS,
        body: inputOf<{ month: string }>({ month: MONTH }),
        response: {
          200: {
            description: 'How many invoices the month has.',
            ...objectOf<{ createdCount: number; existingCount: number }>({
              createdCount: numberOf('Written by this call.'),
              existingCount: numberOf('There before.'),
            }),
          },
        },
      },
      config: { errors: ['ServiceUnavailable'] },
    },
    ({ body: { month } }) => context.invoices.close(month),
  );
}

export async function invoices(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  addPriceLists(app, context);
  addInvoices(app, context);
  addMonths(app, context);
}
