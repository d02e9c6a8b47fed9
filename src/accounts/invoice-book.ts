// Price lists and closed invoices, as operators and partners see them: lists with the filters of extensions 1.6, and price lists
// that may still change. What a month comes to is in invoices.ts.
import { createFairTurns } from '../base/async/fair-turns.ts';
import type { Steps } from '../base/async/steps.ts';
import { checkPriceList, type PriceListInput } from '../billing/price-lists.ts';
import type { InvoiceHead } from '../ports/metadata/billing.ts';
import { type MetadataPort, type ResultOf, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import { AppError, invalidFields } from '../types/errors.ts';
import { dateOf, daysOf } from '../types/months.ts';
import type { InvoiceRecord, PriceListRecord } from '../types/records/billing-records.ts';
import { requireDone } from '../types/require-done.ts';
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

/** A closed invoice, or what an open month comes to by now. `isOwed`: false where nothing is charged, so that there will be none. */
export type Invoice = InvoiceRecord & { isClosed: boolean; isOwed: boolean };

export interface InvoicePage {
  items: Invoice[];
  total: number;
}

/** From 1 on. */
export interface PageAsked {
  page: number;
  size: number;
}

export interface InvoiceBook {
  /** Closed ones, the newest first. Beyond the end: no items, and the true total. */
  list(filter: InvoiceFilter, page: PageAsked): Promise<InvoicePage>;
  /** A closed one. Throws NoSuchEntity, also for one outside of `within`. */
  get(id: number, within?: InvoiceBranch): Promise<Invoice>;
  /** By date, ascending. */
  priceLists(): Promise<PriceListRecord[]>;
  /** In the place of one of the same day. Throws ValidationError that names the field. */
  setPriceList(input: PriceListInput): Promise<PriceListRecord>;
  /** Price lists, and which months are closed. */
  readPrices(): Promise<ResultOf<'list-price-lists'>>;
}

/** Changes of price lists at the same moment: one of them goes first. */
const SET_ATTEMPTS = 5;

/** Invoices of one answer of `get-invoices`: two milliseconds to read. */
const RECORDS_READ = 100;
/** Heads that are looked at in one turn: some hundred microseconds. */
const HEADS_OF_STEP = 4000;

export function createInvoiceBook(metadata: MetadataPort): InvoiceBook {
  const system = { shard: SYSTEM_SHARD };
  const index = createInvoiceIndex(metadata);
  const turns = createFairTurns();

  const readPrices = async () => requireDone(await metadata.query(system, 'list-price-lists', {}));

  /** `owner`: whose turns it takes. */
  async function recordsOf(heads: readonly InvoiceHead[], owner: string | undefined): Promise<Invoice[]> {
    const found: Invoice[] = [];
    for (let at = 0; at < heads.length; at += RECORDS_READ) {
      const query = { ids: heads.slice(at, at + RECORDS_READ).map(({ id }) => id) };
      const { invoices } = requireDone(await metadata.query(system, 'get-invoices', query));
      for (const invoice of invoices)
        if (invoice !== null) found.push({ ...invoice, isClosed: true, isOwed: true });
      await turns.take({ owner, work: 'records' });
    }
    return found;
  }

  async function find(filter: InvoiceFilter): Promise<InvoiceHead[]> {
    const owner = ownerOf(filter.within);
    return turns.finish({ owner, work: 'invoices' }, filterHeads(await index.read(), filter));
  }

  async function list(filter: InvoiceFilter, page: PageAsked): Promise<InvoicePage> {
    const matching = await find(filter);
    return {
      items: await recordsOf(sliceOf(matching, page), ownerOf(filter.within)),
      total: matching.length,
    };
  }

  return {
    list,
    readPrices,
    async get(id, within) {
      const [head] = await find({ id, ...(within && { within }) });
      const [invoice] = head === undefined ? [] : await recordsOf([head], ownerOf(within));
      if (invoice === undefined) throw new AppError('NoSuchEntity', { message: 'There is no such invoice.' });
      return invoice;
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
          throw invalidFields({ from: problem });
        }
      }
      throw new AppError('ServiceUnavailable');
    },
  };
}

function ownerOf({ governanceAccountId, controlAccountId = governanceAccountId }: InvoiceBranch = {}) {
  return controlAccountId === undefined ? undefined : String(controlAccountId);
}

/** Those that match, the newest first. There may be millions, of all months and sub-accounts. */
export function* filterHeads(heads: readonly InvoiceHead[], filter: InvoiceFilter): Steps<InvoiceHead[]> {
  const found: InvoiceHead[] = [];
  const seen = new Set<number>();
  const periods = new Map<string, ReturnType<typeof periodOf>>();
  for (let left = heads.length; left > 0; left--) {
    if (left % HEADS_OF_STEP === 0) yield;
    const head = heads[left - 1];
    if (head === undefined || !matches(head, filter, periods)) continue;
    if (filter.latest === true && seen.has(head.customerId)) continue;
    if (filter.latest === true) seen.add(head.customerId);
    found.push(head);
  }
  return found;
}

function matches(
  head: InvoiceHead,
  filter: InvoiceFilter,
  periods: Map<string, ReturnType<typeof periodOf>>,
): boolean {
  const { within = {} } = filter;
  const isSame = <T>(asked: T | undefined, value: T | undefined) => asked === undefined || asked === value;
  if (!isSame(within.governanceAccountId, head.governanceId)) return false;
  if (!isSame(within.controlAccountId, head.controlId)) return false;
  const isOfIds =
    isSame(filter.id, head.id) &&
    isSame(filter.subInvoiceId, head.id) &&
    isSame(filter.controlInvoiceId, head.controlInvoiceId) &&
    // Control accounts are not told it (tenancy-rules.ts).
    (within.controlAccountId !== undefined || isSame(filter.governanceAccountId, head.governanceId)) &&
    isSame(filter.controlAccountId, head.controlId) &&
    isSame(filter.channelAccountId, head.channelId) &&
    isSame(filter.subAccountId, head.customerId) &&
    isSame<string>(filter.accountNumber, head.accountId);
  if (!isOfIds) return false;
  if (filter.from === undefined && filter.to === undefined && filter.periodEnd === undefined) return true;
  const period = periods.get(head.month) ?? periodOf(head.month);
  periods.set(head.month, period);
  const { periodStart, periodEnd } = period;
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

export function ofMonth(month: string): Pick<InvoiceFilter, 'from' | 'to'> {
  const { periodStart, periodEnd } = periodOf(month);
  return { from: periodStart, to: periodEnd };
}

export function sliceOf<T>(items: readonly T[], { page, size }: PageAsked): readonly T[] {
  return items.slice((page - 1) * size, page * size);
}
