import { beforeEach, expect, test } from 'vitest';
import { kek, type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import type { AccountId, BucketName } from '../../types/names.ts';

const ANN = '000000000011' as AccountId;
const BOB = '000000000022' as AccountId;
let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata({ shardCount: 4 });
  await createAccount(ANN, 'ann');
  await createAccount(BOB, 'bob');
});

function createAccount(
  accountId: AccountId,
  text: string,
  more: { isRoot?: boolean; accessKey?: string } = {},
) {
  return world.execute('create-account', {
    account: {
      accountId,
      name: text,
      email: `${text}@example.com`,
      canonicalId: text.padEnd(64, '0'),
      state: 'paid',
      bucketsMax: 2,
      isRoot: more.isRoot ?? false,
    },
    accessKey: { accessKey: more.accessKey ?? `AK${text}`, sealedSecret: kek },
  });
}

test('name, e-mail and canonical id each belong to one account', async () => {
  const fields = {
    accountId: ANN,
    name: 'ann',
    email: 'ANN@example.com',
    canonicalId: 'ann'.padEnd(64, '0'),
  };
  for (const [field, value] of Object.entries(fields)) {
    const outcome = await world.execute('create-account', {
      account: {
        accountId: '000000000033' as AccountId,
        name: 'new',
        email: 'new@example.com',
        canonicalId: 'f'.repeat(64),
        state: 'paid',
        bucketsMax: 1,
        isRoot: false,
        [field]: value,
      },
      accessKey: { accessKey: 'AKnew', sealedSecret: kek },
    });
    expect(outcome).toEqual({ kind: 'conflict', field });
  }
  const sameKey = await createAccount('000000000033' as AccountId, 'new', { accessKey: 'AKann' });
  expect(sameKey).toEqual({ kind: 'conflict', field: 'accessKey' });
});

test('is found by each of them', async () => {
  const account = { accountId: ANN, name: 'ann', bucketCount: 0 };
  expect(await world.query('find-account', { name: 'ann' })).toMatchObject({ account });
  expect(await world.query('find-account', { email: 'Ann@Example.com' })).toMatchObject({ account });
  expect(await world.query('find-account', { canonicalId: 'ann'.padEnd(64, '0') })).toMatchObject({
    account,
  });
  expect(await world.query('find-account', { name: 'nobody' })).toEqual({ account: null });
  expect(await world.query('find-account', {})).toEqual({ account: null });
  const found = { kind: 'found', account, accessKey: { accessKey: 'AKann' } };
  expect(await world.query('get-access-key', { accessKey: 'AKann' })).toMatchObject(found);
  const long = 'A'.repeat(8000);
  expect(await world.query('get-access-key', { accessKey: long })).toEqual({ kind: 'unknown' });
  const { accounts, accessKeys } = await world.query('list-accounts', { limit: 10 });
  expect(accounts.map((item) => item.name)).toEqual(['ann', 'bob']);
  expect(accessKeys).toEqual([['AKann'], ['AKbob']]);
  expect((await world.query('list-accounts', { after: ANN, limit: 10 })).accounts).toHaveLength(1);
});

test('is changed', async () => {
  const changes = { state: 'suspended' as const };
  expect(await world.execute('set-account', { accountId: ANN, changes })).toMatchObject({
    kind: 'changed',
    account: { state: 'suspended', bucketsMax: 2 },
  });
  const unknown = '000000000099' as AccountId;
  expect(await world.execute('set-account', { accountId: unknown, changes })).toEqual({
    kind: 'no-such-account',
    // A repeated revocation waits for the same change as the first (R46).
    revokedSeq: 1,
  });
});

test('is deleted with its keys, unless it owns a bucket or is the root', async () => {
  const remove = (accountId: AccountId) => world.execute('delete-account', { accountId });
  const name = 'photos' as BucketName;
  const bucket = await world.execute('reserve-name', { name, owner: ANN });
  if (bucket.kind !== 'reserved') throw new Error(bucket.kind);
  expect(await remove(ANN)).toEqual({ kind: 'owns-buckets' });
  await world.execute('forget-name', { name, bucketId: bucket.bucketId, owner: ANN });
  expect(await remove(ANN)).toEqual({ kind: 'deleted', revokedSeq: 1 });
  expect(await remove(ANN)).toEqual({ kind: 'no-such-account', revokedSeq: 1 });
  expect(await world.query('get-access-key', { accessKey: 'AKann' })).toEqual({ kind: 'unknown' });
  expect(await createAccount(ANN, 'ann')).toMatchObject({ kind: 'created' });
  await createAccount('000000000001' as AccountId, 'root', { isRoot: true });
  expect(await remove('000000000001' as AccountId)).toEqual({ kind: 'is-root' });
  await remove(BOB);
  expect(await world.execute('reserve-name', { name, owner: BOB })).toEqual({ kind: 'in-progress' });
  expect(await world.execute('reserve-name', { name, owner: ANN })).toMatchObject({ kind: 'reserved' });
  await world.execute('delete-account', { accountId: ANN, withBuckets: true });
  const more = 'more-photos' as BucketName;
  expect(await world.execute('reserve-name', { name: more, owner: ANN })).toEqual({ kind: 'in-progress' });
});

test('nothing is left of its quota where that is changed while the account is deleted', async () => {
  const quota = { hard: { bytes: 1 } };
  await world.execute('set-account-quota', { accountId: ANN, source: 'operator', quota });
  const lease = { version: 1, bytes: 0, objects: 0 };
  const notes = Array.from({ length: 8 }, (_, shard) =>
    world.execute('note-quota-lease', { accountId: ANN, shard, lease }),
  );
  await Promise.all([world.execute('delete-account', { accountId: ANN }), ...notes]);
  expect(await world.query('get-account-quota', { accountId: ANN })).toEqual({ quota: null });
});
