// A month of a sub-account whose shards have three voters each: every few days the primary is killed while it works on what is
// metered, sent by a gateway, or closed, and another one takes over. What is metered of each day equals the ledger to the byte and
// the call, and the invoice to the cent, before the month is closed and behind it. Reproduced by its seed.
import { expect, test } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { createBilledCustomers } from '../../src/accounts/billed-customers.ts';
import { createTenancy } from '../../src/accounts/create-tenancy.ts';
import { createInvoices } from '../../src/accounts/invoices.ts';
import { createTenancyDirectory } from '../../src/accounts/tenancy-directory.ts';
import { OPERATOR } from '../../src/accounts/tenancy-rules.ts';
import { TenancyTree } from '../../src/accounts/tenancy-tree.ts';
import { createUsages } from '../../src/accounts/usages.ts';
import { CHUNK_COLUMNS } from '../../src/chunks/disk/keyspace.ts';
import { createTrafficMeter } from '../../src/gateway/metering/traffic-meter.ts';
import { SHARD_COLUMNS } from '../../src/metadata/engine/shards.ts';
import { setAccountQuota } from '../../src/metadata/quotas/operate-quotas.ts';
import { metadataMachine } from '../../src/metadata/state-machine.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from '../../src/metadata/usage/close-usage-worker.ts';
import { createKeyring } from '../../src/platform/memory/memory-keyring.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import { DEFAULT_METERING } from '../../src/types/metered.ts';
import { daysOf } from '../../src/types/months.ts';
import type { BucketId, BucketName } from '../../src/types/names.ts';
import { requireDone } from '../../src/types/require-done.ts';
import { DAY_MS } from '../../src/types/usage.ts';
import { independentTotal } from '../support/billing/independent-invoice.ts';
import { QuarterLedger } from '../support/billing/quarter-ledger.ts';
import { type LivingAccount, liveADay } from '../support/billing/quarter-life.ts';
import { type RoutedCluster, routeInto } from '../support/metadata/routed-cluster.ts';
import { openShardCluster, type ShardCluster } from '../support/metadata/shard-cluster.ts';
import { openObjectWorld } from '../support/objects/object-world.ts';
import { casesOf } from '../support/run/long-form.ts';
import { createSeededRandom } from '../support/run/simulated.ts';

const MONTH = '2026-01';
const { fromDay: FIRST_DAY, toDay: LAST_DAY } = daysOf(MONTH);
const SHARDS = [0, 1];
/** Of a bucket, which is not in the system shard. */
const SHARD = 1;
/** Days begin there: a gateway has still to send some of the day before. */
const BEHIND_MIDNIGHT_MS = 60_000;
const PRICES = {
  ...{
    activeStorage: '5990000',
    deletedStorage: '4990000',
    minimumTB: '0.0000003',
    minimumStorage: '5990000',
  },
  ...{ apiCalls: '21.75', ingress: '54321.12345678', egress: '98765.4321' },
};
/** What befalls primaries, in turn. */
const STRUCK = ['commit-version', 'add-traffic', 'delete-versions', 'close-usage', 'append-version'];
/** Of the loop: a command is not done after so many, and done after more. */
const TURNS_FEW = 3;
const TURNS_MAX = 40;
/** Shards tell the time as their clocks do, once they have heard one another. */
const CLOCKS_APART_MS = 60_000;
const log = { info() {}, warn() {} };
const telemetry = { gauge() {}, count: () => expect.unreachable('requests are lost') };
const hasher = { hash: async () => 'hash', verify: async () => true };

/** Nothing happens for so long; then the shards have primaries again, which know the time. */
async function pass(cluster: ShardCluster, metadata: RoutedCluster, ms: number): Promise<void> {
  cluster.skip(ms);
  for (const shard of SHARDS)
    await expect
      .poll(
        async () => {
          await cluster.run(1000);
          const reply = await metadata.query({ shard }, 'get-usage-closed', {});
          return reply.kind === 'done' ? cluster.wallMs() - reply.timeMs : Number.POSITIVE_INFINITY;
        },
        { timeout: 60_000, interval: 0 },
      )
      .toBeLessThan(CLOCKS_APART_MS);
}

/** What runs behind midnight, in a process that has nothing in memory: with its rests, until the day before is closed. */
async function closeDays(cluster: ShardCluster, metadata: RoutedCluster, throughDay: number): Promise<void> {
  const { clock } = cluster;
  const deps = { metadata, clock, metering: DEFAULT_METERING, telemetry, shards: () => SHARDS };
  const closer = createUsageCloser(deps);
  const usages = createUsages(metadata, clock);
  while (((await usages.lastClosedDay()) ?? 0) < throughDay) {
    const outcome = await closer.work(new AbortController().signal);
    expect(outcome.failures ?? []).toEqual([]);
    if (outcome.state === 'idle') await cluster.run(outcome.idleMs);
  }
}

