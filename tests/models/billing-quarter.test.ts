// A quarter of sub-accounts, day by day: uploads, overwrites, early deletes, compositions and their ends, copies, appends, renames,
// a trial that ends, a suspension, a deletion, a price that changes within a month, a day on which nothing runs, restarts, and
// closings that are cut short at every step. Each invoice equals a calculation that was written independently, to the cent.
import { expect, test } from 'vitest';
import type { BilledCustomer } from '../../src/accounts/billed-customers.ts';
import { createMonthCloser } from '../../src/accounts/close-months.ts';
import { createInvoices } from '../../src/accounts/invoices.ts';
import { finishAtOnce } from '../../src/base/async/steps.ts';
import type { StateSince } from '../../src/billing/compute-invoice.ts';
import { invoicesCsv } from '../../src/billing/invoice-csv.ts';
import type { MetadataPort } from '../../src/ports/metadata/port.ts';
import { dayOf, daysOf } from '../../src/types/months.ts';
import { DAY_MS } from '../../src/types/usage.ts';
import { billedAmong, billedCustomer } from '../support/billing/billed-world.ts';
import { independentTotal } from '../support/billing/independent-invoice.ts';
import { QuarterLedger } from '../support/billing/quarter-ledger.ts';
import { openMetadata } from '../support/metadata/metadata-shards.ts';
import { casesOf } from '../support/run/long-form.ts';
import { createSeededRandom } from '../support/run/simulated.ts';

const GB = 2 ** 30;
const FIRST_DAY = dayOf(Date.UTC(2026, 3, 1));
const LAST_DAY = dayOf(Date.UTC(2026, 5, 30));
const MONTHS = ['2026-04', '2026-05', '2026-06'];
/** Nothing runs on this day, which is the last of a month. */
const DOWN_DAY = dayOf(Date.UTC(2026, 4, 31));

/** A whole number below `bound`. */
type Choose = (bound: number) => number;

function chooser(seed: number): Choose {
  const random = createSeededRandom(seed);
  return (bound) => Buffer.from(random.bytes(4)).readUInt32LE() % bound;
}

/** Five of them, each with a life of its own. Hours are no midnights, so that days have two states. */
function makeCustomers(choose: Choose): BilledCustomer[] {
  const at = (day: number) => (FIRST_DAY + day) * DAY_MS + choose(24) * 3_600_000 + 1;
  const lives: StateSince[][] = [
    [{ state: 'paid', fromMs: at(0) }],
    [
      { state: 'trial', fromMs: at(0) },
      { state: 'paid', fromMs: at(30) },
    ],
    [
      { state: 'paid', fromMs: at(2) },
      { state: 'suspended', fromMs: at(40) },
      { state: 'paid', fromMs: at(50) },
    ],
    [
      { state: 'paid', fromMs: at(1) },
      { state: 'deleted', fromMs: at(45) },
    ],
    [{ state: 'trial', fromMs: at(20) }],
  ];
  return lives.map((history, index) =>
    billedCustomer(10 + index, { controlId: 1 + (index % 2), createdAtMs: history[0]?.fromMs ?? 0, history }),
  );
}

function liveADay(ledger: QuarterLedger, day: number, choose: Choose): void {
  const key = () => `k${choose(12)}`;
  for (let step = choose(8); step > 0; step--) {
    // From a few bytes, which are charged with the smallest size, to a few hundred GB.
    const sizeBytes = choose(3) === 0 ? choose(8192) : choose(300) * GB + choose(GB);
    const acts = [
      () => ledger.put(key(), day, sizeBytes),
      () => ledger.put(key(), day, sizeBytes),
      () => ledger.append(key(), day, sizeBytes),
      () => ledger.copy(key(), key(), day),
      () => ledger.compose([key(), key()], key(), day),
      () => ledger.rename(key(), key(), day),
      () => ledger.remove(key(), day),
      () => ledger.read(key(), day),
    ];
    acts[choose(acts.length)]?.();
  }
}

/** Commands are lost now and then, before they are evaluated or behind it. */
function lossy(metadata: MetadataPort, choose: Choose): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      const fate = choose(4);
      if (fate === 0) return { kind: 'unknown' };
      const reply = await metadata.execute(envelope, name, command);
      return fate === 1 ? { kind: 'unknown' } : reply;
    },
  };
}

