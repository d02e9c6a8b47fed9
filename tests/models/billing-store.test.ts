// A quarter, and two months before it, of sub-accounts in a real store: uploads, overwrites, early deletes, compositions and their
// ends, copies, appends, renames, a trial that ends, a suspension, a deletion, a price that changes within a month, a day on which
// nothing runs, restarts; requests, which gateways meter and send, and whose answers are lost now and then. What the store has
// metered of each day equals the ledger to the byte and the call, and each invoice to the cent.
import { expect, test } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { createMonthWorker } from '../../src/accounts/close-months.ts';
import { createTenancy } from '../../src/accounts/create-tenancy.ts';
import { createInvoiceBook } from '../../src/accounts/invoice-book.ts';
import { createPlanKeeper } from '../../src/accounts/plans.ts';
import type { CustomerView } from '../../src/accounts/tenancy.ts';
import { OPERATOR } from '../../src/accounts/tenancy-rules.ts';
import { createUsages } from '../../src/accounts/usages.ts';
import { finishAtOnce } from '../../src/base/async/steps.ts';
import type { StateSince } from '../../src/billing/compute-invoice.ts';
import { invoicesCsv } from '../../src/billing/invoice-csv.ts';
import { CHUNK_COLUMNS } from '../../src/chunks/disk/keyspace.ts';
import { createTrafficMeter, type TrafficMeter } from '../../src/gateway/metering/traffic-meter.ts';
import { SHARD_COLUMNS } from '../../src/metadata/engine/shards.ts';
import { leaseQuotas } from '../../src/metadata/quotas/lease-quotas.ts';
import { setAccountQuota } from '../../src/metadata/quotas/operate-quotas.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from '../../src/metadata/usage/close-usage-worker.ts';
import { createKeyring } from '../../src/platform/memory/memory-keyring.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import type { MetadataPort } from '../../src/ports/metadata/port.ts';
import { DEFAULT_METERING } from '../../src/types/metered.ts';
import { dayOf, daysOf } from '../../src/types/months.ts';
import type { BucketId, BucketName } from '../../src/types/names.ts';
import { DAY_MS } from '../../src/types/usage.ts';
import { independentTotal } from '../support/billing/independent-invoice.ts';
import { QuarterLedger } from '../support/billing/quarter-ledger.ts';
import { actsOf, type LivingAccount, liveADay } from '../support/billing/quarter-life.ts';
import { runUntilIdle } from '../support/metadata/run-worker.ts';
import { type ObjectWorld, openObjectWorld } from '../support/objects/object-world.ts';
import { casesOf } from '../support/run/long-form.ts';
import { createManualClock, createSeededRandom } from '../support/run/simulated.ts';

const FIRST_DAY = dayOf(Date.UTC(2026, 1, 1));
const LAST_DAY = dayOf(Date.UTC(2026, 5, 30));
const APRIL_1 = dayOf(Date.UTC(2026, 3, 1));
const MONTHS = ['2026-04', '2026-05', '2026-06'];
/** Nothing runs on this day, which is the last of a month. */
const DOWN_DAY = dayOf(Date.UTC(2026, 4, 31));
/** Days begin and end there for the test: a gateway has still to send some of the day before. */
const BEHIND_MIDNIGHT_MS = 60_000;
const TRIAL_DAYS = 70;
const SUSPENDED_DAY = APRIL_1 + 40;
const RESTORED_DAY = APRIL_1 + 50;
const DELETED_DAY = APRIL_1 + 45;
const RESTART_EVERY_DAYS = 17;
/** Of so many answers to what a gateway sends of requests one is lost. */
const LOST_OF = 4;
/** Of so few bytes and calls something that has cents. */
const TRAFFIC_PRICES = { apiCalls: '21.75', ingress: '54321.12345678', egress: '98765.4321' };
const log = { info() {}, warn() {} };
const telemetry = { gauge() {}, count: () => expect.unreachable('requests are lost') };
const timeJumps = { mayRemoveByAge: () => true };
const hasher = { hash: async () => 'hash', verify: async () => true };

type Life = 'paid' | 'tried' | 'suspended' | 'deleted';

interface Customer extends LivingAccount {
  life: Life;
  view: CustomerView;
  history: StateSince[];
}

/** The store, which may be opened anew over what it has stored. */
class Store {
  readonly clock = createManualClock(FIRST_DAY * DAY_MS);
  readonly #kvs = { kv: createMemoryKv(SHARD_COLUMNS), chunkKv: createMemoryKv(CHUNK_COLUMNS) };
  readonly #keyring = createKeyring();
  #seed = 0;
  world!: ObjectWorld;
  meter!: TrafficMeter;

