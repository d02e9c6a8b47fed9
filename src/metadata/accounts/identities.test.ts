// Rows of identities: written only at the revision that they were decided at, read at one moment, gone with their account.
import { beforeEach, expect, test } from 'vitest';
import { kek, type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { AccountId } from '../../types/names.ts';
import { type IdentityRecord, identityKeys, type UserRecord } from '../../types/records/identity-records.ts';
import { accessKeyCodec } from '../../types/records/rows.ts';
import { SECTION } from '../master-keys/wrapped-keys.ts';

const ANN = '000000000011' as AccountId;
const BOB = '000000000012' as AccountId;
let world: MetadataShards;

beforeEach(async () => {
  world = await openMetadata({ shardCount: 4 });
  for (const [accountId, name] of [[ANN, 'ann'] as const, [BOB, 'bob'] as const]) {
    const account = { accountId, name, email: name, canonicalId: name, state: 'paid' as const };
    await world.execute('create-account', {
      account: { ...account, bucketsMax: 1, isRoot: false },
      accessKey: { accessKey: `AK${name}`, sealedSecret: kek },
    });
  }
});

const user: UserRecord = {
  kind: 'user',
  id: 'AIDA1',
  name: 'Eve',
  path: '/',
  createdAtMs: 1,
  tags: [],
  groups: ['AGPA1'],
  inlinePolicies: [],
  attachedPolicies: [`arn:aws:iam::${ANN}:policy/x/Read`, 'arn:aws:iam::aws:policy/AdministratorAccess'],
  accessKeys: [{ accessKey: 'AKeve', isActive: true, createdAtMs: 1 }],
  mfaDevices: [],
};
const group = { ...user, kind: 'group' as const, id: 'AGPA1', name: 'Ops', attachedPolicies: [] };
const policy = {
  kind: 'policy' as const,
  id: 'ANPA1',
  name: 'Read',
  path: '/x/',
  createdAtMs: 1,
  updatedAtMs: 1,
  tags: [],
  versions: [{ number: 2, createdAtMs: 1 }],
  defaultVersion: 2,
  nextVersion: 3,
};

type Change = Omit<CommandOf<'change-identities'>, 'accountId' | 'isSeen'> & { accountId?: AccountId };
const change = ({ accountId = ANN, ...rest }: Change) =>
  world.execute('change-identities', { accountId, isSeen: false, ...rest });

const addEve = () =>
  change({
    ifRevision: 0,
    rows: [
      { key: identityKeys.user('Eve'), record: user },
      { key: identityKeys.id('AIDA1'), record: { kind: 'index', to: identityKeys.user('Eve') } },
      { key: identityKeys.group('Ops'), record: group },
      { key: identityKeys.id('AGPA1'), record: { kind: 'index', to: identityKeys.group('Ops') } },
      { key: identityKeys.policy('Read'), record: policy },
      { key: identityKeys.policyVersion('Read', 2), record: { kind: 'policy-version', text: '{}' } },
      { key: identityKeys.settings, record: { kind: 'settings', alias: 'acme', rootMfaDevices: [] } },
    ],
    keys: [{ kind: 'add', key: { accessKey: 'AKeve', sealedSecret: kek, userId: 'AIDA1' } }],
    alias: { after: 'acme' },
  });

test('a change decided at an older revision is refused and writes nothing', async () => {
  expect(await addEve()).toEqual({ kind: 'changed', revision: 1 });
  const remove = { rows: [{ key: identityKeys.user('Eve'), record: null }] };
  expect(await change({ ifRevision: 0, ...remove })).toEqual({ kind: 'conflict' });
  const keys = [identityKeys.user('EVE'), identityKeys.user('nobody')];
  expect(await world.query('read-identities', { accountId: ANN, keys })).toMatchObject({
    revision: 1,
    rows: [{ name: 'Eve' }, null],
  });
  expect(await world.query('read-identities', { accountId: BOB, keys })).toMatchObject({
    revision: 0,
    rows: [null, null],
  });
});

test("a device keeps its seed as a rotation has wrapped it since the change's look at it", async () => {
  const key = identityKeys.mfaDevice('phone');
  const made = { kind: 'mfa-device' as const, name: 'phone', path: '/', createdAtMs: 1, tags: [] };
  const read: IdentityRecord = { ...made, sealedSeed: kek };
  await change({ ifRevision: 0, rows: [{ key, record: read }] });
  const query = { notKeyId: 'new', after: Uint8Array.of(SECTION.identities), limit: 9 };
  const { items } = await world.query('list-wrapped-keys', query);
  const replacement = { ...kek, keyId: 'new' };
  const rewrapped = items.map(({ row, wrapped }) => ({ row, expected: wrapped, replacement }));
  await world.execute('rewrap-keys', { items: rewrapped });
  await change({ ifRevision: 1, rows: [{ key, record: { ...read, usedStep: 7 } }] });
  expect((await world.query('read-identities', { accountId: ANN, keys: [key] })).rows).toMatchObject([
    { usedStep: 7, sealedSeed: { keyId: 'new' } },
  ]);
});

test('ranges give rows by key, behind one, up to a limit', async () => {
  const rows = ['b', 'a', 'c'].map((name) => ({ key: identityKeys.user(name), record: { ...user, name } }));
  await change({ ifRevision: 0, rows });
  const list = async (range: { after?: string; limit: number }) => {
    const ranges = [{ prefix: 'user/', ...range }];
    const found = await world.query('read-identities', { accountId: ANN, ranges });
    return found.ranges[0]?.map(({ key }) => key);
  };
  expect(await list({ limit: 2 })).toEqual(['user/a', 'user/b']);
  expect(await list({ after: 'user/b', limit: 2 })).toEqual(['user/c']);
});

test("a user's key leads to the user with its groups and the texts of its account's policies", async () => {
  await addEve();
  expect(await world.query('get-access-key', { accessKey: 'AKeve' })).toMatchObject({
    kind: 'found',
    account: { accountId: ANN },
    principal: {
      entity: { name: 'Eve' },
      groups: [{ name: 'Ops' }],
      policies: [{ arn: `arn:aws:iam::${ANN}:policy/x/Read`, text: '{}' }],
    },
  });
  expect(await world.query('get-principal', { accountId: ANN, id: 'AIDA1' })).toMatchObject({
    principal: { entity: { name: 'Eve' } },
  });
  expect(await world.query('get-principal', { accountId: BOB, id: 'AIDA1' })).toBeNull();
  expect(
    await world.execute('change-access-key', { accountId: ANN, accessKey: 'AKeve', change: 'delete' }),
  ).toEqual({ kind: 'no-such-key' });
});

test('whose policies take more than is asked for is told without them, wherever they stand', async () => {
  await addEve();
  const ask = async (textsBytesMax: number) => {
    const byKey = await world.query('get-access-key', { accessKey: 'AKeve', textsBytesMax });
    const byId = await world.query('get-principal', { accountId: ANN, id: 'AIDA1', textsBytesMax });
    return [byKey.kind, byId?.principal === 'large'];
  };
  expect(await ask(2)).toEqual(['found', false]);
  expect(await ask(1)).toEqual(['large', true]);
  const inlinePolicies = [{ name: 'one', text: 'x'.repeat(10) }];
  const key = identityKeys.group('Ops');
  await change({ ifRevision: 1, rows: [{ key, record: { ...group, inlinePolicies } }] });
  expect([await ask(12), await ask(11)]).toEqual([
    ['found', false],
    ['large', true],
  ]);
  const own = { key: identityKeys.user('Eve'), record: { ...user, inlinePolicies } };
  await change({ ifRevision: 2, rows: [own] });
  expect([await ask(22), await ask(9)]).toEqual([
    ['found', false],
    ['large', true],
  ]);
  const query = { accessKey: 'AKeve', textsBytesMax: 9 };
  const entity = { id: 'AIDA1', name: 'Eve' };
  expect(await world.query('get-access-key', query)).toMatchObject({ kind: 'large', entity });
});

test('a disabled or deleted key of a user is unknown, and a change that is seen is numbered', async () => {
  await addEve();
  const isFound = async () => (await world.query('get-access-key', { accessKey: 'AKeve' })).kind === 'found';
  const step = (ifRevision: number, kind: 'disable' | 'enable' | 'delete') =>
    world.execute('change-identities', {
      accountId: ANN,
      ifRevision,
      rows: [],
      keys: [{ kind, accessKey: 'AKeve' }],
      isSeen: true,
    });
  expect(await step(1, 'disable')).toEqual({ kind: 'changed', revision: 2, revokedSeq: 1 });
  expect(await isFound()).toBe(false);
  await step(2, 'enable');
  expect(await isFound()).toBe(true);
  await step(3, 'delete');
  expect(await isFound()).toBe(false);
});

test('an alias and an access key are of one account each', async () => {
  await addEve();
  const ofBob = { accountId: BOB, ifRevision: 0, rows: [] };
  expect(await change({ ...ofBob, alias: { after: 'acme' } })).toEqual({ kind: 'alias-taken' });
  const key = { accessKey: 'AKeve', sealedSecret: kek, userId: 'AIDA9' };
  expect(await change({ ...ofBob, keys: [{ kind: 'add', key }] })).toEqual({ kind: 'key-taken' });
  expect(await world.query('find-account', { alias: 'acme' })).toMatchObject({ account: { accountId: ANN } });
});

test('uses of keys are noted, the latest counts', async () => {
  await addEve();
  const use = (atMs: number) => ({ accessKey: 'AKeve', atMs, region: 'us-east-1', service: 's3' });
  await world.execute('note-key-uses', { uses: [use(5), { ...use(6), accessKey: 'nobody' }] });
  await world.execute('note-key-uses', { uses: [use(4)] });
  expect(await world.query('get-key-uses', { accessKeys: ['AKeve', 'nobody'] })).toMatchObject({
    uses: [{ atMs: 5 }, null],
  });
});

test('uses of roles are noted as long as there is the role, and change no revision', async () => {
  await addEve();
  const rows = [{ key: 'id/AROA9', record: { kind: 'index' as const, to: 'user/eve' } }];
  const { revision } = await world.query('read-identities', { accountId: ANN });
  await change({ accountId: ANN, ifRevision: revision, rows });
  const use = (atMs: number, id = 'AROA9') => ({ accountId: ANN, id, atMs, region: 'us-east-1' });
  await world.execute('note-key-uses', { uses: [], roles: [use(5), use(6, 'AROAGONE')] });
  await world.execute('note-key-uses', { uses: [], roles: [use(4)] });
  const keys = ['used/AROA9', 'used/AROAGONE'];
  expect(await world.query('read-identities', { accountId: ANN, keys })).toMatchObject({
    revision: revision + 1,
    rows: [{ kind: 'role-use', atMs: 5, region: 'us-east-1' }, null],
  });
});

test('what a deleted account leaves of identities is removed in steps', async () => {
  await addEve();
  const forget = () => world.execute('forget-identities', { accountId: ANN, limit: 4 });
  expect(await forget()).toEqual({ kind: 'account-exists' });
  await world.execute('delete-account', { accountId: ANN });
  expect(await world.query('get-access-key', { accessKey: 'AKeve' })).toEqual({ kind: 'unknown' });
  expect([await forget(), await forget()]).toEqual([
    { kind: 'forgotten', isAll: false },
    { kind: 'forgotten', isAll: true },
  ]);
  expect(await world.query('find-account', { alias: 'acme' })).toEqual({ account: null });
});

test('a program that knows no users cannot read a key of one', async () => {
  await addEve();
  const versionOf = async (accessKey: string) => {
    const found = await world.query('get-access-key', { accessKey });
    if (found.kind !== 'found') throw new Error(found.kind);
    return accessKeyCodec.encode(found.accessKey)[0];
  };
  expect([await versionOf('AKann'), await versionOf('AKeve')]).toEqual([1, 2]);
});
