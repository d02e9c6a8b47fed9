// Price lists and invoices, as operators and partners see them: what a month comes to, closing it, lists of what is closed. What
// is charged is decided in src/billing; rows and numbers are the system shard's (R41).
import { computeInvoice } from '../billing/compute-invoice.ts';
import { checkPriceList, type PriceListInput } from '../billing/price-lists.ts';
import type { ClockPort } from '../ports/clock.ts';
import { INVOICES_OF_COMMAND, type InvoiceHead } from '../ports/metadata/billing.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import { dateOf, dayOf, daysOf, monthOf, nextMonth, parseMonth } from '../types/months.ts';
import {
  type BillingRecord,
  INVOICE_METRICS,
  type InvoiceRecord,
  type NewInvoice,
  type PriceListRecord,
} from '../types/records/billing-records.ts';
import { requireDone } from '../types/require-done.ts';
import type { UsageDay, UsageReader } from '../types/usage.ts';
import type { BilledCustomer, BilledCustomers } from './billed-customers.ts';
import { createInvoiceIndex } from './invoice-index.ts';

/** All absent: all there are. Days are YYYY-MM-DD. */
export interface InvoiceFilter {
  id?: number;
  subInvoiceId?: number;
  controlInvoiceId?: number;
  governanceAccountId?: number;
  controlAccountId?: number;
  channelAccountId?: number;
  subAccountId?: number;
  accountNumber?: string;
  /** Its period begins on this day or later. */
  from?: string;
  /** Its period ends on this day or earlier. */
  to?: string;
  periodEnd?: string;
  /** The newest of each sub-account. */
  latest?: boolean;
  /** The branch that the caller may see; absent: all. */
  within?: InvoiceBranch;
}

export interface InvoiceBranch {
  governanceAccountId?: number;
  controlAccountId?: number;
}

/** A closed invoice, or what an open month comes to by now. */
export type Invoice = InvoiceRecord & { isClosed: boolean };

export interface InvoicePage {
  items: Invoice[];
  total: number;
}

/** From 1 on. */
export interface PageAsked {
  page: number;
  size: number;
}

export interface Invoices {
  /** Closed ones, the newest first. Beyond the end: no items, and the true total. */
  list(filter: InvoiceFilter, page: PageAsked): Promise<InvoicePage>;
  /** A closed one. Throws NoSuchEntity, also for one outside of `within`. */
  get(id: number, within?: InvoiceBranch): Promise<Invoice>;
  /**
   * What a month (YYYY-MM) comes to by now, by sub-account; of a closed one its invoices. Throws ValidationError, also where no
   * price list holds yet.
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
  /** By date, ascending. */
  priceLists(): Promise<PriceListRecord[]>;
  /** In the place of one of the same day. Throws ValidationError that names the field. */
  setPriceList(input: PriceListInput): Promise<PriceListRecord>;
}

export interface InvoicesDeps {
  metadata: MetadataPort;
  usages: UsageReader;
  customers: BilledCustomers;
  clock: Pick<ClockPort, 'wallMs'>;
}

/** Changes of price lists at the same moment: one of them goes first. */
const SET_ATTEMPTS = 5;

