// Invoices over shards in memory, with sub-accounts and daily records as a test says.
import type { BilledCustomer, BilledCustomers } from '../../../src/accounts/billed-customers.ts';
import { createInvoices, type Invoices } from '../../../src/accounts/invoices.ts';
import type { StateSince } from '../../../src/billing/compute-invoice.ts';
import { dayOf } from '../../../src/types/months.ts';
import type { AccountId } from '../../../src/types/names.ts';
import { METERED_NOTHING, type UsageDay, type UsageFigures } from '../../../src/types/usage.ts';
import { type MetadataShards, openMetadata } from '../metadata/metadata-shards.ts';

export const TB = 2 ** 40;

export interface BilledWorld {
  world: MetadataShards;
  invoices: Invoices;
  customers: BilledCustomer[];
  /** Sub-accounts of each read of whole ones. */
  readCounts: number[];
  days: UsageDay[];
  /** The last day that is counted. */
  lastClosedDay: number | undefined;
  /** The wall clock of previews. */
  nowMs: number;
}

export async function openBilledWorld(): Promise<BilledWorld> {
  const world = await openMetadata({ shardCount: 2 });
  const billed: Omit<BilledWorld, 'invoices'> = {
    world,
    customers: [],
    readCounts: [],
    days: [],
    lastClosedDay: undefined,
    nowMs: Date.UTC(2027, 0, 1),
  };
  const invoices = createInvoices({
    metadata: world.shards,
    customers: billedAmong(
      () => billed.customers,
      (count) => void billed.readCounts.push(count),
    ),
    usages: {
      byAccount: async (ids, { fromDay, toDay }) =>
        billed.days.filter(({ accountId, day }) => ids.includes(accountId) && day >= fromDay && day <= toDay),
      lastClosedDay: async () => billed.lastClosedDay,
    },
    clock: { wallMs: () => billed.nowMs },
  });
  return Object.assign(billed, { invoices });
}

/** `noteRead`: told of how many whole ones are read at once. */
export function billedAmong(
  all: () => readonly BilledCustomer[],
  noteRead: (count: number) => void = () => {},
): BilledCustomers {
  return {
    heads: async () =>
      all().map(({ customer, control, createdAtMs }) => ({
        id: customer.id,
        controlId: control.id,
        createdAtMs,
      })),
    read: async (ids) => {
      noteRead(ids.length);
      return all().filter(({ customer }) => ids.includes(customer.id));
    },
  };
}

export function billedCustomer(
  id: number,
  options: { controlId?: number; createdAtMs: number; history?: StateSince[] },
): BilledCustomer {
  const { controlId = 1, createdAtMs, history = [{ state: 'paid', fromMs: createdAtMs }] } = options;
  const accountId = String(id).padStart(12, '0') as AccountId;
  return {
    customer: { id, accountId, name: `customer ${id}`, email: `c${id}@example.com` },
    control: { id: controlId, name: `control ${controlId}`, email: `p${controlId}@example.com` },
    governance: { id: 900, name: 'governance', email: 'g@example.com' },
    createdAtMs,
    history,
  };
}

/** The same figures for each day from one time to another. */
export function usedDays(
  { customer }: BilledCustomer,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  figures: Partial<UsageFigures>,
): UsageDay[] {
  const count = dayOf(toMs) - dayOf(fromMs) + 1;
  return Array.from({ length: count }, (_, at) => ({
    ...METERED_NOTHING,
    ...figures,
    day: dayOf(fromMs) + at,
    accountId: customer.accountId,
    isClosed: true,
  }));
}
