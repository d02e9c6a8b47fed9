// What a month comes to, and closing it. What is charged is decided in src/billing; rows and numbers are the system shard's (R41).
import { computeInvoice } from '../billing/compute-invoice.ts';
import type { ClockPort } from '../ports/clock.ts';
import { INVOICES_OF_COMMAND } from '../ports/metadata/billing.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import { AppError, invalidFields } from '../types/errors.ts';
import { dateOf, dayOf, daysOf, monthOf, nextMonth, parseMonth } from '../types/months.ts';
import {
  type BillingRecord,
  INVOICE_METRICS,
  type NewInvoice,
  type PriceListRecord,
} from '../types/records/billing-records.ts';
import { requireDone } from '../types/require-done.ts';
import type { UsageDay, UsageReader } from '../types/usage.ts';
import type { BilledCustomer, BilledCustomers, BilledHead } from './billed-customers.ts';
import {
  createInvoiceBook,
  type Invoice,
  type InvoiceBook,
  type InvoiceFilter,
  type InvoicePage,
  ofMonth,
  type PageAsked,
  sliceOf,
} from './invoice-book.ts';
import { noSuch } from './tenancy-rules.ts';

export interface Invoices extends InvoiceBook {
  /**
   * What a month (YYYY-MM) comes to by now, by sub-account; of a closed one its invoices. Throws ValidationError, also where no
   * price list holds yet; NoSuchEntity for a sub-account that is not there.
   */
  preview(
    month: string,
    filter: Pick<InvoiceFilter, 'controlAccountId' | 'subAccountId'>,
    page: PageAsked,
  ): Promise<InvoicePage>;
  /**
   * Writes the invoices of a month. Of one that is closed nothing changes. Throws ValidationError for a month that is still open,
   * and for one that is not next.
   */
  close(month: string): Promise<{ createdCount: number; existingCount: number }>;
  /** Closes the next month if all its days are over and counted; resolves with it. */
  closeNext(): Promise<string | undefined>;
}

export interface InvoicesDeps {
  metadata: MetadataPort;
  usages: UsageReader;
  customers: BilledCustomers;
  clock: Pick<ClockPort, 'wallMs'>;
}