const seeds = casesOf({ short: [1, 2], longOnly: Array.from({ length: 18 }, (_, at) => at + 3) });

test.each(seeds)('seed %i: every invoice of a quarter is right to the cent', async (seed) => {
  const choose = chooser(seed);
  const world = await openMetadata({ shardCount: 2 });
  const customers = makeCustomers(choose);
  const ledgers = customers.map(({ customer }) => new QuarterLedger(customer.accountId));
  let counted: number | undefined;
  let nowMs = FIRST_DAY * DAY_MS;
  const start = (metadata: MetadataPort) =>
    createInvoices({
      metadata,
      customers: billedAmong(() => customers.filter(({ createdAtMs }) => createdAtMs <= nowMs)),
      usages: {
        lastClosedDay: async () => counted,
        byAccount: async (ids, { fromDay, toDay }) =>
          customers
            .flatMap(({ customer }, at) =>
              ids.includes(customer.accountId)
                ? Array.from(
                    { length: toDay - fromDay + 1 },
                    (_, day) => ledgers[at]?.day(fromDay + day) ?? [],
                  )
                : [],
            )
            .flat(),
      },
      clock: { wallMs: () => nowMs },
    });
  const operator = start(world.shards);
  const prices = { deletedStorage: '4.99', apiCalls: '0.005', egress: '0.04', ingress: '0.001' };
  await operator.setPriceList({
    from: '2026-03-01',
    currency: 'USD',
    prices: { ...prices, activeStorage: '5.99' },
  });
  await operator.setPriceList({
    from: '2026-05-12',
    currency: 'USD',
    prices: { ...prices, activeStorage: '6.99' },
  });

  const timeJumps = { mayRemoveByAge: () => true };
  const work = async () => {
    // Each day another process, which has nothing in memory and loses some of its answers.
    const invoices = start(lossy(world.shards, choose));
    const closer = createMonthCloser({ invoices, shards: () => [0], timeJumps, log: { info() {} } });
    await closer.work(new AbortController().signal).catch((error: { code?: string }) => {
      expect(error.code, `seed ${seed}`).toBe('ServiceUnavailable');
    });
  };
  for (let day = FIRST_DAY; day <= LAST_DAY; day++) {
    nowMs = (day + 1) * DAY_MS;
    customers.forEach(({ history }, at) => {
      const states = history.filter(({ fromMs }) => fromMs < (day + 1) * DAY_MS);
      const { state } = states.at(-1) ?? {};
      const ledger = ledgers[at];
      if (ledger === undefined || state === undefined || state === 'suspended') return;
      if (state !== 'deleted') liveADay(ledger, day, choose);
      else for (const key of ledger.keys()) ledger.remove(key, day);
    });
    if (day === DOWN_DAY) continue;
    counted = day;
    await work();
  }
  while ((await operator.closeNext()) !== undefined);

  const priceLists = await operator.priceLists();
  const { items } = await operator.list({}, { page: 1, size: 100 });
  const closed = new Map(items.map((item) => [`${item.month} ${item.customer.id}`, item]));
  for (const month of MONTHS) {
    customers.forEach(({ customer, history }, at) => {
      const { fromDay, toDay } = daysOf(month);
      const days = Array.from(
        { length: toDay - fromDay + 1 },
        (_, day) => ledgers[at]?.day(fromDay + day) ?? [],
      ).flat();
      const owed = independentTotal({ month, history, days, priceLists });
      const place = `seed ${seed}: ${month} of ${customer.id}`;
      const invoice = closed.get(`${month} ${customer.id}`);
      // Only a month without any charge has none.
      expect(invoice === undefined ? 0n : BigInt(invoice.total.replace('.', '')), place).toBe(owed);
    });
  }
  const ids = items.map(({ id }) => id).toSorted((a, b) => a - b);
  expect(ids).toEqual(Array.from(ids, (_, at) => at + 1));
  // Nothing of the account that is on trial, nor of another one's month of trial.
  expect(items).toHaveLength(11);

  const before = finishAtOnce(invoicesCsv(items));
  for (const month of MONTHS) expect((await operator.close(month)).createdCount).toBe(0);
  const again = await start(world.shards).list({}, { page: 1, size: 100 });
  expect(finishAtOnce(invoicesCsv(again.items))).toEqual(before);
});
