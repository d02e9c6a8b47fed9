import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import { type Accounts, createAccounts } from './accounts.ts';
import { createTenancy, type TenancyParts } from './create-tenancy.ts';
import type { ApiCaller, CustomerChanges, NewCustomer } from './tenancy.ts';
import { OPERATOR } from './tenancy-rules.ts';

const DAY_MS = 86_400_000;

let world: MetadataShards;
let accounts: Accounts;
let parts: TenancyParts;
/** Of a control account. */
let partner: ApiCaller;
beforeEach(async () => {
  world = await openMetadata();
  const { shards: metadata, clock } = world;
  const deps = { metadata, keyring: createKeyring(), random: createSeededRandom(7), clock };
  accounts = createAccounts(deps);
  const hasher = { hash: async () => 'h', verify: async () => true };
  const nothing = async () => undefined;
  parts = createTenancy({
    ...deps,
    log: { warn() {} },
    accounts,
    hasher,
    resetRootMfa: nothing,
    setPlanQuota: nothing,
  });
  const control = { level: 'control' as const, name: 'Control', email: 'p@example.com' };
  const { id } = await parts.tenancy.createPartner(OPERATOR, control);
  partner = {
    kind: 'partner-user',
    level: 'control',
    partnerId: id,
    role: 'Admin',
    isPlus: true,
    keyId: 'k',
  };
});

function create(input: Partial<NewCustomer> = {}) {
  const given = { name: 'Bakery', email: 'bakery@example.com', password: 'Secret-1' };
  return parts.tenancy.createCustomer(partner, { ...given, ...input });
}

const change = (id: number, changes: CustomerChanges, caller = partner) =>
  parts.tenancy.changeCustomer(caller, id, changes);

const refused = (field: string) => ({ code: 'ValidationError', fields: { [field]: expect.any(String) } });

describe('a trial', () => {
  test('that is over, or was left, does not come back, and its end stays where it was', async () => {
    const { id, trial } = await create();
    await change(id, { active: false });
    world.clock.advance(60 * DAY_MS);
    for (const caller of [partner, OPERATOR]) {
      await expect(change(id, { trialDays: 90 }, caller)).rejects.toMatchObject(refused('trialDays'));
      await expect(change(id, { trialQuotaTB: 2 }, caller)).rejects.toMatchObject(refused('trialQuotaTB'));
    }
    // As a client sends it that sends back what it has read.
    expect(await change(id, { active: true, trialQuotaTB: 1, trialDays: 30 })).toMatchObject({
      state: 'paid',
      trial,
    });
    const other = await create({ name: 'other', email: 'other@example.com' });
    await change(other.id, { trialToPaid: true });
    await expect(change(other.id, { trialDays: 60 })).rejects.toMatchObject(refused('trialDays'));
  });

  test('has up to 90 days and 5 TB below the operator, and no days that have passed', async () => {
    await expect(create({ trialDays: 91 })).rejects.toMatchObject(refused('trialDays'));
    await expect(create({ trialQuotaTB: 6 })).rejects.toMatchObject(refused('trialQuotaTB'));
    const { id, createdAtMs } = await create({ trialDays: 60, trialQuotaTB: 1024 });
    await expect(change(id, { trialDays: 91 })).rejects.toMatchObject(refused('trialDays'));
    const endsAtMs = createdAtMs + 365 * DAY_MS;
    const trial = { quotaTB: 40, endsAtMs };
    expect(await change(id, { trialDays: 365, trialQuotaTB: 40 }, OPERATOR)).toMatchObject({ trial });
    // What the operator has given stays when the partner changes something else.
    expect(await change(id, { trialQuotaTB: 40, ftpEnabled: true })).toMatchObject({ trial });
    world.clock.advance(40 * DAY_MS);
    await expect(change(id, { trialDays: 30 })).rejects.toMatchObject(refused('trialDays'));
    expect(await change(id, { trialDays: 90 })).toMatchObject({ state: 'trial' });
  });
});