export function createInvoices(deps: InvoicesDeps): Invoices {
  const { metadata, usages, customers, clock } = deps;
  const system = { shard: SYSTEM_SHARD };
  const book = createInvoiceBook(metadata);
  const { readPrices } = book;

  async function computeAll(
    ids: readonly number[],
    options: { month: string; priceLists: readonly PriceListRecord[]; throughDay?: number },
  ): Promise<NewInvoice[]> {
    const some = await customers.read(ids);
    const accountIds = some.map(({ customer }) => customer.accountId);
    const days = await usages.byAccount(accountIds, daysOf(options.month));
    const byAccount = Map.groupBy(days, ({ accountId }) => accountId);
    return some.map((customer) =>
      computeOne(customer, byAccount.get(customer.customer.accountId) ?? [], options),
    );
  }

  /** The month that is closed next; undefined while nobody is charged. */
  async function nextToClose(billing: BillingRecord, lists: readonly PriceListRecord[]) {
    const { begunMonth, closedMonth } = billing;
    if (begunMonth !== undefined) return begunMonth === closedMonth ? nextMonth(begunMonth) : begunMonth;
    const [first] = lists;
    const heads = await customers.heads();
    if (first === undefined || heads.length === 0) return undefined;
    const createdAtMs = heads.reduce((least, head) => Math.min(least, head.createdAtMs), Infinity);
    const earliest = monthOf(dayOf(createdAtMs));
    const priced = first.from.slice(0, earliest.length);
    return [earliest, priced].sort().at(-1);
  }

  async function writeInvoices(month: string): Promise<{ createdCount: number; existingCount: number }> {
    // Read behind the beginning: from there on the prices of the month stay as they are.
    const { lists } = await readPrices();
    const { toDay } = daysOf(month);
    const some = idsOf(await customers.heads(), ({ createdAtMs }) => dayOf(createdAtMs) <= toDay);
    const counts = { createdCount: 0, existingCount: 0 };
    for (let at = 0; at < some.length; at += INVOICES_OF_COMMAND) {
      const computed = await computeAll(some.slice(at, at + INVOICES_OF_COMMAND), {
        month,
        priceLists: lists,
      });
      const invoices = computed.filter(isOwed);
      if (invoices.length === 0) continue;
      const written = requireDone(await metadata.execute(system, 'close-invoices', { month, invoices }));
      // Somebody else has ended the month meanwhile: then all of them are there.
      if (written.kind === 'not-begun') break;
      counts.createdCount += written.createdCount;
      counts.existingCount += written.existingCount;
    }
    const ended = requireDone(await metadata.execute(system, 'end-month', { month }));
    if (ended.kind === 'not-begun') throw new AppError('ServiceUnavailable');
    return counts;
  }

  async function close(month: string) {
    const { toDay } = requireMonth(month);
    const { lists, billing } = await readPrices();
    if (billing.closedMonth !== undefined && month <= billing.closedMonth) {
      const { total } = await book.list(ofMonth(month), { page: 1, size: 1 });
      return { createdCount: 0, existingCount: total };
    }
    const next = await nextToClose(billing, lists);
    if (next === undefined) throw invalid(lists.length === 0 ? NO_PRICES : 'there are no sub-accounts yet');
    if (month < next) throw invalid(`is before ${next}, the first month with invoices`);
    if (month > next) throw invalid(`comes behind ${next}, which is not closed yet`);
    const lastClosedDay = await usages.lastClosedDay();
    if (lastClosedDay === undefined || lastClosedDay < toDay) throw invalid(openUntil(toDay, lastClosedDay));
    const begun = requireDone(await metadata.execute(system, 'begin-month', { month }));
    if (begun.kind === 'out-of-order') throw invalid(`comes behind ${begun.next}, which is not closed yet`);
    return writeInvoices(month);
  }

  return {
    ...book,
    async preview(month, filter, page) {
      const { fromDay, toDay } = requireMonth(month);
      const { lists, billing } = await readPrices();
      const all = await customers.heads();
      const { subAccountId } = filter;
      if (subAccountId !== undefined && !all.some(({ id }) => id === subAccountId))
        throw noSuch('sub-account', 'subAccountId');
      if (billing.closedMonth !== undefined && month <= billing.closedMonth)
        return book.list({ ...filter, ...ofMonth(month) }, page);
      const today = dayOf(clock.wallMs());
      if (fromDay > today) throw invalid('has not begun yet');
      const throughDay = Math.min(toDay, today);
      const [first] = lists;
      if (first === undefined || first.from > dateOf(throughDay)) throw invalid(NO_PRICES);
      const some = idsOf(
        all,
        ({ createdAtMs, id, controlId }) =>
          dayOf(createdAtMs) <= throughDay &&
          (filter.controlAccountId ?? controlId) === controlId &&
          (subAccountId ?? id) === id,
      );
      const options = { month, priceLists: lists, throughDay };
      const computed = await computeAll(sliceOf(some, page), options);
      return { items: computed.map((invoice) => unnumbered(invoice, month)), total: some.length };
    },
    close,
    async closeNext() {
      const { lists, billing } = await readPrices();
      const month = await nextToClose(billing, lists);
      const lastClosedDay = await usages.lastClosedDay();
      if (month === undefined || lastClosedDay === undefined || daysOf(month).toDay > lastClosedDay)
        return undefined;
      await close(month);
      return month;
    },
  };
}

function idsOf(heads: readonly BilledHead[], isAsked: (head: BilledHead) => boolean): number[] {
  return heads.filter(isAsked).map(({ id }) => id);
}

const NO_PRICES = 'has no price list that holds in it';

function openUntil(toDay: number, lastClosedDay: number | undefined): string {
  const counted =
    lastClosedDay === undefined ? 'no day is counted yet' : `counted to ${dateOf(lastClosedDay)}`;
  return `is still open: it ends on ${dateOf(toDay)}, and ${counted}`;
}

function computeOne(
  { customer, control, channel, governance, history }: BilledCustomer,
  days: readonly UsageDay[],
  options: { month: string; priceLists: readonly PriceListRecord[]; throughDay?: number },
): NewInvoice {
  const figures = computeInvoice({ ...options, days, history });
  return {
    customer,
    control,
    ...(channel && { channel }),
    ...(governance && { governance }),
    ...figures,
  };
}

/** A month that was free as a whole, and one long after the deletion of an account, has no invoice. */
function isOwed({ days, lines }: NewInvoice): boolean {
  return days.charged > 0 || INVOICE_METRICS.some((metric) => lines[metric].quantity !== '0');
}

function unnumbered(invoice: NewInvoice, month: string): Invoice {
  return {
    ...invoice,
    id: 0,
    controlInvoiceId: 0,
    month,
    closedAtMs: 0,
    isClosed: false,
    isOwed: isOwed(invoice),
  };
}

// ---- errors ----

function requireMonth(month: string): { fromDay: number; toDay: number } {
  const days = parseMonth(month);
  if (days === undefined) throw invalid('must be a month, as 2026-01');
  return days;
}

function invalid(problem: string): AppError {
  return invalidFields({ month: problem });
}
