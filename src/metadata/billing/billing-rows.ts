// How far invoices have come, as commands and queries read it.
import type { View } from '../../ports/state-machine.ts';
import { type BillingRecord, billingCodec } from '../../types/records/billing-records.ts';
import { BILLING_ROW } from '../schema/keyspace.ts';

const NOTHING_YET: BillingRecord = { invoiceCount: 0, controlInvoiceCount: 0, priceRevision: 0 };

export function findBilling(view: View): BillingRecord {
  return decodeBilling(view.row(BILLING_ROW));
}

export function decodeBilling(row: Uint8Array | undefined): BillingRecord {
  return row === undefined ? NOTHING_YET : billingCodec.decode(row);
}

/** Whether the month's invoices are being written: neither before nor after. */
export function isBeingClosed({ begunMonth, closedMonth }: BillingRecord, month: string): boolean {
  return begunMonth === month && closedMonth !== month;
}
