// What a month costs, written a second time and in another way: day by day, in whole numbers over one denominator, and without
// anything of src/billing. Tests compare both.
import type { InvoiceInput } from '../../../src/billing/compute-invoice.ts';
import type { Prices } from '../../../src/types/records/billing-records.ts';

const DAY = 24 * 3600 * 1000;
/** Prices have 8 digits behind the point at most. */
const PRICE_UNIT = 100_000_000n;
const TERABYTE = 1024n ** 4n;
/** Of costs: a byte of storage for a day, a byte of traffic and a call all cost a whole number of these. */
const COST_UNIT = PRICE_UNIT * TERABYTE * 30n * 1000n;

function priceUnits(price: string): bigint {
  const [whole = '0', behind = ''] = price.split('.');
  return BigInt(whole) * PRICE_UNIT + BigInt(behind.padEnd(8, '0'));
}

/** In the least unit of the currency, as cents. */
export function independentTotal(input: InvoiceInput): bigint {
  const [year = 0, month = 0] = input.month.split('-').map(Number);
  let cost = 0n;
  // Of the minimum: TB in price units, what it costs, and what was stored on its days.
  let minimumTB = 0n;
  let minimumCost = 0n;
  let storedOfMinimum = 0n;
  let digits = 2;
  for (let at = Date.UTC(year, month - 1); at < Date.UTC(year, month); at += DAY) {
    const date = new Date(at).toISOString().slice(0, 10);
    const list = input.priceLists.filter(({ from }) => from <= date).at(-1);
    if (list === undefined) continue;
    digits = list.fractionDigits;
    const states = statesOn(input.history, at);
    if (states.length === 0 || states.includes('trial')) continue;
    const used = input.days.find(({ day }) => day * DAY === at);
    const active = BigInt((used?.paddedBytes ?? 0) + (used?.metadataBytes ?? 0) + (used?.orphanedBytes ?? 0));
    if (used !== undefined) cost += dayCost(used, active, list.prices);
    if (states.some((state) => state !== 'deleted')) {
      minimumTB += priceUnits(list.prices.minimumTB);
      minimumCost += priceUnits(list.prices.minimumTB) * priceUnits(list.prices.minimumStorage);
      storedOfMinimum += active;
    }
  }
  // missing / minimum of the minimum's cost; all of it over PRICE_UNIT^2 * 30.
  const missing = minimumTB * TERABYTE - storedOfMinimum * PRICE_UNIT;
  let numerator = cost;
  let denominator = COST_UNIT;
  if (missing > 0n) {
    const whole = minimumTB * TERABYTE;
    numerator = cost * PRICE_UNIT * PRICE_UNIT * 30n * whole + minimumCost * missing * COST_UNIT;
    denominator = COST_UNIT * PRICE_UNIT * PRICE_UNIT * 30n * whole;
  }
  // Half up: the floor of twice as much and one, halved.
  return (2n * numerator * 10n ** BigInt(digits) + denominator) / (2n * denominator);
}

function statesOn(history: InvoiceInput['history'], at: number): string[] {
  return history.flatMap(({ state, fromMs }, index) => {
    const untilMs = history[index + 1]?.fromMs ?? Infinity;
    // What begins with the day's last moment over is the next day's; a state that another one replaces at once was never so.
    return fromMs < at + DAY && untilMs > at && untilMs > fromMs ? [state] : [];
  });
}

function dayCost(used: InvoiceInput['days'][number], active: bigint, prices: Prices): bigint {
  const storage =
    active * priceUnits(prices.activeStorage) + BigInt(used.deletedBytes) * priceUnits(prices.deletedStorage);
  const calls =
    used.getCalls + used.putCalls + used.deleteCalls + used.listCalls + used.headCalls + used.otherCalls;
  const traffic =
    BigInt(used.uploadBytes) * priceUnits(prices.ingress) +
    BigInt(used.downloadBytes) * priceUnits(prices.egress);
  // To COST_UNIT: storage lacks the 1000, traffic is per GB (1024 times a TB's), calls are per thousand.
  return (
    storage * 1000n +
    traffic * 1024n * 30n * 1000n +
    BigInt(calls) * priceUnits(prices.apiCalls) * TERABYTE * 30n
  );
}
