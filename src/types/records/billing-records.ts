// What the system shard keeps of price lists and invoices. Money and quantities are decimal strings, so that nothing is rounded
// by being stored.
import { defineRecord } from '../../base/record-codec.ts';
import type { AccountId } from '../names.ts';

/** Prices in the currency of the list. TB = 2^40 bytes, GB = 2^30 bytes; a month has 30 days. */
export interface Prices {
  /** Per TB and month. */
  activeStorage: string;
  /** Per TB and month: what is deleted inside the minimum duration of storage. */
  deletedStorage: string;
  /** Active storage that is charged at least, TB. */
  minimumTB: string;
  /** Per TB and month: what is missing of `minimumTB`. */
  minimumStorage: string;
  /** Per 1000. */
  apiCalls: string;
  /** Per GB. */
  ingress: string;
  egress: string;
}

export interface PriceListRecord {
  /** YYYY-MM-DD, UTC: holds from this day on, until the next list does. */
  from: string;
  /** ISO 4217. */
  currency: string;
  /** Digits behind the point to which totals are rounded: 2 for USD. */
  fractionDigits: number;
  prices: Prices;
  changedAtMs: number;
}
export const priceListCodec = defineRecord<PriceListRecord>({ name: 'price-list', version: 1 });

export const INVOICE_METRICS = [
  'activeStorage',
  'deletedStorage',
  'apiCalls',
  'ingress',
  'egress',
  'minimumActiveStorage',
] as const;
export type InvoiceMetric = (typeof INVOICE_METRICS)[number];

/** quantity x unitCost = totalCost, each rounded to 8 digits for show; the invoice's total is rounded once, from exact costs. */
export interface InvoiceLine {
  /** GB-days of storage; months of 30 days and TB of minimum storage, to 7 digits; GB of traffic; calls. */
  quantity: string;
  /** Per unit of `quantity`. Where prices have changed within the month: totalCost / quantity. */
  unitCost: string;
  totalCost: string;
}

/** Days of an invoice that one price list holds for. */
export interface InvoiceSegment {
  /** YYYY-MM-DD, both inclusive. */
  from: string;
  to: string;
  /** Minimum storage is charged for the whole month, and not here. */
  lines: Record<Exclude<InvoiceMetric, 'minimumActiveStorage'>, InvoiceLine>;
}

/** Of the days of a month; a day counts in one of the first four. */
export interface InvoiceDays {
  charged: number;
  /** On trial for any moment: free. */
  trial: number;
  /** After the deletion of the account: storage is charged, minimum storage is not. */
  deleted: number;
  /** Before the account was there, or before the first price list. */
  none: number;
  /** Of the charged days: suspended at their end. */
  suspended: number;
}

export interface InvoiceFigures {
  currency: string;
  /** Sum of the six costs, rounded once: '5.99'. */
  total: string;
  lines: Record<InvoiceMetric, InvoiceLine>;
  /** More than one where prices have changed within the month. */
  segments: InvoiceSegment[];
  days: InvoiceDays;
}

export interface InvoiceParty {
  id: number;
  name: string;
  email: string;
}

/** Who is charged, as it was when the invoice was made. */
export interface InvoiceParties {
  customer: InvoiceParty & { accountId: AccountId };
  control: InvoiceParty;
  channel?: InvoiceParty;
  governance?: InvoiceParty;
}

/** An invoice that has no number yet. */
export type NewInvoice = InvoiceParties & InvoiceFigures;

export interface InvoiceRecord extends NewInvoice {
  /** From 1, without gaps. */
  id: number;
  /** Of all invoices of its control account and month; from 1, without gaps. */
  controlInvoiceId: number;
  /** YYYY-MM. */
  month: string;
  closedAtMs: number;
}
export const invoiceCodec = defineRecord<InvoiceRecord>({ name: 'invoice', version: 1 });

/** How far invoices have come. */
export interface BillingRecord {
  /** Counts invoices, and months of control accounts that have some. */
  invoiceCount: number;
  controlInvoiceCount: number;
  /** Counts changes of price lists. */
  priceRevision: number;
  /** YYYY-MM: its invoices are being written. Prices of it and of all months before it change no more. */
  begunMonth?: string;
  /** YYYY-MM: the last one whose invoices are all there. Equal to `begunMonth`, or the month before. */
  closedMonth?: string;
}
export const billingCodec = defineRecord<BillingRecord>({ name: 'billing', version: 1 });
