import { beforeEach, expect, test, vi } from 'vitest';
import { type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import type { AccountId } from '../types/names.ts';
import { identityKeys } from '../types/records/identity-records.ts';
import { type Accounts, createAccounts } from './accounts.ts';
import { createTenancy, type TenancyParts } from './create-tenancy.ts';
import { type IdentityStore, withIdentities } from './identity-store.ts';
import { memberPolicy } from './member-roles.ts';
import type { SecretHasher } from './partner-logins.ts';
import type { ApiCaller, CustomerView, PartnerView } from './tenancy.ts';
import { OPERATOR } from './tenancy-rules.ts';

const PAGE = { page: 1, size: 100 };
const PASSWORD = 'Secret-1';
const DAY_MS = 86_400_000;
/** Tenants whose turn it was, one for each hash. */
const hashed: string[] = [];
const hasher: SecretHasher = {
  hash: async (tenant, password) => {
    hashed.push(tenant);
    return `h:${password}`;
  },
  verify: async ({ accountId }, { password, stored }) => {
    hashed.push(accountId);
    return stored === `h:${password}`;
  },
};

let world: MetadataShards;
let accounts: Accounts;
let parts: TenancyParts;
/** Quotas of plans, as they were set. */
let plans: object[];
/** Runs once, before the next one is set. */
let beforePlan: (() => Promise<unknown>) | undefined;
/** Whose root has lost its MFA devices. */
let resetAccounts: AccountId[];
let governance: PartnerView;
let control: PartnerView;
let other: PartnerView;
beforeEach(async () => {
  world = await openMetadata();
  const { shards: metadata, clock } = world;
  const deps = { metadata, keyring: createKeyring(), random: createSeededRandom(7), clock };
  accounts = createAccounts(deps);
  resetAccounts = [];
  const resetRootMfa = async (accountId: AccountId) => void resetAccounts.push(accountId);
  plans = [];
  const setPlanQuota = async (accountId: AccountId, quota: object | null) => {
    const act = beforePlan;
    beforePlan = undefined;
    await act?.();
    plans.push({ accountId, quota });
  };
  parts = createTenancy({ ...deps, log: { warn() {} }, accounts, hasher, resetRootMfa, setPlanQuota });
  const { tenancy } = parts;
  const email = 'p@example.com';
  governance = await tenancy.createPartner(OPERATOR, { level: 'governance', name: 'Gov', email });
  const below = { level: 'control' as const, parentId: governance.id };
  control = await tenancy.createPartner(OPERATOR, { ...below, name: 'Control', email });
  other = await tenancy.createPartner(OPERATOR, { level: 'control', name: 'Other', email });
});

function callerOf({ id, level }: PartnerView, role: ApiCaller['role'] = 'Admin', isPlus = true): ApiCaller {
  const kind = 'partner-user';
  return { kind, level: level as 'control', partnerId: id, role, isPlus, keyId: 'k' };
}

function createCustomer(name: string, controlAccountId = control.id): Promise<CustomerView> {
  const email = `${name}@example.com`;
  return parts.tenancy.createCustomer(OPERATOR, { controlAccountId, name, email, password: PASSWORD });
}

test('an account that is named, and is not there or outside of the tree, is told with its field', async () => {
  const { tenancy } = parts;
  const { id: subAccountId } = await createCustomer('own');
  // Beyond what a row's key can hold.
  for (const id of [2 ** 48, Number.MAX_SAFE_INTEGER])
    for (const asked of [
      tenancy.getPartner(OPERATOR, id),
      tenancy.getCustomer(OPERATOR, id),
      tenancy.getMember(OPERATOR, id),
    ])
      await expect(asked).rejects.toMatchObject({ code: 'NoSuchEntity' });
  const login = { email: 'new@example.com', password: PASSWORD };
  const customer = { name: 'New', ...login };
  const member = { firstName: 'A', lastName: 'B', role: 'Root', ...login };
  const asks = [
    [
      tenancy.createCustomer(callerOf(control), { ...customer, controlAccountId: other.id }),
      'controlAccountId',
    ],
    [
      tenancy.createCustomer(callerOf(control), { ...customer, channelAccountId: other.id }),
      'channelAccountId',
    ],
    [tenancy.createMember(callerOf(other), { ...member, subAccountId }), 'subAccountId'],
  ] as const;
  for (const [asked, field] of asks)
    await expect(asked).rejects.toMatchObject({ code: 'NoSuchEntity', fields: { [field]: 'is not known' } });
});

test('a sub-account is a trial of 30 days with keys, and its partners are known', async () => {
  const made = await createCustomer('first');
  const trial = { quotaTB: 1, endsAtMs: world.clock.wallMs() + 30 * DAY_MS };
  expect(made).toMatchObject({ state: 'trial', trial, control: { name: 'Control' } });
  expect(made.governance).toEqual({ id: governance.id, name: 'Gov', email: 'p@example.com' });
  expect([made.accessKey?.length, made.secretKey?.length]).toEqual([20, 40]);
  const read = await parts.tenancy.getCustomer(OPERATOR, made.id, { includeKeys: true });
  expect(read.secretKey).toBe(made.secretKey);
  expect((await parts.tenancy.getCustomer(OPERATOR, made.id)).secretKey).toBeUndefined();
  await expect(createCustomer('first')).rejects.toMatchObject({ code: 'EntityAlreadyExists' });
});

test('callers see what is below them, and nothing else is there', async () => {
  const [own, foreign] = [await createCustomer('own'), await createCustomer('foreign', other.id)];
  const { tenancy } = parts;
  for (const caller of [callerOf(control), callerOf(governance)]) {
    const { items, total } = await tenancy.listCustomers(caller, {}, PAGE);
    expect([items.map(({ name }) => name), total]).toEqual([['own'], 1]);
    expect((await tenancy.getCustomer(caller, own.id)).name).toBe('own');
    for (const refused of [
      tenancy.getCustomer(caller, foreign.id),
      tenancy.changeCustomer(caller, foreign.id, { active: false }),
      tenancy.deleteCustomer(caller, foreign.id),
      tenancy.getPartner(caller, other.id),
    ])
      await expect(refused).rejects.toMatchObject({ code: 'NoSuchEntity' });
  }
  expect((await tenancy.listPartners(callerOf(control), {}, PAGE)).items.map(({ id }) => id)).toEqual([
    control.id,
  ]);
  expect((await tenancy.listCustomers(OPERATOR, {}, { page: 2, size: 1 })).items[0]?.name).toBe('foreign');
});

test('roles: Viewer reads, Staff Lite changes, Staff deletes; governance acts by Plus alone', async () => {
  const { tenancy } = parts;
  const { id } = await createCustomer('own');
  const may = async (caller: ApiCaller, work: () => Promise<unknown>) =>
    work().then(
      () => true,
      (error: { code: string }) => {
        expect([caller.role, error.code]).toEqual([caller.role, 'AccessDenied']);
        return false;
      },
    );
  const change = (caller: ApiCaller) =>
    may(caller, () => tenancy.changeCustomer(caller, id, { ftpEnabled: true }));
  expect(await change(callerOf(control, 'Viewer'))).toBe(false);
  expect(await change(callerOf(control, 'Staff Lite'))).toBe(true);
  expect(await change(callerOf(governance, 'Admin', false))).toBe(false);
  expect(await change(callerOf(governance, 'Staff'))).toBe(true);
  const remove = (caller: ApiCaller) => may(caller, () => tenancy.deleteCustomer(caller, id));
  expect(await remove(callerOf(control, 'Staff Lite'))).toBe(false);
  expect(await remove(callerOf(control, 'Staff'))).toBe(true);
  const viewer = callerOf(control, 'Viewer');
  const keys = () => tenancy.listCustomers(viewer, {}, PAGE, { includeKeys: true });
  expect(await may(viewer, keys)).toBe(false);
});

test('is suspended, restored and made paid; each change is in its history, and never is it a trial again', async () => {
  const { tenancy } = parts;
  const { id, accountId } = await createCustomer('own');
  const change = async (changes: object) => (await tenancy.changeCustomer(OPERATOR, id, changes)).state;
  expect(await change({ active: false })).toBe('suspended');
  expect((await accounts.find(accountId)).account.state).toBe('suspended');
  expect(await change({ active: true })).toBe('trial');
  expect(await change({ trialToPaid: true })).toBe('paid');
  expect(await change({ active: false })).toBe('suspended');
  // As an operator does it to the account itself.
  await accounts.change(accountId, { state: 'paid' });
  const { history } = await tenancy.getCustomer(OPERATOR, id);
  const states = ['trial', 'suspended', 'trial', 'paid', 'suspended', 'paid'];
  expect(history.map(({ state }) => state)).toEqual(states);
  for (let times = 0; times < 20; times++) {
    await change({ active: false });
    await change({ active: true });
  }
  expect((await tenancy.getCustomer(OPERATOR, id)).history.length).toBeLessThanOrEqual(20);
});

test('new keys take the place of the old ones; name and e-mail change with the account', async () => {
  const { tenancy } = parts;
  const made = await createCustomer('own');
  const changes = { resetKeys: true, name: 'new name', email: 'New@example.com' };
  const after = await tenancy.changeCustomer(OPERATOR, made.id, changes);
  expect(after).toMatchObject({ name: 'new name', email: 'new@example.com' });
  expect(after.accessKey).not.toBe(made.accessKey);
  const found = await accounts.find('new@example.com');
  expect(found).toMatchObject({ account: { name: 'new name' }, accessKeys: [after.accessKey] });
  await expect(accounts.find('own@example.com')).rejects.toMatchObject({ code: 'NoSuchEntity' });
  await createCustomer('own');
  const taken = tenancy.changeCustomer(OPERATOR, made.id, { email: 'own@example.com' });
  await expect(taken).rejects.toMatchObject({ code: 'EntityAlreadyExists', fields: { email: 'is taken' } });
});

test('the root’s MFA devices go where they are reset, and of no other account', async () => {
  const made = await createCustomer('own');
  await parts.tenancy.changeCustomer(OPERATOR, made.id, { resetMFA: false, name: 'new name' });
  expect(resetAccounts).toEqual([]);
  await parts.tenancy.changeCustomer(OPERATOR, made.id, { resetMFA: true });
  expect(resetAccounts).toEqual([made.accountId]);
});

test('a deleted one stays as deleted, and its keys are gone', async () => {
  const { tenancy } = parts;
  const made = await createCustomer('own');
  await tenancy.deleteCustomer(OPERATOR, made.id);
  await expect(tenancy.getCustomer(OPERATOR, made.id)).rejects.toMatchObject({ code: 'NoSuchEntity' });
  expect((await tenancy.listCustomers(OPERATOR, {}, PAGE)).total).toBe(0);
  const all = await tenancy.visibleCustomers(callerOf(control), {});
  expect(all).toMatchObject([{ state: 'deleted', deletedAtMs: world.clock.wallMs() }]);
  const key = await world.query('get-access-key', { accessKey: made.accessKey ?? '' });
  expect(key).toEqual({ kind: 'unknown' });
});

test('bad input is refused by the name of its field', async () => {
  const { tenancy } = parts;
  const good = { controlAccountId: control.id, name: 'own', email: 'own@example.com', password: PASSWORD };
  const bad: [string, object][] = [
    ['password', { password: 'short' }],
    ['password', { password: undefined }],
    ['controlAccountId', { controlAccountId: undefined }],
    ['trialDays', { trialDays: 0 }],
    ['trialQuotaTB', { trialQuotaTB: -1 }],
    ['purchasedStorageTB', { quotaType: 'hard' }],
    ['email', { email: 'nobody' }],
    ['name', { name: ' a' }],
    ['city', { contact: { city: 'x'.repeat(256) } }],
  ];
  for (const [field, input] of bad) {
    const refused = tenancy.createCustomer(OPERATOR, { ...good, ...input });
    await expect(refused).rejects.toMatchObject({
      code: 'ValidationError',
      fields: { [field]: expect.any(String) },
    });
  }
});

test('control characters, which take six bytes each in JSON, are refused in texts about people and places', async () => {
  const { tenancy, logins } = parts;
  const { id } = await createCustomer('own');
  const wrong = 'a\u0001';
  const names = { firstName: 'A', lastName: 'B', role: 'Root', email: 'm@example.com' };
  const member = { ...names, subAccountId: id, password: PASSWORD };
  const { id: memberId } = await tenancy.createMember(OPERATOR, member);
  const user = { ...names, role: 'Admin' as const, partnerId: control.id };
  const { id: userId } = await logins.createUser(user);
  const input = { controlAccountId: control.id, name: 'Cust', email: 'c@example.com', password: PASSWORD };
  const tried: [string, () => Promise<unknown>][] = [
    ['taxId', () => tenancy.createCustomer(OPERATOR, { ...input, contact: { taxId: wrong } })],
    ['address2', () => tenancy.changeCustomer(OPERATOR, id, { contact: { address2: wrong } })],
    ['phone', () => tenancy.createMember(OPERATOR, { ...member, phone: wrong, email: 'n@example.com' })],
    [
      'lastName',
      () => tenancy.createMember(OPERATOR, { ...member, lastName: wrong, email: 'n@example.com' }),
    ],
    ['firstName', () => tenancy.changeMember(OPERATOR, memberId, { firstName: wrong })],
    ['lastName', () => logins.createUser({ ...user, lastName: wrong, email: 'n@example.com' })],
    ['name', () => logins.createKey(userId, { name: wrong })],
  ];
  for (const [field, one] of tried)
    await expect(one()).rejects.toMatchObject({
      code: 'ValidationError',
      fields: { [field]: 'must have no control characters' },
    });
});

test('a user of a partner logs in by a key that is shown once, until it expires, is deleted or its user is', async () => {
  const { tenancy, logins } = parts;
  const person = { email: 'Ann@example.com', firstName: 'Ann', lastName: 'Lee', role: 'Staff' as const };
  const user = await logins.createUser({ partnerId: control.id, ...person });
  await expect(logins.createUser({ partnerId: other.id, ...person })).rejects.toMatchObject({
    code: 'EntityAlreadyExists',
  });
  const expiresAtMs = world.clock.wallMs() + DAY_MS;
  const [short, long] = [
    await logins.createKey(user.id, { name: 'short', expiresAtMs }),
    await logins.createKey(user.id, { name: 'long' }),
  ];
  const enter = (apiKey: string, login = 'ann@example.com') =>
    tenancy.authenticate({ login, apiKey, address: '192.0.2.1' });
  const caller = { level: 'control', partnerId: control.id, role: 'Staff', userId: user.id };
  for (const { apiKey } of [short, long, long]) expect(await enter(apiKey)).toMatchObject(caller);
  expect(await enter(`${long.apiKey.slice(0, 8)}wrong`)).toBeUndefined();
  expect(await enter(long.apiKey, 'bob@example.com')).toBeUndefined();
  world.clock.advance(DAY_MS);
  expect(await enter(short.apiKey)).toBeUndefined();
  expect(await enter(long.apiKey)).toMatchObject(caller);
  await tenancy.changePartner(OPERATOR, control.id, { status: 'deactivated' });
  expect(await enter(long.apiKey)).toBeUndefined();
  await tenancy.changePartner(OPERATOR, control.id, { status: 'active' });
  await logins.deleteKey(user.id, long.key.id);
  expect(await enter(long.apiKey)).toBeUndefined();
});

test('who names no key that is there waits behind all others who do not, and never before those who do', async () => {
  const { logins, tenancy } = parts;
  const person = { partnerId: control.id, email: 'U@example.com', firstName: 'U', lastName: 'V' };
  const { id } = await logins.createUser({ ...person, role: 'Admin' });
  const { apiKey } = await logins.createKey(id, { name: 'k' });
  hashed.length = 0;
  const tries = [
    ['u@example.com', apiKey, '192.0.2.1'],
    ['u@example.com', `${apiKey.slice(0, 8)}x`, '192.0.2.2'],
    ['u@example.com', 'wrong', '192.0.2.3'],
    ['nobody@example.com', apiKey, '192.0.2.4'],
    ['NOACCESSKEY', apiKey, '192.0.2.5'],
  ];
  for (const [login = '', given = '', address = ''] of tries)
    await tenancy.authenticate({ login, apiKey: given, address });
  const [known, stranger] = [`user/${id}`, 'strangers'];
  // The first of the strangers made what their keys are compared with.
  expect(hashed).toEqual([known, known, stranger, stranger, stranger, stranger]);
  hashed.length = 0;
  for (const name of ['first', 'second'])
    await tenancy.createCustomer(callerOf(control), {
      name,
      email: `${name}@example.com`,
      password: PASSWORD,
    });
  expect(hashed).toEqual([`partner/${control.id}`, `partner/${control.id}`]);
});

test('a key that is sent many times at once is compared once, and is right each time', async () => {
  const { logins, tenancy } = parts;
  const person = { partnerId: control.id, email: 'u@example.com', firstName: 'U', lastName: 'V' };
  const { id } = await logins.createUser({ ...person, role: 'Admin' });
  const { apiKey } = await logins.createKey(id, { name: 'k' });
  hashed.length = 0;
  const given = { login: 'u@example.com', apiKey, address: '192.0.2.1' };
  const callers = await Promise.all(Array.from({ length: 20 }, () => tenancy.authenticate(given)));
  for (const caller of callers) expect(caller).toMatchObject({ userId: id });
  expect(hashed).toEqual([`user/${id}`]);
});

test.each([
  ['its key', (user: number, key: string) => parts.logins.deleteKey(user, key)],
  ['its user', (user: number) => parts.logins.setStatus(user, 'deleted')],
  ['its partner', () => parts.tenancy.changePartner(OPERATOR, control.id, { status: 'deactivated' })],
])('nobody enters by a comparison that began before %s was gone', async (_what, end) => {
  const { logins, tenancy } = parts;
  const person = { partnerId: control.id, email: 'u@example.com', firstName: 'U', lastName: 'V' };
  const { id } = await logins.createUser({ ...person, role: 'Admin' });
  const { apiKey, key } = await logins.createKey(id, { name: 'k' });
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  vi.spyOn(hasher, 'verify').mockImplementationOnce(async () => {
    begun.resolve();
    await ended.promise;
    return true;
  });
  const enter = () => tenancy.authenticate({ login: 'u@example.com', apiKey, address: '192.0.2.1' });
  const before = enter();
  await begun.promise;
  await end(id, key.id);
  const behind = enter();
  // It has looked, and waits for the same comparison.
  await tenancy.listPartners(OPERATOR, {}, PAGE);
  ended.resolve();
  expect([await before, await behind]).toEqual([undefined, undefined]);
});

test('the keys of the root account are the operator’s', async () => {
  const keys = { accessKey: 'ROOTKEY', secretKey: 'root-secret-key' };
  await accounts.ensureRoot(keys);
  const enter = (apiKey: string) =>
    parts.tenancy.authenticate({ login: 'ROOTKEY', apiKey, address: '192.0.2.1' });
  expect(await enter(keys.secretKey)).toMatchObject({ kind: 'operator', level: 'admin' });
  expect(await enter('root-secret-kez')).toBeUndefined();
});

test('who guesses the root’s secret waits, with the right one, too, and other addresses do not', async () => {
  const keys = { accessKey: 'ROOTKEY', secretKey: 'root-secret-key' };
  await accounts.ensureRoot(keys);
  const enter = (apiKey: string, address = '192.0.2.1') =>
    parts.tenancy.authenticate({ login: 'ROOTKEY', apiKey, address }).then(
      (caller) => caller?.kind ?? 'wrong',
      ({ code }: AppError) => code,
    );
  // Sent at once they are no more guesses than one after the other.
  const guesses = await Promise.all(Array.from({ length: 7 }, (_, at) => enter(`guess ${at}`)));
  const locked = 'AuthenticationLockout';
  expect(guesses).toEqual([...Array.from({ length: 5 }, () => 'wrong'), locked, locked]);
  expect(await enter(keys.secretKey)).toBe(locked);
  expect(await enter(keys.secretKey, '192.0.2.2')).toBe('operator');
  world.clock.advance(29_999);
  expect(await enter(keys.secretKey)).toBe(locked);
  world.clock.advance(1);
  expect(await enter(keys.secretKey)).toBe('operator');
  // A success ends the waits.
  expect([await enter('guess'), await enter(keys.secretKey)]).toEqual(['wrong', 'operator']);
});

test('a member is a user with the policy of its role; the last Root stays', async () => {
  const { tenancy } = parts;
  const { id: subAccountId, accountId } = await createCustomer('own');
  const person = { firstName: 'Ann', lastName: 'Lee', password: PASSWORD, subAccountId };
  const root = await tenancy.createMember(OPERATOR, { ...person, role: 'root', email: 'ann@example.com' });
  const bob = await tenancy.createMember(OPERATOR, {
    ...person,
    role: 'read_only',
    email: 'bob@example.com',
  });
  expect(bob).toMatchObject({ username: 'bob@example.com', role: 'Read Only', status: 'active' });
  const policy = async () => {
    const keys = ['user/bob@example.com'];
    const { rows } = await world.query('read-identities', { accountId, keys });
    return rows[0]?.kind === 'user' ? rows[0].inlinePolicies[0]?.text : undefined;
  };
  expect(await policy()).toContain('s3:List*');
  await tenancy.changeMember(OPERATOR, bob.id, { role: 'Full Access Limited' });
  expect(await policy()).toContain('"Effect":"Deny"');
  await tenancy.changeMember(OPERATOR, bob.id, { active: false });
  expect(await policy()).not.toContain('Allow');
  const again = tenancy.createMember(OPERATOR, { ...person, role: 'Admin', email: 'BOB@example.com' });
  await expect(again).rejects.toMatchObject({ code: 'EntityAlreadyExists' });
  await expect(tenancy.deleteMember(OPERATOR, root.id)).rejects.toMatchObject({ code: 'ValidationError' });
  await expect(tenancy.changeMember(OPERATOR, root.id, { role: 'Admin' })).rejects.toMatchObject({
    code: 'ValidationError',
  });
  const foreign = tenancy.getMember(callerOf(other), bob.id);
  await expect(foreign).rejects.toMatchObject({ code: 'NoSuchEntity' });
  await tenancy.deleteMember(OPERATOR, bob.id);
  expect(await policy()).toBeUndefined();
  const { items } = await tenancy.listMembers(callerOf(control), { subAccountId }, PAGE);
  expect(items.map(({ id }) => id)).toEqual([root.id]);
});

test('a member is its user whatever IAM calls it, and no user of another becomes one', async () => {
  const { tenancy } = parts;
  const { id: subAccountId, accountId } = await createCustomer('own');
  const { shards: metadata, clock } = world;
  const deps = { metadata, clock, random: createSeededRandom(9) };
  const edit = (work: (store: IdentityStore) => Promise<void>) => withIdentities(deps, accountId, work);
  const userAt = async (name: string) => {
    const { rows } = await world.query('read-identities', { accountId, keys: [identityKeys.user(name)] });
    return rows[0]?.kind === 'user' ? rows[0] : undefined;
  };
  const person = { firstName: 'A', lastName: 'B', password: PASSWORD, subAccountId, role: 'Administrator' };
  const create = (username: string) =>
    tenancy.createMember(OPERATOR, { ...person, username, email: `${username}@example.com` });
  const { id } = await create('ann');
  await edit(async (store) => {
    const user = await store.find('user', identityKeys.user('ann'));
    if (user === undefined) throw new Error('no user');
    // As UpdateUser does it, and then CreateUser.
    store.remove(identityKeys.user('ann'));
    store.put(identityKeys.user('bob'), { ...user, name: 'bob', path: '/' });
    store.put(identityKeys.id(user.id), { kind: 'index', to: identityKeys.user('bob') });
    const key = { accessKey: 'AKPLANTED', isActive: true, createdAtMs: 0 };
    const planted = { ...user, id: 'AIDAPLANTED', inlinePolicies: [], accessKeys: [key] };
    store.put(identityKeys.user('ann'), planted);
    store.put(identityKeys.id(planted.id), { kind: 'index', to: identityKeys.user('ann') });
  });
  await tenancy.changeMember(OPERATOR, id, { active: false });
  expect((await userAt('bob'))?.inlinePolicies[0]?.text).not.toContain('Allow');
  expect((await userAt('ann'))?.inlinePolicies).toEqual([]);
  await tenancy.deleteMember(OPERATOR, id);
  expect(await userAt('bob')).toBeUndefined();
  await expect(create('ann')).rejects.toMatchObject({ code: 'EntityAlreadyExists' });
  expect((await userAt('ann'))?.inlinePolicies).toEqual([]);
  // A member that is told to be called otherwise keeps its user.
  const carl = await create('carl');
  await tenancy.changeMember(OPERATOR, carl.id, { username: 'charles' });
  await expect(create('carl')).rejects.toMatchObject({ code: 'EntityAlreadyExists' });
  // What a creation has left that was cut short is taken over.
  await edit(async (store) => {
    const left = await store.find('user', identityKeys.user('carl'));
    if (left === undefined) throw new Error('no user');
    store.put(identityKeys.user('dora'), { ...left, id: 'AIDALEFT', name: 'dora' });
  });
  await create('dora');
  expect(await userAt('dora')).toMatchObject({ id: 'AIDALEFT', loginProfile: { mustReset: false } });
});

/** Over the same rows, with commands that are looked at on their way. */
function tenancyOver(
  execute: MetadataPort['execute'],
  clock: ClockPort = world.clock,
): TenancyParts['tenancy'] {
  return createTenancy({
    metadata: { ...world.shards, execute },
    keyring: createKeyring(),
    random: createSeededRandom(8),
    clock,
    log: { warn() {} },
    accounts,
    hasher,
    resetRootMfa: async () => {},
    setPlanQuota: async () => {},
  }).tenancy;
}

/** What the policy of the account's member Ann says. */
async function policyOf(accountId: AccountId): Promise<string | undefined> {
  const { rows } = await world.query('read-identities', { accountId, keys: ['user/ann@example.com'] });
  return rows[0]?.kind === 'user' ? rows[0].inlinePolicies[0]?.text : undefined;
}

test('a member that is deactivated stays so where an earlier change of it ends later', async () => {
  const { id: subAccountId, accountId } = await createCustomer('own');
  const person = { firstName: 'Ann', lastName: 'Lee', password: PASSWORD, subAccountId };
  const { id } = await parts.tenancy.createMember(OPERATOR, {
    ...person,
    role: 'Full Access',
    email: 'ann@example.com',
  });
  const { shards, clock } = world;
  let isFirst = true;
  const execute: typeof shards.execute = async (target, name, command) => {
    if (name === 'change-identities' && isFirst) {
      isFirst = false;
      await parts.tenancy.changeMember(OPERATOR, id, { active: false });
    }
    return shards.execute(target, name, command);
  };
  // It waits for nothing between two attempts.
  const slow = tenancyOver(execute, {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    sleep: async () => {},
  });
  await slow.changeMember(OPERATOR, id, { lastName: 'Li' });
  expect(isFirst).toBe(false);
  expect(await parts.tenancy.getMember(OPERATOR, id)).toMatchObject({
    status: 'deactivated',
    lastName: 'Li',
  });
  expect(await policyOf(accountId)).not.toContain('Allow');
});

test.each([
  { role: 'Read Only' },
  { role: 'Administrator' },
  { active: false },
  { role: 'Download Only', active: false, username: 'ann' },
])(
  'a change of a member that ends halfway leaves rights and record as they were, or both as they are to be: %o',
  async (changes) => {
    const { id: subAccountId, accountId } = await createCustomer('own');
    const person = { firstName: 'Ann', lastName: 'Lee', password: PASSWORD, subAccountId };
    const given = { ...person, role: 'Full Access', email: 'ann@example.com' };
    const { id } = await parts.tenancy.createMember(OPERATOR, given);
    // Nothing of it comes behind so many of its commands.
    for (let left = 0; ; left++) {
      let toCome = left;
      const { shards } = world;
      const execute: typeof shards.execute = async (target, name, command) => {
        if (toCome-- <= 0) throw new AppError('ServiceUnavailable');
        return shards.execute(target, name, command);
      };
      const ended = await tenancyOver(execute)
        .changeMember(OPERATOR, id, changes)
        .catch(() => undefined);
      const { role, status } = await parts.tenancy.getMember(OPERATOR, id);
      expect(await policyOf(accountId)).toBe(memberPolicy(role, { isActive: status === 'active' }));
      if (ended !== undefined) break;
    }
    expect(await parts.tenancy.getMember(OPERATOR, id)).toMatchObject({
      role: changes.role ?? 'Full Access',
      status: changes.active === false ? 'deactivated' : 'active',
    });
  },
);

test('where a password is not stored, there is no sub-account', async () => {
  const failing = { ...hasher, hash: async () => Promise.reject(new AppError('SlowDown')) };
  const { shards: metadata, clock } = world;
  const deps = { metadata, keyring: createKeyring(), random: createSeededRandom(8), clock };
  const { tenancy } = createTenancy({
    ...deps,
    log: { warn() {} },
    accounts,
    hasher: failing,
    resetRootMfa: async () => {},
    setPlanQuota: async () => {},
  });
  const given = {
    controlAccountId: control.id,
    name: 'Bakery',
    email: 'it@bakery.example',
    password: PASSWORD,
  };
  await expect(tenancy.createCustomer(OPERATOR, given)).rejects.toMatchObject({ code: 'SlowDown' });
  expect((await parts.tenancy.listCustomers(OPERATOR, {}, PAGE)).total).toBe(0);
  expect((await accounts.list()).map(({ account }) => account.name)).toEqual([]);
  // And the sub-account's first look at itself finds the password of its creation.
  const made = await parts.tenancy.createCustomer(OPERATOR, given);
  const { rows } = await world.query('read-identities', { accountId: made.accountId, keys: ['settings'] });
  expect(rows[0]).toMatchObject({ rootLogin: { passwordHash: `h:${PASSWORD}`, mustReset: false } });
});

test('the quota of a plan is set when it begins, and when it changes', async () => {
  const { tenancy } = parts;
  const { id, accountId } = await createCustomer('Bakery');
  const change = (changes: object) => tenancy.changeCustomer(OPERATOR, id, changes);
  const hard = (bytes: number) => ({ accountId, quota: { hard: { bytes } } });
  expect(plans.splice(0)).toEqual([hard(2 ** 40)]);
  await change({ name: 'Bakeries', active: false });
  await change({ trialQuotaTB: 2 });
  await change({ active: true });
  expect(plans.splice(0)).toEqual([hard(2 ** 41)]);
  await change({ trialToPaid: true });
  expect(plans.splice(0)).toEqual([{ accountId, quota: null }]);
  await change({ purchasedStorageTB: 0.5 });
  await change({ quotaType: 'hard' });
  expect(plans.splice(0)).toEqual([{ accountId, quota: { soft: { bytes: 2 ** 39 } } }, hard(2 ** 39)]);
  await change({ quotaType: 'soft', purchasedStorageTB: 1_000_000 });
  const largest = Number.MAX_SAFE_INTEGER;
  expect(plans.splice(0)).toEqual([{ accountId, quota: { soft: { bytes: largest } } }]);
  // A later change that is done before the quota of this one is set.
  beforePlan = () => change({ purchasedStorageTB: 0.25 });
  await change({ purchasedStorageTB: 0.5 });
  expect(plans.at(-1)).toEqual({ accountId, quota: { soft: { bytes: 2 ** 38 } } });
});

test('the link of a mail sets a password once, and within three days', async () => {
  const { mails, tenancy } = parts;
  const asked = { controlAccountId: control.id, name: 'Bakery', email: 'it@bakery.example' };
  const made = await tenancy.createCustomer(OPERATOR, { ...asked, sendWelcomeEmail: true });
  const settings = async () => {
    const { rows } = await world.query('read-identities', { accountId: made.accountId, keys: ['settings'] });
    return rows[0];
  };
  const [mail] = await mails.list();
  const tokenOf = async () => /\d+\.\w{40}/.exec((await mails.text(mail?.id ?? 0)).text)?.[0] ?? '';
  const late = await tokenOf();
  expect(JSON.stringify(await settings())).not.toContain(late.split('.')[1]);
  world.clock.advance(3 * DAY_MS);
  await expect(mails.resetPassword({ token: late, password: PASSWORD })).rejects.toMatchObject({
    code: 'AccessDenied',
  });
  const token = await tokenOf();
  await mails.resetPassword({ token, password: PASSWORD });
  const again = mails.resetPassword({ token, password: 'Other-1' });
  await expect(again).rejects.toMatchObject({ code: 'AccessDenied' });
  expect(await settings()).toMatchObject({ rootLogin: { passwordHash: `h:${PASSWORD}`, mustReset: false } });
  const mailed = await tokenOf();
  vi.spyOn(hasher, 'hash').mockImplementationOnce(async () => {
    await tenancy.changeCustomer(OPERATOR, made.id, { email: 'new@bakery.example' });
    return 'h:Theirs-1';
  });
  const tooLate = mails.resetPassword({ token: mailed, password: 'Theirs-1' });
  await expect(tooLate).rejects.toMatchObject({ code: 'AccessDenied' });
  expect(await settings()).toMatchObject({ rootLogin: { passwordHash: `h:${PASSWORD}` } });
  await tenancy.changeCustomer(OPERATOR, made.id, { email: asked.email });
  // Only a thousand are kept, in equal shares: those that a flood pushes out are its own.
  await tenancy.changeCustomer(OPERATOR, made.id, { sendPasswordReset: true });
  const flood = {
    kind: 'welcome',
    customerId: made.id,
    controlId: control.id + 1,
    to: 'a@b.example',
  } as const;
  for (let at = 0; at < 1010; at++) await world.execute('add-mail', { mail: flood });
  const kept = await mails.list();
  expect(kept.map(({ id }) => id)).toEqual([...Array.from({ length: 998 }, (_, at) => 1012 - at), 2, 1]);
  for (let at = 0; at < 3; at++)
    await world.execute('add-mail', { mail: { ...flood, controlId: control.id } });
  const shared = await mails.list();
  expect(shared.map(({ id }) => id).filter((id) => id < 20)).toEqual([19, 18, 2, 1]);
  await expect(mails.text(3)).rejects.toMatchObject({ code: 'NoSuchEntity' });
});
