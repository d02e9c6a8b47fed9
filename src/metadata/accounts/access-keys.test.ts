// Access keys of an account: two at most, refused at once when disabled or deleted, and never the root's last one.
import { beforeEach, expect, test } from 'vitest';
import { kek, type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import type { AccountId } from '../../types/names.ts';

const ROOT = '000000000001' as AccountId;
const ANN = '000000000011' as AccountId;
let world: MetadataShards;

beforeEach(async () => {
  world = await openMetadata({ shardCount: 4 });
  for (const [accountId, name, isRoot] of [[ROOT, 'root', true] as const, [ANN, 'ann', false] as const]) {
    const account = { accountId, name, email: name, canonicalId: name, state: 'paid' as const };
    await world.execute('create-account', {
      account: { ...account, bucketsMax: 1, isRoot },
      accessKey: { accessKey: `AK${name}`, sealedSecret: kek },
    });
  }
});

const add = (accountId: AccountId, accessKey: string) =>
  world.execute('add-access-key', { accountId, accessKey: { accessKey, sealedSecret: kek } });
const change = (accountId: AccountId, accessKey: string, what: 'disable' | 'enable' | 'delete') =>
  world.execute('change-access-key', { accountId, accessKey, change: what });
const isFound = async (accessKey: string) =>
  (await world.query('get-access-key', { accessKey })).kind === 'found';
const keysOf = async (accountId: AccountId) =>
  (await world.query('list-access-keys', { accountId })).accessKeys.map(({ accessKey }) => accessKey);

test('an account has two keys at most, and a key belongs to one account', async () => {
  expect(await add(ANN, 'AKroot')).toEqual({ kind: 'taken' });
  expect(await add('000000000099' as AccountId, 'AK2')).toEqual({ kind: 'no-such-account' });
  expect(await add(ANN, 'AK2')).toMatchObject({ kind: 'added', accessKey: { accessKey: 'AK2' } });
  expect(await add(ANN, 'AK3')).toEqual({ kind: 'too-many-keys' });
  expect(await keysOf(ANN)).toEqual(['AK2', 'AKann']);
  await change(ANN, 'AKann', 'delete');
  expect(await add(ANN, 'AK3')).toMatchObject({ kind: 'added' });
  expect([await isFound('AKann'), await isFound('AK3')]).toEqual([false, true]);
});

test('a disabled key is refused like a missing one, and can be enabled', async () => {
  expect(await change(ANN, 'AKann', 'disable')).toEqual({ kind: 'changed', revokedSeq: 1 });
  expect(await isFound('AKann')).toBe(false);
  expect((await world.query('list-access-keys', { accountId: ANN })).accessKeys).toMatchObject([
    { accessKey: 'AKann', isDisabled: true },
  ]);
  expect(await change(ANN, 'AKann', 'enable')).toEqual({ kind: 'changed' });
  expect(await isFound('AKann')).toBe(true);
});

test('a change that revokes a key is reported to gateways, also when it is repeated', async () => {
  expect(await change(ANN, 'AKroot', 'delete')).toEqual({ kind: 'no-such-key' });
  expect(await change(ANN, 'AKann', 'delete')).toEqual({ kind: 'changed', revokedSeq: 1 });
  expect(await change(ANN, 'AKann', 'delete')).toEqual({ kind: 'no-such-key', revokedSeq: 1 });
  expect(await world.query('identity-changes', { gateway: 'g' })).toMatchObject({ upTo: { seq: 1 } });
});

test('the root account keeps a key that it can sign with', async () => {
  const refused = { kind: 'last-key-of-root' };
  expect(await change(ROOT, 'AKroot', 'delete')).toEqual(refused);
  expect(await change(ROOT, 'AKroot', 'disable')).toEqual(refused);
  await add(ROOT, 'AK2');
  expect(await change(ROOT, 'AK2', 'disable')).toMatchObject({ kind: 'changed' });
  expect(await change(ROOT, 'AKroot', 'delete')).toEqual(refused);
  await change(ROOT, 'AK2', 'enable');
  expect(await change(ROOT, 'AKroot', 'delete')).toMatchObject({ kind: 'changed' });
  expect(await keysOf(ROOT)).toEqual(['AK2']);
});

test('an account is deleted with all of its keys', async () => {
  await add(ANN, 'AK2');
  await change(ANN, 'AK2', 'disable');
  await world.execute('delete-account', { accountId: ANN });
  expect([await isFound('AKann'), await isFound('AK2')]).toEqual([false, false]);
  expect(await add(ROOT, 'AK2')).toMatchObject({ kind: 'added' });
});

test('a key that is made again under the name of one that was deleted has not been used', async () => {
  const uses = [{ accessKey: 'AKann', atMs: 5, region: 'us-east-1', service: 's3' }];
  const used = async () => (await world.query('get-key-uses', { accessKeys: ['AKann'] })).uses[0]?.atMs;
  await world.execute('note-key-uses', { uses });
  expect(await used()).toBe(5);
  await change(ANN, 'AKann', 'delete');
  expect(await used()).toBeUndefined();
  await add(ANN, 'AKann');
  await world.execute('note-key-uses', { uses });
  await world.execute('delete-account', { accountId: ANN });
  expect(await used()).toBeUndefined();
});