async function openStore(cluster: ShardCluster, metadata: RoutedCluster, seed: number) {
  const { clock } = cluster;
  const keyring = createKeyring();
  const kvs = { kv: createMemoryKv(SHARD_COLUMNS), chunkKv: createMemoryKv(CHUNK_COLUMNS) };
  const world = await openObjectWorld({
    stores: { ...kvs, clock, keyring },
    seed,
    intercept: () => metadata,
  });
  const random = createSeededRandom(seed + 900);
  const accounts = createAccounts({ metadata, keyring, random });
  const { tenancy } = createTenancy({
    ...{ metadata, accounts, keyring, hasher, clock, random, log, resetRootMfa: async () => {} },
    setPlanQuota: (accountId, quota) => setAccountQuota(metadata, { accountId, source: 'plan', quota }),
  });
  const meter = createTrafficMeter({ metadata, clock, random, log, telemetry, flushEveryMs: 60_000 });
  const customers = createBilledCustomers(new TenancyTree(metadata, createTenancyDirectory(metadata)));
  const usages = createUsages(metadata, clock);
  return { world, tenancy, meter, usages, invoices: createInvoices({ metadata, usages, customers, clock }) };
}

const seeds = casesOf({ short: [1], longOnly: [2, 3, 4, 5, 6] });

test.each(seeds)(
  'seed %i: what is metered and charged over takeovers is what the ledger has',
  async (seed) => {
    const random = createSeededRandom(seed);
    const choose = (bound: number) => Buffer.from(random.bytes(4)).readUInt32LE() % bound;
    const cluster = await openShardCluster({
      nodeCount: 3,
      shardCount: SHARDS.length,
      machine: metadataMachine,
    });
    for (const index of cluster.nodes.keys()) await cluster.start(index);
    const metadata = await routeInto(cluster, { shardCount: SHARDS.length, seed });
    const { clock } = cluster;
    await pass(cluster, metadata, BEHIND_MIDNIGHT_MS);
    const store = await openStore(cluster, metadata, seed);
    const { tenancy, meter, usages, invoices } = store;

    const partner = { level: 'control' as const, name: 'Control', email: 'p@example.com' };
    const { id } = await tenancy.createPartner(OPERATOR, partner);
    const { accountId: owner, createdAtMs } = await tenancy.createCustomer(OPERATOR, {
      ...{
        controlAccountId: id,
        name: 'Customer',
        email: 'c@example.com',
        password: 'Secret-1',
        isTrial: false,
      },
    });
    const bucketId = `b00000000000010${SHARD}` as BucketId;
    const name = 'bucket' as BucketName;
    const command = { bucketId, name, owner };
    const created = requireDone(await metadata.execute({ shard: SHARD }, 'create-bucket', command));
    if (created.kind !== 'created') throw new Error(created.kind);
    const { cfgVersion } = created.bucket;
    const account: LivingAccount = {
      owner,
      bucket: { homeShard: SHARD, believed: { bucketId, name, cfgVersion } },
      ledger: new QuarterLedger(owner),
    };
    await invoices.setPriceList({ from: '2026-01-01', currency: 'USD', prices: PRICES });

    for (let day = FIRST_DAY; day <= LAST_DAY; day++) {
      await meter.flush();
      await pass(cluster, metadata, CLOSED_AFTER_MS);
      await closeDays(cluster, metadata, day - 1);
      await pass(cluster, metadata, DAY_MS / 2);
      metadata.strike(STRUCK[day % STRUCK.length] ?? '', choose(choose(2) === 0 ? TURNS_FEW : TURNS_MAX));
      await liveADay(store, account, { day, age: day - FIRST_DAY, choose });
      if (choose(2) === 0) await meter.flush();
      await pass(cluster, metadata, (day + 1) * DAY_MS + BEHIND_MIDNIGHT_MS - clock.wallMs());
    }
    await meter.flush();
    await pass(cluster, metadata, CLOSED_AFTER_MS);
    await closeDays(cluster, metadata, LAST_DAY);
    expect(metadata.strikes.count, 'primaries were killed').toBeGreaterThan(5);
    expect(metadata.strikes.doneCount, 'and had done what was sent again').toBeGreaterThan(1);
    expect(metadata.strikes.doneCount, 'or not').toBeLessThan(metadata.strikes.count);

    const range = { fromDay: FIRST_DAY, toDay: LAST_DAY };
    const days = (await usages.byAccount([owner], range)).map((usage) => ({ seed, ...usage }));
    const { ledger } = account;
    const known = Array.from({ length: LAST_DAY - FIRST_DAY + 1 }, (_, at) => ledger.day(FIRST_DAY + at));
    expect(days).toEqual(known.map((usage) => ({ seed, ...usage })));

    const priceLists = await invoices.priceLists();
    const history = [{ state: 'paid' as const, fromMs: createdAtMs }];
    const owed = independentTotal({ month: MONTH, history, days: known, priceLists });
    expect(owed, 'an amount that has cents').toBeGreaterThan(100n);
    const totalOf = async (items: Promise<{ items: { total: string }[] }>) =>
      (await items).items.map(({ total }) => total.replace('.', ''));
    const page = { page: 1, size: 10 };
    expect(await totalOf(invoices.preview(MONTH, {}, page)), `seed ${seed}`).toEqual([String(owed)]);
    metadata.strike('close-invoices', choose(TURNS_MAX));
    expect(await invoices.closeNext()).toBe(MONTH);
    expect(await totalOf(invoices.list({}, page)), `seed ${seed}`).toEqual([String(owed)]);
  },
  300_000,
);