export function createInvoices(deps: InvoicesDeps): Invoices {
  const { metadata, usages, customers, clock } = deps;
  const system = { shard: SYSTEM_SHARD };
  const index = createInvoiceIndex(metadata);

  const readPrices = async () => requireDone(await metadata.query(system, 'list-price-lists', {}));

  async function recordsOf(heads: readonly InvoiceHead[]): Promise<Invoice[]> {
    const query = { ids: heads.map(({ id }) => id) };
    const { invoices } = requireDone(await metadata.query(system, 'get-invoices', query));
    return invoices.flatMap((invoice) => (invoice === null ? [] : [{ ...invoice, isClosed: true }]));
  }

  async function list(filter: InvoiceFilter, page: PageAsked): Promise<InvoicePage> {
    const matching = filterHeads(await index.read(), filter);
    return { items: await recordsOf(sliceOf(matching, page)), total: matching.length };
  }

  async function computeAll(
    some: readonly BilledCustomer[],
    options: { month: string; priceLists: readonly PriceListRecord[]; throughDay?: number },
  ): Promise<NewInvoice[]> {
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
    const created = (await customers.list()).map(({ createdAtMs }) => createdAtMs);
    if (first === undefined || created.length === 0) return undefined;
    const earliest = monthOf(dayOf(created.reduce((least, ms) => Math.min(least, ms))));
    const priced = first.from.slice(0, earliest.length);
    return [earliest, priced].sort().at(-1);
  }

  async function writeInvoices(month: string): Promise<{ createdCount: number; existingCount: number }> {
    // Read behind the beginning: from there on the prices of the month stay as they are.
    const { lists } = await readPrices();
    const { toDay } = daysOf(month);
    const some = (await customers.list()).filter(({ createdAtMs }) => dayOf(createdAtMs) <= toDay);
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
      const existing = filterHeads(await index.read(), ofMonth(month));
      return { createdCount: 0, existingCount: existing.length };
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
    list,
    async get(id, within) {
      const [head] = filterHeads(await index.read(), { id, ...(within && { within }) });
      const [invoice] = head === undefined ? [] : await recordsOf([head]);
      if (invoice === undefined) throw new AppError('NoSuchEntity', { message: 'There is no such invoice.' });
      return invoice;
    },
    async preview(month, filter, page) {
      const { toDay } = requireMonth(month);
      const { lists, billing } = await readPrices();
      if (billing.closedMonth !== undefined && month <= billing.closedMonth)
        return list({ ...filter, ...ofMonth(month) }, page);
      const throughDay = Math.min(toDay, dayOf(clock.wallMs()));
      const [first] = lists;
      if (first === undefined || first.from > dateOf(throughDay)) throw invalid(NO_PRICES);
      const some = (await customers.list()).filter(
        ({ createdAtMs, customer, control }) =>
          dayOf(createdAtMs) <= throughDay &&
          (filter.controlAccountId ?? control.id) === control.id &&
          (filter.subAccountId ?? customer.id) === customer.id,
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
    priceLists: async () => (await readPrices()).lists,
    async setPriceList(input) {
      for (let attempt = 1; attempt <= SET_ATTEMPTS; attempt++) {
        const { lists, revision } = await readPrices();
        const list = checkPriceList(input, lists);
        const set = requireDone(
          await metadata.execute(system, 'set-price-list', { list, ifRevision: revision }),
        );
        if (set.kind === 'set') return set.list;
        if (set.kind === 'month-begun') {
          const problem = `must be behind ${set.month}, whose invoices are written`;
          throw new AppError('ValidationError', { fields: { from: problem } });
        }
      }
      throw new AppError('ServiceUnavailable');
    },
  };
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
  return { ...invoice, id: 0, controlInvoiceId: 0, month, closedAtMs: 0, isClosed: false };
}

// ---- lists ----

/** Those that match, the newest first. */
function filterHeads(heads: readonly InvoiceHead[], filter: InvoiceFilter): InvoiceHead[] {
  const matching = heads.filter((head) => matches(head, filter)).reverse();
  if (filter.latest !== true) return matching;
  const seen = new Set<number>();
  return matching.filter(({ customerId }) => !seen.has(customerId) && seen.add(customerId));
}

function matches(head: InvoiceHead, filter: InvoiceFilter): boolean {
  const { within = {} } = filter;
  const isSame = <T>(asked: T | undefined, value: T | undefined) => asked === undefined || asked === value;
  if (!isSame(within.governanceAccountId, head.governanceId)) return false;
  if (!isSame(within.controlAccountId, head.controlId)) return false;
  const isOfIds =
    isSame(filter.id, head.id) &&
    isSame(filter.subInvoiceId, head.id) &&
    isSame(filter.controlInvoiceId, head.controlInvoiceId) &&
    isSame(filter.governanceAccountId, head.governanceId) &&
    isSame(filter.controlAccountId, head.controlId) &&
    isSame(filter.channelAccountId, head.channelId) &&
    isSame(filter.subAccountId, head.customerId) &&
    isSame<string>(filter.accountNumber, head.accountId);
  if (!isOfIds) return false;
  if (filter.from === undefined && filter.to === undefined && filter.periodEnd === undefined) return true;
  const { periodStart, periodEnd } = periodOf(head.month);
  return (
    (filter.from === undefined || periodStart >= filter.from) &&
    (filter.to === undefined || periodEnd <= filter.to) &&
    isSame(filter.periodEnd, periodEnd)
  );
}

/** First and last day of a month, as YYYY-MM-DD. */
export function periodOf(month: string): { periodStart: string; periodEnd: string } {
  const { fromDay, toDay } = daysOf(month);
  return { periodStart: dateOf(fromDay), periodEnd: dateOf(toDay) };
}

function ofMonth(month: string): Pick<InvoiceFilter, 'from' | 'to'> {
  const { periodStart, periodEnd } = periodOf(month);
  return { from: periodStart, to: periodEnd };
}

function sliceOf<T>(items: readonly T[], { page, size }: PageAsked): readonly T[] {
  return items.slice((page - 1) * size, page * size);
}

// ---- errors ----

function requireMonth(month: string): { fromDay: number; toDay: number } {
  const days = parseMonth(month);
  if (days === undefined) throw invalid('must be a month, as 2026-01');
  return days;
}

function invalid(problem: string): AppError {
  return new AppError('ValidationError', { fields: { month: problem } });
}
