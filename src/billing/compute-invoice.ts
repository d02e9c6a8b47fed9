// What a sub-account owes for a month: pure, and the same whenever it is computed. Figures are those of extensions 1.6, charged
// as extensions 6 says. All is exact until the total is rounded, once.
import { assert } from '../base/assert.ts';
import { dateOf, daysOf } from '../types/months.ts';
import {
  INVOICE_METRICS,
  type InvoiceDays,
  type InvoiceFigures,
  type InvoiceLine,
  type InvoiceMetric,
  type InvoiceSegment,
  type PriceListRecord,
} from '../types/records/billing-records.ts';
import type { AccountState } from '../types/records/rows.ts';
import { activeBytes, apiCallCount, DAY_MS, type UsageDay } from '../types/usage.ts';
import { decimalText, type Exact, exact, moneyText, sum, ZERO } from './exact.ts';
import { listInForce } from './price-lists.ts';

const GB = 1n << 30n;
const GB_PER_TB = 1024n;
const DAYS_OF_MONTH = 30n;
/** Digits behind the point of quantities and unit costs; of months of minimum storage (extensions 1.6). */
const DIGITS = 8;
const MINIMUM_DIGITS = 7;

/** A state that a sub-account came into; it stays in it until the next one. */
export interface StateSince {
  state: AccountState | 'deleted';
  fromMs: number;
}

export interface InvoiceInput {
  /** YYYY-MM. */
  month: string;
  /** In order; the first is that of its creation. */
  history: readonly StateSince[];
  /** Of the account, in any order; those of other days are passed over. */
  days: readonly UsageDay[];
  /** By date, ascending. At least one holds on the last day that counts. */
  priceLists: readonly PriceListRecord[];
  /** The last day that counts; absent: the whole month does. */
  throughDay?: number;
}

type Metered = Exclude<InvoiceMetric, 'minimumActiveStorage'>;
const METERED: readonly Metered[] = INVOICE_METRICS.filter((metric) => metric !== 'minimumActiveStorage');

/** Days in a row with one price list. */
interface Segment {
  list: PriceListRecord;
  fromDay: number;
  toDay: number;
  /** Byte-days of storage, bytes of traffic, calls. */
  counts: Record<Metered, bigint>;
  /** Byte-days on days that have a minimum, and the number of these days. */
  activeOfMinimum: bigint;
  minimumDays: bigint;
}

export function computeInvoice({
  month,
  history,
  days,
  priceLists,
  throughDay = Infinity,
}: InvoiceInput): InvoiceFigures {
  const { fromDay, toDay } = daysOf(month);
  const usages = new Map(days.map((usage) => [usage.day, usage]));
  const segments: Segment[] = [];
  const counted: InvoiceDays = { charged: 0, trial: 0, deleted: 0, none: 0, suspended: 0 };
  for (let day = fromDay; day <= Math.min(toDay, throughDay); day++) {
    const list = listInForce(priceLists, day);
    if (list === undefined) {
      counted.none++;
      continue;
    }
    const segment = segmentOf(segments, list, day);
    const { kind, isSuspended } = kindOfDay(history, day);
    counted[kind]++;
    if (isSuspended) counted.suspended++;
    if (kind === 'charged' || kind === 'deleted')
      addDay(segment, usages.get(day), { hasMinimum: kind === 'charged' });
  }
  const last = segments.at(-1);
  assert(last !== undefined, 'a price list holds in the month');
  const costs = {
    ...Object.fromEntries(METERED.map((metric) => [metric, meteredCost(segments, metric)])),
    minimumActiveStorage: minimumCost(segments),
  } as Record<InvoiceMetric, Cost>;
  const total = sum(INVOICE_METRICS.map((metric) => costs[metric].total));
  return {
    currency: last.list.currency,
    total: moneyText(total, last.list.fractionDigits),
    lines: Object.fromEntries(
      INVOICE_METRICS.map((metric) => [metric, lineOf(costs[metric], metric)]),
    ) as Record<InvoiceMetric, InvoiceLine>,
    segments: segments.map(segmentLines),
    days: counted,
  };
}

/** On trial for any moment: free. Deleted from its first moment on: without a minimum. */
function kindOfDay(
  history: readonly StateSince[],
  day: number,
): { kind: Exclude<keyof InvoiceDays, 'suspended'>; isSuspended: boolean } {
  const [fromMs, toMs] = [day * DAY_MS, (day + 1) * DAY_MS];
  const before = history.findLast((since) => since.fromMs <= fromMs);
  const within = history.filter((since) => since.fromMs > fromMs && since.fromMs < toMs);
  const states = [...(before ? [before] : []), ...within].map(({ state }) => state);
  const atEnd = states.at(-1);
  if (atEnd === undefined) return { kind: 'none', isSuspended: false };
  if (states.includes('trial')) return { kind: 'trial', isSuspended: false };
  if (states.every((state) => state === 'deleted')) return { kind: 'deleted', isSuspended: false };
  return { kind: 'charged', isSuspended: atEnd === 'suspended' };
}

