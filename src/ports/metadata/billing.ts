// Commands and queries of the system shard about price lists and invoices. Months are closed one after the other: `begin-month`
// fixes the prices, `close-invoices` writes invoices in pages, `end-month` says that all are there. Each of them may be repeated.
import type { AccountId } from '../../types/names.ts';
import type {
  BillingRecord,
  InvoiceRecord,
  NewInvoice,
  PriceListRecord,
} from '../../types/records/billing-records.ts';

/** What lists of invoices filter by. */
export interface InvoiceHead {
  id: number;
  controlInvoiceId: number;
  /** YYYY-MM. */
  month: string;
  customerId: number;
  accountId: AccountId;
  controlId: number;
  channelId?: number;
  governanceId?: number;
}

/** Invoices of one command at most: each has some KiB. */
export const INVOICES_OF_COMMAND = 50;

export interface BillingCommands {
  /** In the place of one of the same day. `ifRevision`: as `list-price-lists` told it. */
  'set-price-list': {
    command: { list: Omit<PriceListRecord, 'changedAtMs'>; ifRevision: number };
    outcome: /** `conflict`: read again, decide again. `month-begun`: the day is in a month whose invoices are written, or before. */
    { kind: 'set'; list: PriceListRecord } | { kind: 'conflict' } | { kind: 'month-begun'; month: string };
  };
  'begin-month': {
    command: { month: string };
    outcome: /** `closed`: long ago. `out-of-order`: another month is next. */
    { kind: 'begun' } | { kind: 'closed' } | { kind: 'out-of-order'; next: string };
  };
  /** One invoice for each sub-account and month: one that is there stays as it is. */
  'close-invoices': {
    command: { month: string; invoices: NewInvoice[] };
    outcome: { kind: 'closed'; createdCount: number; existingCount: number } | { kind: 'not-begun' };
  };
  'end-month': { command: { month: string }; outcome: { kind: 'ended' } | { kind: 'not-begun' } };
}

export interface BillingQueries {
  /** By date, ascending. */
  'list-price-lists': {
    query: Record<string, never>;
    result: { lists: PriceListRecord[]; revision: number; billing: BillingRecord };
  };
  /** By id, behind `after`. Ids have no gaps, and a later month has higher ones: `invoiceCount` is the highest. */
  'list-invoices': {
    query: { after: number; limit: number };
    result: { heads: InvoiceHead[]; invoiceCount: number };
  };
  'get-invoices': { query: { ids: number[] }; result: { invoices: (InvoiceRecord | null)[] } };
}
