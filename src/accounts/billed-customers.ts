// Who is charged: what invoices need to know of sub-accounts.
import type { StateSince } from '../billing/compute-invoice.ts';
import type { InvoiceParties } from '../types/records/billing-records.ts';

export interface BilledCustomer extends InvoiceParties {
  createdAtMs: number;
  /** In order, from its creation on; its deletion is the last one. */
  history: readonly StateSince[];
}

export interface BilledCustomers {
  /** All there are and were, by id ascending. */
  list(): Promise<readonly BilledCustomer[]>;
}
