import { beforeEach, expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { runUntilIdle } from '../../tests/support/metadata/run-worker.ts';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { readAccountQuota, setAccountQuota } from '../metadata/quotas/operate-quotas.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import type { AccountId } from '../types/names.ts';
import type { CustomerRecord, NewCustomerRecord } from '../types/records/tenancy-records.ts';
import { DAY_MS } from '../types/usage.ts';
import { type Accounts, createAccounts } from './accounts.ts';
import { createPlanKeeper } from './plans.ts';

const TB = 2 ** 40;

let world: MetadataShards;
let accounts: Accounts;
let isTrusted: boolean;
let isAway: boolean;
let ended: unknown[];
beforeEach(async () => {
  world = await openMetadata({ shardCount: 2 });
  accounts = createAccounts({
    metadata: world.shards,
    keyring: createKeyring(),
    random: createSeededRandom(7),
  });
  isTrusted = true;
  isAway = false;
  ended = [];
});

function keeper(metadata: MetadataPort = world.shards) {
  const { clock } = world;
  return createPlanKeeper({
    metadata,
    clock,
    shards: () => [0],
    timeJumps: { mayRemoveByAge: () => isTrusted },
    log: { info: (fields: object) => void ended.push(fields) },
    async setPlanQuota(accountId, quota) {
      if (isAway) throw new AppError('ServiceUnavailable');
      await setAccountQuota(metadata, { accountId, source: 'plan', quota });
    },
  });
}

async function createCustomer(plan: Partial<NewCustomerRecord> = {}, name = 'Bakery'): Promise<AccountId> {
  const customer: NewCustomerRecord = {
    kind: 'customer',
    controlId: 1,
    contact: {},
    quotaType: 'soft',
    ftpEnabled: false,
    sendPasswordReset: false,
    ssoEnabled: false,
    isUnpaid: false,
    ...plan,
  };
  const state = plan.trial === undefined ? 'paid' : 'trial';
  const { account } = await accounts.create({ name, email: `it@${name}.example`, state, customer });
  return account.accountId;
}

const stateOf = async (accountId: AccountId) => (await accounts.find(accountId)).account.state;
const quotasOf = async (accountId: AccountId) => (await readAccountQuota(world.shards, accountId)).quotas;
const trialOf = (days: number) => ({ trial: { quotaTB: 1, endsAtMs: world.clock.wallMs() + days * DAY_MS } });

test('a trial becomes a paid account at its end, with what was purchased', async () => {
  const accountId = await createCustomer({ ...trialOf(30), purchasedStorageTB: 5, quotaType: 'hard' });
  const worker = keeper();
  await runUntilIdle(worker);
  expect(await quotasOf(accountId)).toEqual({ plan: { hard: { bytes: TB } } });
  world.clock.advance(30 * DAY_MS - 1);
  await runUntilIdle(worker);
  expect([await stateOf(accountId), ended]).toEqual(['trial', []]);
  world.clock.advance(1);
  await runUntilIdle(worker);
  expect([await stateOf(accountId), ended]).toEqual(['paid', [{ account: accountId }]]);
  expect(await quotasOf(accountId)).toEqual({ plan: { hard: { bytes: 5 * TB } } });
});

test('a trial that ended while nothing ran is ended behind a restart; a clock that is not trusted ends none', async () => {
  const accountId = await createCustomer(trialOf(1));
  world.clock.advance(9 * DAY_MS);
  isTrusted = false;
  await runUntilIdle(keeper());
  expect(await stateOf(accountId)).toBe('trial');
  isTrusted = true;
  await runUntilIdle(keeper());
  expect(await stateOf(accountId)).toBe('paid');
  expect(await quotasOf(accountId)).toEqual({});
});

test('a suspended trial stays suspended over its end', async () => {
  const accountId = await createCustomer(trialOf(1));
  await accounts.change(accountId, { state: 'suspended' });
  world.clock.advance(2 * DAY_MS);
  await runUntilIdle(keeper());
  expect([await stateOf(accountId), ended]).toEqual(['suspended', []]);
});

test('a trial that is extended while it is being ended goes on to its new end', async () => {
  const accountId = await createCustomer(trialOf(1));
  const { shards, clock } = world;
  const trial = { quotaTB: 1, endsAtMs: clock.wallMs() + 3 * DAY_MS };
  const extend = async () => {
    const { records } = await world.query('tenancy-changes', { since: 0, limit: 10 });
    const record = { ...(records[0] as CustomerRecord), trial };
    const customer = { record, ifRevision: record.revision };
    await world.execute('set-account', { accountId, changes: {}, customer });
  };
  const worker = keeper({
    shardCount: 2,
    execute: shards.execute.bind(shards),
    async query(envelope, name, query) {
      // It has looked at what was changed, and comes to those whose end it knows.
      if (name === 'read-tenancy' && clock.wallMs() < trial.endsAtMs) await extend();
      return shards.query(envelope, name, query);
    },
  });
  await runUntilIdle(worker);
  clock.advance(DAY_MS);
  await runUntilIdle(worker);
  expect([await stateOf(accountId), ended]).toEqual(['trial', []]);
  clock.advance(2 * DAY_MS);
  await runUntilIdle(worker);
  expect(await stateOf(accountId)).toBe('paid');
});

test("the operator's own quota stays, and the narrower one holds", async () => {
  const accountId = await createCustomer(trialOf(1));
  const own = { hard: { bytes: 7 } };
  await setAccountQuota(world.shards, { accountId, source: 'operator', quota: own });
  const worker = keeper();
  await runUntilIdle(worker);
  expect(await quotasOf(accountId)).toEqual({ operator: own, plan: { hard: { bytes: TB } } });
  expect((await readAccountQuota(world.shards, accountId)).quota).toEqual(own);
  world.clock.advance(DAY_MS);
  await runUntilIdle(worker);
  expect(await quotasOf(accountId)).toEqual({ operator: own });
});

test('a quota that could not be set is set later', async () => {
  const accountId = await createCustomer({ purchasedStorageTB: 1 });
  isAway = true;
  const worker = keeper();
  await expect(runUntilIdle(worker)).rejects.toThrow();
  expect(await quotasOf(accountId)).toEqual({});
  isAway = false;
  await runUntilIdle(worker);
  expect(await quotasOf(accountId)).toEqual({ plan: { soft: { bytes: TB } } });
});

test('an account that does not pay says so, and its sub-account as well', async () => {
  const accountId = await createCustomer();
  await accounts.change(accountId, { isUnpaid: true });
  const { records } = await world.query('tenancy-changes', { since: 0, limit: 10 });
  expect(records).toMatchObject([{ accountId, isUnpaid: true }]);
  expect((await accounts.find(accountId)).account.isUnpaid).toBe(true);
});

test('who begins to lead looks at a hundred sub-accounts at a time, and rests behind each', async () => {
  for (let at = 0; at < 150; at++) await createCustomer({}, `bakery-${at}`);
  let nowMs = 0;
  const { shards } = world;
  const metadata: MetadataPort = {
    shardCount: 2,
    execute: shards.execute.bind(shards),
    query: (envelope, name, query) => {
      nowMs++;
      return shards.query(envelope, name, query);
    },
  };
  const worker = createPlanKeeper({
    metadata,
    clock: { wallMs: () => world.clock.wallMs(), monotonicMs: () => nowMs },
    shards: () => [0],
    timeJumps: { mayRemoveByAge: () => true },
    log: { info() {} },
    setPlanQuota: async () => {},
  });
  const { signal } = new AbortController();
  // One question for the page, and one for each of a hundred.
  expect(await worker.work(signal)).toEqual({ state: 'idle', idleMs: 3 * 101, failures: [] });
  expect(await worker.work(signal)).toEqual({ state: 'idle', idleMs: 5000, failures: [] });
  expect(nowMs).toBe(101 + 51);
});
