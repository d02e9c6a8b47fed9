// A quarter, and two months before it, of sub-accounts in a real store: uploads, overwrites, early deletes, compositions and their
// ends, copies, appends, renames, a trial that ends, a suspension, a deletion, a price that changes within a month, a day on which
// nothing runs, restarts. What the store has metered of each day equals the ledger to the byte, and each invoice to the cent.
import { expect, test } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { createMonthWorker } from '../../src/accounts/close-months.ts';
import { createTenancy } from '../../src/accounts/create-tenancy.ts';
import { createInvoiceBook } from '../../src/accounts/invoice-book.ts';
import { createPlanKeeper } from '../../src/accounts/plans.ts';
import type { CustomerView } from '../../src/accounts/tenancy.ts';
import { OPERATOR } from '../../src/accounts/tenancy-rules.ts';
import { createUsages } from '../../src/accounts/usages.ts';
import type { StateSince } from '../../src/billing/compute-invoice.ts';
import { invoicesCsv } from '../../src/billing/invoice-csv.ts';
import { CHUNK_COLUMNS } from '../../src/chunks/disk/keyspace.ts';
import { SHARD_COLUMNS } from '../../src/metadata/engine/shards.ts';
import { leaseQuotas } from '../../src/metadata/quotas/lease-quotas.ts';
import { setAccountQuota } from '../../src/metadata/quotas/operate-quotas.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from '../../src/metadata/usage/close-usage-worker.ts';
import type { BucketTarget } from '../../src/objects/object-store.ts';
import { createKeyring } from '../../src/platform/memory/memory-keyring.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import { DEFAULT_METERING } from '../../src/types/metered.ts';
import { dayOf, daysOf } from '../../src/types/months.ts';
import type { AccountId, BucketId, BucketName, ObjectKey } from '../../src/types/names.ts';
import { DAY_MS } from '../../src/types/usage.ts';
import { independentTotal } from '../support/billing/independent-invoice.ts';
import { QuarterLedger } from '../support/billing/quarter-ledger.ts';
import { runUntilIdle } from '../support/metadata/run-worker.ts';
import { type ObjectWorld, openObjectWorld, sourceOf } from '../support/objects/object-world.ts';
import { casesOf } from '../support/run/long-form.ts';
import { createManualClock, createSeededRandom } from '../support/run/simulated.ts';

const FIRST_DAY = dayOf(Date.UTC(2026, 1, 1));
const LAST_DAY = dayOf(Date.UTC(2026, 5, 30));
const APRIL_1 = dayOf(Date.UTC(2026, 3, 1));
const MONTHS = ['2026-04', '2026-05', '2026-06'];
/** Nothing runs on this day, which is the last of a month. */
const DOWN_DAY = dayOf(Date.UTC(2026, 4, 31));
const TRIAL_DAYS = 70;
const SUSPENDED_DAY = APRIL_1 + 40;
const RESTORED_DAY = APRIL_1 + 50;
const DELETED_DAY = APRIL_1 + 45;
const RESTART_EVERY_DAYS = 17;
/** Since the first day. */
const LONG_LIVED_ON = [2, 5, 8, 11, 16];
const KEPT_DAYS = 105;
const log = { info() {}, warn() {} };
const telemetry = { gauge() {} };
const timeJumps = { mayRemoveByAge: () => true };
const hasher = { hash: async () => 'hash', verify: async () => true };

type Life = 'paid' | 'tried' | 'suspended' | 'deleted';

interface Customer {
  life: Life;
  view: CustomerView;
  bucket: BucketTarget;
  ledger: QuarterLedger;
  history: StateSince[];
}

/** The store, which may be opened anew over what it has stored. */
class Store {
  readonly clock = createManualClock(FIRST_DAY * DAY_MS);
  readonly #kvs = { kv: createMemoryKv(SHARD_COLUMNS), chunkKv: createMemoryKv(CHUNK_COLUMNS) };
  readonly #keyring = createKeyring();
  #seed = 0;
  world!: ObjectWorld;

  async open(): Promise<void> {
    this.#seed++;
    const { clock } = this;
    this.world = await openObjectWorld({
      stores: { ...this.#kvs, clock, keyring: this.#keyring },
      seed: this.#seed,
      intercept: (shards) => leaseQuotas(shards, { clock, log, telemetry: { count() {} } }),
    });
  }

  async restart(): Promise<void> {
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
      bucket: { homeShard: shard, believed: { bucketId, name, cfgVersion } },
      ledger: new QuarterLedger(view.accountId),
      history: [{ state: isTrial ? 'trial' : 'paid', fromMs: store.clock.wallMs() }],
    });
    if (isTrial)
      made.at(-1)?.history.push({ state: 'paid', fromMs: store.clock.wallMs() + TRIAL_DAYS * DAY_MS });
  }
  return made;
}