test('new keys are the only ones, whatever who has the old ones makes meanwhile', async () => {
  const { id, accountId, accessKey: stolen } = await create();
  const { shards } = world;
  const { query } = shards;
  // Whoever has a key makes another one as soon as it is looked which there are.
  vi.spyOn(shards, 'query').mockImplementation(async (envelope, name, asked) => {
    const reply = await query.call(shards, envelope, name, asked);
    if (name === 'list-access-keys') await accounts.addKey(accountId, {}).catch(() => undefined);
    return reply;
  });
  const reset = await change(id, { resetKeys: true });
  vi.restoreAllMocks();
  const { accessKeys } = await accounts.find(accountId);
  expect(accessKeys).toEqual([reset.accessKey]);
  expect(accessKeys).not.toContain(stolen);
});

test('who restores a sub-account and gives it new keys lets nobody in by the old ones in between', async () => {
  const { id, accountId, accessKey: stolen } = await create();
  await change(id, { active: false });
  const { shards } = world;
  const { execute } = shards;
  const keysAtRestoring: string[] = [];
  vi.spyOn(shards, 'execute').mockImplementation(async (envelope, name, command) => {
    if (name === 'set-account') keysAtRestoring.push(...(await accounts.find(accountId)).accessKeys);
    return execute.call(shards, envelope, name, command);
  });
  const restored = await change(id, { active: true, resetKeys: true });
  vi.restoreAllMocks();
  expect(restored.state).toBe('trial');
  expect(keysAtRestoring).toEqual([restored.accessKey]);
  await change(id, { active: false }, OPERATOR);
  await expect(change(id, { active: true, resetKeys: true })).rejects.toMatchObject({ code: 'AccessDenied' });
  expect((await accounts.find(accountId)).accessKeys).toEqual([restored.accessKey]);
  expect(keysAtRestoring).not.toContain(stolen);
});

test('what an operator has suspended no partner restores or deletes; what a partner has, either does', async () => {
  const { id, accountId } = await create();
  const restore = (caller: ApiCaller) => change(id, { active: true, trialToPaid: true }, caller);
  const denied = { code: 'AccessDenied', message: expect.stringContaining('operator') };
  await change(id, { active: false });
  expect((await restore(partner)).state).toBe('paid');
  await change(id, { active: false }, OPERATOR);
  // Its own suspension does not make the operator's its own.
  await change(id, { active: false });
  await expect(restore(partner)).rejects.toMatchObject(denied);
  await expect(parts.tenancy.deleteCustomer(partner, id)).rejects.toMatchObject(denied);
  // Also where it is suspended behind the look of the partner's call.
  await restore(OPERATOR);
  const { remove } = accounts;
  vi.spyOn(accounts, 'remove').mockImplementationOnce(async (...asked) => {
    await change(id, { active: false }, OPERATOR);
    return remove(...asked);
  });
  await expect(parts.tenancy.deleteCustomer(partner, id)).rejects.toMatchObject(denied);
  expect((await change(id, { ftpEnabled: true })).state).toBe('suspended');
  expect((await restore(OPERATOR)).state).toBe('paid');
  // As `account set` does it, to the account itself.
  await accounts.change(accountId, { state: 'suspended' });
  await accounts.change(accountId, { bucketsMax: 5 });
  await expect(restore(partner)).rejects.toMatchObject(denied);
  await accounts.change(accountId, { state: 'paid' });
  await change(id, { active: false });
  expect((await restore(partner)).state).toBe('paid');
});

test('partners order few mails to one sub-account or address, and no call that is refused changes anything', async () => {
  const email = 'victim@example.com';
  const { id } = await create();
  const ask = (given: CustomerChanges = {}) => change(id, { email, sendPasswordReset: true, ...given });
  for (let times = 0; times < 5; times++) await ask();
  const tooMany = { code: 'SlowDown', status: 429 };
  await expect(ask({ name: 'Bakeries' })).rejects.toMatchObject(tooMany);
  expect((await parts.tenancy.getCustomer(partner, id)).name).toBe('Bakery');
  // Nor by way of another sub-account that has the address.
  await change(id, { email: 'own@example.com' });
  const other = { name: 'other', email, sendWelcomeEmail: true };
  await expect(create(other)).rejects.toMatchObject(tooMany);
  world.clock.advance(3_600_000);
  await create(other);
  expect(await parts.mails.list()).toHaveLength(6);
});