  async open(): Promise<void> {
    this.#seed++;
    const { clock } = this;
    this.world = await openObjectWorld({
      stores: { ...this.#kvs, clock, keyring: this.#keyring },
      seed: this.#seed,
      intercept: (shards) => leaseQuotas(shards, { clock, log, telemetry: { count() {} } }),
    });
    const random = createSeededRandom(700 + this.#seed);
    const isLost = () => (random.bytes(1)[0] ?? 0) % LOST_OF === 0;
    const metadata = lossy(this.metadata, isLost);
    this.meter = createTrafficMeter({ metadata, clock, random, log, telemetry, flushEveryMs: 60_000 });
  }

  /** Twice: what is lost is sent once more. */
  async flush(): Promise<void> {
    await this.meter.flush();
    await this.meter.flush();
  }

  async restart(): Promise<void> {
    await this.flush();
    await this.world.store.compactionIdle();
    await this.world.metadata.shards.close();
    await this.open();
  }

  get metadata() {
    return this.world.metadata.shards;
  }

  tenancy() {
    const { metadata, clock } = this;
    const random = createSeededRandom(900 + this.#seed);
    const keyring = this.#keyring;
    const accounts = createAccounts({ metadata, keyring, random });
    return createTenancy({
      metadata,
      accounts,
      keyring,
      hasher,
      clock,
      random,
      log,
      resetRootMfa: async () => {},
      setPlanQuota: (accountId, quota) => setAccountQuota(metadata, { accountId, source: 'plan', quota }),
    }).tenancy;
  }

  /** What runs behind midnight, in processes that have nothing in memory. */
  async runWorkers(): Promise<void> {
    await this.flush();
    this.clock.advance(CLOSED_AFTER_MS);
    const { metadata, clock } = this;
    const shards = () => [0, 1, 2];
    await runUntilIdle(
      createPlanKeeper({
        ...{ metadata, clock, shards, timeJumps, log },
        setPlanQuota: (accountId, quota) => setAccountQuota(metadata, { accountId, source: 'plan', quota }),
      }),
    );
    await runUntilIdle(createUsageCloser({ metadata, shards, clock, telemetry, metering: DEFAULT_METERING }));
    await runUntilIdle(createMonthWorker({ metadata, clock, shards, timeJumps, log }));
  }
}

/** Before the shard has evaluated what is sent, or behind it: only the first time. */
function lossy(metadata: MetadataPort, isLost: () => boolean): Pick<MetadataPort, 'execute'> {
  return {
    async execute(envelope, name, command) {
      if (envelope.isRetry) return metadata.execute(envelope, name, command);
      if (isLost()) return { kind: 'unknown' };
      const reply = await metadata.execute(envelope, name, command);
      return isLost() ? { kind: 'unknown' } : reply;
    },
  };
}

async function makeCustomers(store: Store): Promise<Customer[]> {
  const tenancy = store.tenancy();
  const email = 'p@example.com';
  const { id } = await tenancy.createPartner(OPERATOR, { level: 'control', name: 'Control', email });
  const lives: Life[] = ['paid', 'tried', 'suspended', 'deleted'];
  const made: Customer[] = [];
  for (const [at, life] of lives.entries()) {
    const isTrial = life === 'tried';
    const view = await tenancy.createCustomer(OPERATOR, {
      controlAccountId: id,
      name: `${life} one`,
      email: `${life}@example.com`,
      password: 'Secret-1',
      isTrial,
      trialDays: TRIAL_DAYS,
    });
    const shard = at % 3;
    const name = `of-${life}` as BucketName;
    const bucketId = `b0000000000001${at}${shard}` as BucketId;
    const command = { bucketId, name, owner: view.accountId };
    const created = await store.world.metadata.execute('create-bucket', command, shard);
    if (created.kind !== 'created') throw new Error(created.kind);
    const { cfgVersion } = created.bucket;
    made.push({
      ...{ life, view },
      owner: view.accountId,
      bucket: { homeShard: shard, believed: { bucketId, name, cfgVersion } },
      ledger: new QuarterLedger(view.accountId),
      history: [{ state: isTrial ? 'trial' : 'paid', fromMs: store.clock.wallMs() }],
    });
    if (isTrial)
      made.at(-1)?.history.push({ state: 'paid', fromMs: store.clock.wallMs() + TRIAL_DAYS * DAY_MS });
  }
  return made;
}

/** What operators and partners do on that day. */
async function turnOf(store: Store, { life, view, history, ledger }: Customer, day: number) {
  const tenancy = store.tenancy();
  const change = async (active: boolean) => {
    await tenancy.changeCustomer(OPERATOR, view.id, { active });
    history.push({ state: active ? 'paid' : 'suspended', fromMs: store.clock.wallMs() });
  };
  if (life === 'suspended' && day === SUSPENDED_DAY) await change(false);
  if (life === 'suspended' && day === RESTORED_DAY) await change(true);
  if (life === 'deleted' && day === DELETED_DAY) {
    expect(ledger.keys()).toEqual([]);
    await tenancy.deleteCustomer(OPERATOR, view.id);
    history.push({ state: 'deleted', fromMs: store.clock.wallMs() });
  }
}

const isActive = ({ life }: Customer, day: number) =>
  !(life === 'suspended' && day >= SUSPENDED_DAY && day < RESTORED_DAY) &&
  !(life === 'deleted' && day >= DELETED_DAY);

const seeds = casesOf({ short: [1], longOnly: [2, 3, 4, 5, 6, 7, 8] });

test.each(seeds)(
  'seed %i: a quarter in a store is metered to the byte and charged to the cent',
  async (seed) => {
    const random = createSeededRandom(seed);
    const choose = (bound: number) => Buffer.from(random.bytes(4)).readUInt32LE() % bound;
    const store = new Store();
    await store.open();
    store.clock.advance(BEHIND_MIDNIGHT_MS);
    const customers = await makeCustomers(store);
    const minimum = { minimumTB: '0.0000003', minimumStorage: '5990000' };
    const prices = { deletedStorage: '4990000', ...minimum, ...TRAFFIC_PRICES };
    const book = createInvoiceBook(store.metadata);
    const list = { from: '2026-04-01', currency: 'USD', prices: { ...prices, activeStorage: '5990000' } };
    await book.setPriceList(list);
    await book.setPriceList({ ...list, from: '2026-05-12', prices: { ...prices, activeStorage: '6990000' } });

    for (let day = FIRST_DAY; day <= LAST_DAY; day++) {
      if (day !== DOWN_DAY) {
        await store.runWorkers();
        store.clock.advance(DAY_MS / 2);
        for (const customer of customers) {
          if (customer.life === 'deleted' && day === DELETED_DAY)
            for (const key of customer.ledger.keys()) await actsOf(store, customer, day).remove(key);
          await turnOf(store, customer, day);
          if (isActive(customer, day)) await liveADay(store, customer, { day, age: day - FIRST_DAY, choose });
          // What is not sent now is sent behind midnight, before the day may be closed. Who ends sends all.
          if (choose(3) === 0 || day === DOWN_DAY - 1) await store.flush();
        }
        store.clock.advance(DAY_MS / 2 - CLOSED_AFTER_MS);
      } else store.clock.advance(DAY_MS);
      if ((day - FIRST_DAY) % RESTART_EVERY_DAYS === 0 || day === DOWN_DAY) await store.restart();
    }
    await store.runWorkers();

    const usages = createUsages(store.metadata, store.clock);
    const seen = { orphanedBytes: 0, deletedBytes: 0, downloadBytes: 0, listCalls: 0 };
    expect(await usages.lastClosedDay()).toBe(LAST_DAY);
    for (const { ledger, view } of customers) {
      const range = { fromDay: FIRST_DAY, toDay: LAST_DAY };
      const days = new Map(
        (await usages.byAccount([view.accountId], range)).map((usage) => [usage.day, usage]),
      );
      for (let day = FIRST_DAY; day <= LAST_DAY; day++) {
        const usage = days.get(day);
        for (const field of Object.keys(seen) as (keyof typeof seen)[]) seen[field] += usage?.[field] ?? 0;
        expect(usage, `seed ${seed}: ${view.name} on day ${day - FIRST_DAY}`).toMatchObject(ledger.day(day));
      }
    }
    expect(
      Math.min(...Object.values(seen)),
      'what is charged without an object, and traffic',
    ).toBeGreaterThan(0);
    const { items } = await createInvoiceBook(store.metadata).list({}, { page: 1, size: 100 });
    const closed = new Map(items.map((item) => [`${item.month} ${item.customer.id}`, item]));
    const priceLists = await createInvoiceBook(store.metadata).priceLists();
    for (const month of MONTHS)
      for (const { ledger, history, view } of customers) {
        const { fromDay, toDay } = daysOf(month);
        const days = Array.from({ length: toDay - fromDay + 1 }, (_, at) => ledger.day(fromDay + at));
        const owed = independentTotal({ month, history, days, priceLists });
        expect(owed, 'an amount that has cents').toBeGreaterThan(100n);
        const invoice = closed.get(`${month} ${view.id}`);
        expect(invoice?.total.replace('.', ''), `seed ${seed}: ${month} of ${view.name}`).toBe(String(owed));
      }
    const before = finishAtOnce(invoicesCsv(items));
    await store.restart();
    await store.runWorkers();
    const again = await createInvoiceBook(store.metadata).list({}, { page: 1, size: 100 });
    expect(finishAtOnce(invoicesCsv(again.items))).toEqual(before);
  },
  300_000,
);