/** One act of a client in the store and in the ledger. */
function actsOf(store: Store, { view, bucket, ledger }: Customer, day: number) {
  const { world } = store;
  const { calls } = world;
  const owner: AccountId = view.accountId;
  const signal = new AbortController().signal;
  const of = (key: string) => ({ calls, bucket, owner, key: key as ObjectKey, signal });
  const from = async (key: string) => ({
    bucket,
    key: key as ObjectKey,
    found: await world.find(key, { bucket }),
  });
  const { bucketId } = bucket.believed;
  const has = (key: string) => ledger.originalCount(key) > 0;
  return {
    async put(key: string, sizeBytes: number) {
      await world.put(key, Buffer.alloc(sizeBytes, 'x'), { bucket, owner });
      ledger.put(key, day, sizeBytes);
    },
    async append(key: string, sizeBytes: number) {
      if (!has(key)) return;
      await world.store.appendObject({ ...of(key), body: sourceOf(Buffer.alloc(sizeBytes, 'y')) });
      ledger.append(key, day, sizeBytes);
    },
    async copy(source: string, key: string) {
      if (!has(source) || source === key) return;
      await world.store.copyObject({ ...of(key), source: await from(source) });
      ledger.copy(source, key, day);
    },
    async compose(sources: readonly string[], key: string) {
      const count = sources.reduce((sum, source) => sum + ledger.originalCount(source), 0);
      if (!sources.every(has) || sources.includes(key) || count > 32) return;
      await world.store.composeObject({ ...of(key), components: await Promise.all(sources.map(from)) });
      ledger.compose(sources, key, day);
    },
    async rename(source: string, key: string) {
      if (!has(source) || source === key) return;
      const move = { from: source as ObjectKey, to: key as ObjectKey };
      const moved = await world.metadata.execute(
        'move-key',
        { bucketId, move, overwrites: true },
        bucket.homeShard,
      );
      expect(moved.kind).toBe('moved-key');
      ledger.rename(source, key, day);
    },
    async remove(key: string) {
      const items = [{ key: key as ObjectKey }];
      await world.metadata.execute('delete-versions', { bucketId, owner, items }, bucket.homeShard);
      ledger.remove(key, day);
    },
  };
}

async function liveADay(store: Store, customer: Customer, day: number, choose: (bound: number) => number) {
  const acts = actsOf(store, customer, day);
  const key = () => `k${choose(10)}`;
  // What outlives its components by more than their minimum duration, then goes, or stays.
  const age = day - FIRST_DAY;
  if (LONG_LIVED_ON.includes(age)) {
    await acts.put('base', 9000 + age);
    if (age % 2 === 0) await acts.append('base', 10 + age);
    await acts.compose(['base', key()], `kept ${age}`);
    await acts.compose(['base'], `kept alone ${age}`);
    await acts.copy(`kept alone ${age}`, `copy ${age}`);
    if (age % 2 === 1) await acts.append(`copy ${age}`, 100);
    await acts.remove('base');
  }
  if (LONG_LIVED_ON.includes(age - KEPT_DAYS)) {
    await acts.remove(`kept ${age - KEPT_DAYS}`);
    await acts.remove(`kept alone ${age - KEPT_DAYS}`);
    if (age % 3 === 0) await acts.remove(`copy ${age - KEPT_DAYS}`);
  }
  for (let step = choose(5); step > 0; step--) {
    // From nothing, over what is charged with the smallest size, to chunks.
    const sizeBytes = choose(3) === 0 ? choose(5000) : choose(100_000);
    const ways = [
      () => acts.put(key(), sizeBytes),
      () => acts.put(key(), sizeBytes),
      () => acts.append(key(), 1 + sizeBytes),
      () => acts.copy(key(), key()),
      () => acts.compose([key(), key()], key()),
      () => acts.rename(key(), key()),
      () => acts.remove(key()),
    ];
    await ways[choose(ways.length)]?.();
  }
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
    store.clock.advance(2 * CLOSED_AFTER_MS);
    const customers = await makeCustomers(store);
    const prices = { deletedStorage: '4990000', minimumTB: '0.0000003', minimumStorage: '5990000' };
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
          if (isActive(customer, day)) await liveADay(store, customer, day, choose);
        }
        store.clock.advance(DAY_MS / 2);
      } else store.clock.advance(DAY_MS);
      if ((day - FIRST_DAY) % RESTART_EVERY_DAYS === 0 || day === DOWN_DAY) await store.restart();
    }
    await store.runWorkers();

    const usages = createUsages(store.metadata);
    const seen = { orphanedBytes: 0, deletedBytes: 0 };
    expect(await usages.lastClosedDay()).toBe(LAST_DAY);
    for (const { ledger, view } of customers) {
      const range = { fromDay: FIRST_DAY, toDay: LAST_DAY };
      const days = new Map(
        (await usages.byAccount([view.accountId], range)).map((usage) => [usage.day, usage]),
      );
      for (let day = FIRST_DAY; day <= LAST_DAY; day++) {
        seen.orphanedBytes += days.get(day)?.orphanedBytes ?? 0;
        seen.deletedBytes += days.get(day)?.deletedBytes ?? 0;
        const { putCalls: _, deleteCalls: __, uploadBytes: ___, ...stored } = ledger.day(day);
        expect(days.get(day), `seed ${seed}: ${view.name} on day ${day - FIRST_DAY}`).toMatchObject(stored);
      }
    }
    expect(Math.min(...Object.values(seen)), 'what is charged without an object').toBeGreaterThan(0);
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
    const before = invoicesCsv(items);
    await store.restart();
    await store.runWorkers();
    const again = await createInvoiceBook(store.metadata).list({}, { page: 1, size: 100 });
    expect(invoicesCsv(again.items)).toBe(before);
  },
  300_000,
);