test('a control account learns by no filter which governance account it is below', async () => {
  const { tenancy } = parts;
  const governance = { level: 'governance' as const, name: 'Gov', email: 'g@example.com' };
  const { id: parentId } = await tenancy.createPartner(OPERATOR, governance);
  const below = { level: 'control' as const, parentId, name: 'Below', email: 'b@example.com' };
  const { id: partnerId } = await tenancy.createPartner(OPERATOR, below);
  partner = { ...partner, partnerId };
  await create();
  const page = { page: 1, size: 10 };
  for (const governanceAccountId of [parentId, partnerId, 999]) {
    expect((await tenancy.listCustomers(partner, { governanceAccountId }, page)).total).toBe(1);
    expect(await tenancy.visibleCustomers(partner, { governanceAccountId })).toHaveLength(1);
    expect((await tenancy.listPartners(partner, { governanceAccountId }, page)).total).toBe(1);
  }
  expect((await tenancy.listCustomers(partner, { controlAccountId: parentId }, page)).total).toBe(0);
});

test('who makes a sub-account gets its keys, whatever fails behind that', async () => {
  const { shards, clock } = world;
  let isAway = false;
  const requireThere = () => {
    if (isAway) throw new Error('the shard is away');
  };
  const metadata: typeof shards = {
    ...shards,
    async execute(target, name, command) {
      requireThere();
      const reply = await shards.execute(target, name, command);
      if (name === 'create-account') isAway = true;
      return reply;
    },
    async query(target, name, query) {
      requireThere();
      return shards.query(target, name, query);
    },
  };
  const warned: unknown[] = [];
  const { tenancy } = createTenancy({
    ...{ metadata, keyring: createKeyring(), random: createSeededRandom(8), clock },
    log: { warn: (_fields: object, event: string) => void warned.push(event) },
    accounts: createAccounts({ metadata, keyring: createKeyring(), random: createSeededRandom(9) }),
    hasher: { hash: async () => 'h', verify: async () => true },
    resetRootMfa: async () => undefined,
    setPlanQuota: async () => requireThere(),
  });
  const input = { name: 'Bakery', email: 'bakery@example.com', sendWelcomeEmail: true };
  const made = await tenancy.createCustomer(partner, input);
  const key = await world.query('get-access-key', { accessKey: made.accessKey ?? '' });
  expect(key).toMatchObject({ kind: 'found', account: { accountId: made.accountId } });
  expect(made).toMatchObject({ secretKey: expect.any(String), control: { id: partner.partnerId } });
  expect(warned).toEqual(['sub-account-not-settled', 'sub-account-not-settled']);
});

test('a sub-account whose creation was not answered is had by who asks for the same again, and by nobody else', async () => {
  const { shards, clock } = world;
  let isLost = true;
  const metadata: typeof shards = {
    ...shards,
    async execute(target, name, command) {
      const reply = await shards.execute(target, name, command);
      return name === 'create-account' && isLost ? { kind: 'unknown' } : reply;
    },
  };
  const deps = { metadata, keyring: createKeyring(), random: createSeededRandom(8), clock };
  const { tenancy } = createTenancy({
    ...{ ...deps, log: { warn() {} }, accounts: createAccounts(deps) },
    hasher: { hash: async () => 'h', verify: async () => true },
    resetRootMfa: async () => undefined,
    setPlanQuota: async () => undefined,
  });
  const input = { name: 'Bakery', email: 'bakery@example.com', password: 'Secret-1' };
  const ask = (changes: Partial<NewCustomer> = {}) =>
    tenancy.createCustomer(partner, { ...input, ...changes });
  await expect(ask()).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  isLost = false;
  const taken = { code: 'EntityAlreadyExists' };
  await expect(ask({ password: 'Secret-2' })).rejects.toMatchObject(taken);
  const made = await ask();
  const key = await world.query('get-access-key', { accessKey: made.accessKey ?? '' });
  expect(key).toMatchObject({ kind: 'found', account: { accountId: made.accountId, name: 'Bakery' } });
  expect((await tenancy.listCustomers(partner, {}, { page: 1, size: 10 })).total).toBe(1);
  // It is known now.
  await expect(ask()).rejects.toMatchObject(taken);
});
