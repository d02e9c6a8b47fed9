// Who is charged: what invoices need to know of sub-accounts.
import type { StateSince } from '../billing/compute-invoice.ts';
import type { InvoiceParties } from '../types/records/billing-records.ts';
import type { CustomerRecord } from '../types/records/tenancy-records.ts';
import type { TenancyTree } from './tenancy-tree.ts';

export interface BilledCustomer extends InvoiceParties {
  createdAtMs: number;
  /** In order, from its creation on; its deletion is the last one. */
  history: readonly StateSince[];
}

/** Enough of it to know which ones are charged. */
export interface BilledHead {
  id: number;
  controlId: number;
  createdAtMs: number;
}

export interface BilledCustomers {
  /** All there are and were, by id ascending. */
  heads(): Promise<readonly BilledHead[]>;
  /** Some of them, in the order of the ids: as many as are charged at once. */
  read(ids: readonly number[]): Promise<BilledCustomer[]>;
}

export function createBilledCustomers(tree: TenancyTree): BilledCustomers {
  const { directory } = tree;
  return {
    async heads() {
      await directory.refresh();
      return directory.all('customer');
    },
    async read(ids) {
      return (await directory.read('customer', ids)).map((record) => ({
        customer: { id: record.id, accountId: record.accountId, name: record.name, email: record.email },
        ...tree.parentsOf(record),
        createdAtMs: record.createdAtMs,
        history: billedHistory(record),
      }));
    },
  };
}

/**
 * As days are charged: a trial ends when it was to end, though nothing ran at that moment, and its days are free while the account
 * is suspended, too, because a suspension changes no charges (extensions 1.4). A trial that an operator ended before stays so.
 */
export function billedHistory({ history, trial }: Pick<CustomerRecord, 'history' | 'trial'>): StateSince[] {
  if (trial === undefined) return history;
  const { endsAtMs } = trial;
  const billed: StateSince[] = [];
  let isTrial = false;
  for (const [at, since] of history.entries()) {
    const { state, fromMs } = since;
    const untilMs = history[at + 1]?.fromMs ?? Infinity;
    isTrial = state === 'trial' || (state === 'suspended' && isTrial);
    const isFree = isTrial && fromMs < endsAtMs;
    billed.push(
      isFree ? { state: 'trial', fromMs } : since.state === 'trial' ? { state: 'paid', fromMs } : since,
    );
    if (isFree && endsAtMs < untilMs)
      billed.push({ state: state === 'trial' ? 'paid' : state, fromMs: endsAtMs });
  }
  return billed;
}