function segmentOf(segments: Segment[], list: PriceListRecord, day: number): Segment {
  const last = segments.at(-1);
  if (last?.list === list) {
    last.toDay = day;
    return last;
  }
  const counts = { activeStorage: 0n, deletedStorage: 0n, apiCalls: 0n, ingress: 0n, egress: 0n };
  const segment = { list, fromDay: day, toDay: day, counts, activeOfMinimum: 0n, minimumDays: 0n };
  segments.push(segment);
  return segment;
}

function addDay(
  segment: Segment,
  usage: UsageDay | undefined,
  { hasMinimum }: { hasMinimum: boolean },
): void {
  if (hasMinimum) segment.minimumDays++;
  if (usage === undefined) return;
  const { counts } = segment;
  const active = BigInt(activeBytes(usage));
  counts.activeStorage += active;
  counts.deletedStorage += BigInt(usage.deletedBytes);
  counts.apiCalls += BigInt(apiCallCount(usage));
  counts.ingress += BigInt(usage.uploadBytes);
  counts.egress += BigInt(usage.downloadBytes);
  if (hasMinimum) segment.activeOfMinimum += active;
}

// ---- costs ----

interface Cost {
  quantity: Exact;
  unit: Exact;
  total: Exact;
}

/** How a price of the list becomes that of a unit of the invoice, and how counts become units. */
const UNITS: Record<Metered, { perPrice: bigint; perQuantity: bigint }> = {
  activeStorage: { perPrice: GB_PER_TB * DAYS_OF_MONTH, perQuantity: GB },
  deletedStorage: { perPrice: GB_PER_TB * DAYS_OF_MONTH, perQuantity: GB },
  apiCalls: { perPrice: 1000n, perQuantity: 1n },
  ingress: { perPrice: 1n, perQuantity: GB },
  egress: { perPrice: 1n, perQuantity: GB },
};

function segmentCost({ list, counts }: Segment, metric: Metered): Cost {
  const { perPrice, perQuantity } = UNITS[metric];
  const unit = exact(list.prices[metric]).div(perPrice);
  const quantity = exact(counts[metric]).div(perQuantity);
  return { quantity, unit, total: quantity.mul(unit) };
}

function meteredCost(segments: readonly Segment[], metric: Metered): Cost {
  const costs = segments.map((segment) => segmentCost(segment, metric));
  const quantity = sum(costs.map((cost) => cost.quantity));
  const total = sum(costs.map((cost) => cost.total));
  return { quantity, total, unit: unitOf(costs, { quantity, total }) };
}

/** Where units differ: what one has cost on average. Without a quantity: the newest. */
function unitOf(costs: readonly Cost[], { quantity, total }: Omit<Cost, 'unit'>): Exact {
  const newest = costs.at(-1)?.unit ?? ZERO;
  const isSame = costs.every(({ unit }) => unit.equals(newest));
  return isSame || quantity.equals(ZERO) ? newest : total.div(quantity);
}

/**
 * What is missing of the minimum over the whole month: active storage above it on some days makes up for less on others. Where
 * prices have changed, the missing part costs what the whole minimum costs on average.
 */
function minimumCost(segments: readonly Segment[]): Cost {
  const parts = segments.map(({ list, minimumDays }) => {
    const quantity = exact(list.prices.minimumTB).mul(minimumDays).div(DAYS_OF_MONTH);
    const unit = exact(list.prices.minimumStorage);
    return { quantity, unit, total: quantity.mul(unit) };
  });
  const whole = {
    quantity: sum(parts.map((part) => part.quantity)),
    total: sum(parts.map((part) => part.total)),
  };
  const unit = unitOf(parts, whole);
  const activeBytesOfDays = segments.reduce((bytes, { activeOfMinimum }) => bytes + activeOfMinimum, 0n);
  const active = exact(activeBytesOfDays).div(GB * GB_PER_TB * DAYS_OF_MONTH);
  const missing = whole.quantity.gt(active) ? whole.quantity.sub(active) : ZERO;
  return { quantity: missing, unit, total: missing.mul(unit) };
}

// ---- for show ----

function lineOf({ quantity, unit, total }: Cost, metric: InvoiceMetric): InvoiceLine {
  const digits = metric === 'minimumActiveStorage' ? MINIMUM_DIGITS : DIGITS;
  return {
    quantity: decimalText(quantity, digits),
    unitCost: decimalText(unit, DIGITS),
    totalCost: decimalText(total, DIGITS),
  };
}

function segmentLines(segment: Segment): InvoiceSegment {
  const lines = METERED.map((metric) => [metric, lineOf(segmentCost(segment, metric), metric)]);
  return { from: dateOf(segment.fromDay), to: dateOf(segment.toDay), lines: Object.fromEntries(lines) };
}
