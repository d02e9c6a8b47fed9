// Invoices of sub-accounts (extensions 1.6). "totalStorage" is the wire's name for the total.

import type { FastifyInstance } from 'fastify';
import type { Invoice, InvoiceFilter } from '../../../accounts/invoice-book.ts';
import type { ApiCaller } from '../../../accounts/tenancy.ts';
import { dateOf, daysOf } from '../../../types/months.ts';
import { INVOICE_METRICS, type InvoiceMetric } from '../../../types/records/billing-records.ts';
import { type FieldsOf, objectOf, optional } from '../../http/json-schemas.ts';
import { envelopeOf, listEnvelopeOf, readAnswer } from '../envelope.ts';
import { callerOf, type ManagementContext } from '../management-context.ts';
import {
  BOOLEAN,
  DATE,
  DATE_QUERY,
  dateIn,
  described,
  ID,
  INTEGER,
  listOf,
  NUMBER,
  PAGE_QUERY,
  PARENT_BLOCK,
  type PageQuery,
  type ParentBlock,
  pageOf,
  parentBlockOf,
  TEXT,
  TEXT_IN,
} from '../wire-forms.ts';

type MetricField = InvoiceMetric | `${InvoiceMetric}UnitCost` | `${InvoiceMetric}TotalCost`;

interface InvoiceWire extends ParentBlock, Record<MetricField, number> {
  id: number;
  subInvoiceId: number;
  subAccountId: number;
  subAccountName: string;
  subAccountEmail: string;
  controlInvoiceId: number;
  periodStart: string;
  periodEnd: string;
  currency: string;
  totalStorage: number;
  wasabiAccountNumber: string;
  accountNumber: string;
}

function metricsOf<Value>(
  each: (metric: InvoiceMetric, part: 'quantity' | 'unitCost' | 'totalCost') => Value,
): Record<MetricField, Value> {
  const entries = INVOICE_METRICS.flatMap((metric) => [
    [metric, each(metric, 'quantity')],
    [`${metric}UnitCost`, each(metric, 'unitCost')],
    [`${metric}TotalCost`, each(metric, 'totalCost')],
  ]);
  return Object.fromEntries(entries) as Record<MetricField, Value>;
}

function wireOf(invoice: Invoice, caller: ApiCaller): InvoiceWire {
  const { fromDay, toDay } = daysOf(invoice.month);
  const { customer } = invoice;
  return {
    id: invoice.id,
    // One invoice for each sub-account and month: its number is that of the sub-account's invoice, too.
    subInvoiceId: invoice.id,
    subAccountId: customer.id,
    subAccountName: customer.name,
    subAccountEmail: customer.email,
    ...parentBlockOf(caller, invoice),
    controlInvoiceId: invoice.controlInvoiceId,
    periodStart: dateOf(fromDay),
    periodEnd: dateOf(toDay),
    currency: invoice.currency,
    totalStorage: Number(invoice.total),
    ...metricsOf((metric, part) => Number(invoice.lines[metric][part])),
    wasabiAccountNumber: customer.accountId,
    accountNumber: customer.accountId,
  };
}

const QUANTITIES: Record<InvoiceMetric, string> = {
  activeStorage: 'GB-days: GB at the end of each day, of all days.',
  deletedStorage: 'GB-days of what was deleted inside the minimum duration of storage.',
  apiCalls: 'Requests.',
  ingress: 'GB.',
  egress: 'GB.',
  minimumActiveStorage: 'TB-months: what is missing of the storage that is charged at least.',
};
const COSTS = { unitCost: 'Of one of these.', totalCost: 'Of all of these, not rounded to cents.' };

const INVOICE = objectOf<InvoiceWire>({
  id: INTEGER,
  subInvoiceId: described(INTEGER, 'The same as id.'),
  subAccountId: INTEGER,
  subAccountName: TEXT,
  subAccountEmail: TEXT,
  ...PARENT_BLOCK,
  controlInvoiceId: described(INTEGER, 'The same for all sub-accounts of a control account and month.'),
  periodStart: DATE,
  periodEnd: described(DATE, 'The last day of the month, which is part of it.'),
  currency: described(TEXT, 'ISO 4217.'),
  totalStorage: described(NUMBER, 'The total of the invoice, in its currency.'),
  ...metricsOf((metric, part) => described(NUMBER, part === 'quantity' ? QUANTITIES[metric] : COSTS[part])),
  wasabiAccountNumber: TEXT,
  accountNumber: described(TEXT, 'The same as wasabiAccountNumber.'),
});

interface InvoiceQuery extends PageQuery {
  from?: string;
  to?: string;
  periodEnd?: string;
  id?: number;
  governanceAccountId?: number;
  controlAccountId?: number;
  channelAccountId?: number;
  subAccountId?: number;
  subInvoiceId?: number;
  controlInvoiceId?: number;
  wasabiAccountNumber?: string;
  accountNumber?: string;
  latest?: boolean;
}

const QUERY_FIELDS: FieldsOf<InvoiceQuery> = {
  ...PAGE_QUERY,
  from: DATE_QUERY,
  to: DATE_QUERY,
  periodEnd: DATE_QUERY,
  id: optional(ID),
  governanceAccountId: optional(ID),
  controlAccountId: optional(ID),
  channelAccountId: optional(ID),
  subAccountId: optional(ID),
  subInvoiceId: optional(ID),
  controlInvoiceId: optional(ID),
  wasabiAccountNumber: optional(TEXT_IN),
  accountNumber: optional(TEXT_IN),
  latest: optional(described(BOOLEAN, 'Only the newest of each sub-account.')),
};

function filterOf(query: InvoiceQuery): InvoiceFilter {
  const { page: _page, size: _size, subInvoiceId, wasabiAccountNumber, ...same } = query;
  const { accountNumber = wasabiAccountNumber, from, to, periodEnd, ...ids } = same;
  const dates = {
    from: dateIn('from', from),
    to: dateIn('to', to),
    periodEnd: dateIn('periodEnd', periodEnd),
  };
  return defined({ ...ids, ...dates, subInvoiceId, accountNumber });
}

function defined<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

const TAGS = ['invoices'];

export async function invoices(
  app: FastifyInstance,
  { context }: { context: ManagementContext },
): Promise<void> {
  const withinOf = (caller: ApiCaller) => context.tenancy.withinOf(caller);

  app.get<{ Querystring: InvoiceQuery }>(
    '/invoices',
    {
      schema: {
        operationId: 'ListInvoices',
        summary: 'List invoices, the newest first',
        tags: TAGS,
        querystring: objectOf<InvoiceQuery>(QUERY_FIELDS),
        response: { 200: { description: 'A page of invoices.', ...listEnvelopeOf(INVOICE) } },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const page = pageOf(request.query);
      const filter = { ...filterOf(request.query), within: withinOf(caller) };
      const found = await context.invoices.list(filter, page);
      return readAnswer(listOf(found, page, (invoice) => wireOf(invoice, caller)));
    },
  );
  app.get<{ Params: { id: number } }>(
    '/invoices/:id',
    {
      schema: {
        operationId: 'GetInvoice',
        summary: 'Read an invoice',
        tags: TAGS,
        params: objectOf<{ id: number }>({ id: ID }),
        response: { 200: { description: 'The invoice.', ...envelopeOf(INVOICE) } },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async (request) => {
      const caller = callerOf(request);
      const invoice = await context.invoices.get(request.params.id, withinOf(caller));
      return readAnswer(wireOf(invoice, caller));
    },
  );
}
