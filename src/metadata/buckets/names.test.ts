import { beforeEach, describe, expect, test } from 'vitest';
import { kek, type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import { NO_ORIGINALS } from '../../types/originals.ts';

const ANN = '000000000011' as AccountId;
const BOB = '000000000022' as AccountId;
const name = 'photos' as BucketName;
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

const reserve = (owner = ANN, bucket = name) => world.execute('reserve-name', { name: bucket, owner });
const activate = (bucketId: BucketId, bucket = name) =>
  world.execute('activate-name', { name: bucket, bucketId });
const forget = (bucketId: BucketId, bucket = name) =>
  world.execute('forget-name', { name: bucket, bucketId, owner: ANN });
const find = async () => (await world.query('find-name', { name })).record;
const bucketCount = async () => (await world.query('get-account', { accountId: ANN })).account?.bucketCount;
const listNames = async (query: object = {}) =>
  (await world.query('list-names', { owner: ANN, max: 10, ...query })).names.map(
    (item) => item.name as string,
  );

async function reserved(owner = ANN, bucket = name) {
  const outcome = await reserve(owner, bucket);
  if (outcome.kind !== 'reserved') throw new Error(outcome.kind);
  return outcome;
}

describe('R41: creating', () => {
  test('reserve, create, activate', async () => {
    const { bucketId, homeShard } = await reserved();
    expect(homeShard).toBeGreaterThan(0);
    expect(await find()).toMatchObject({ state: 'creating', bucketId, homeShard, owner: ANN });
    expect(await listNames()).toEqual([]);
    const created = await world.execute('create-bucket', { bucketId, name, owner: ANN }, homeShard);
    expect(created).toMatchObject({
      kind: 'created',
      bucket: { name, nameEpoch: 1, state: 'open', cfgVersion: 1 },
    });
    expect(await activate(bucketId)).toEqual({ kind: 'active' });
    expect(await activate(bucketId)).toEqual({ kind: 'active' });
    expect(await find()).toMatchObject({ state: 'active' });
    expect(await listNames()).toEqual([name]);
    expect(await bucketCount()).toBe(1);
    expect((await world.query('list-outbox', { limit: 9 })).items).toEqual([]);
  });

  test('while it is being created the owner gets the same id, others wait', async () => {
    const first = await reserved();
    expect(await reserve()).toEqual(first);
    expect(await reserve(BOB)).toEqual({ kind: 'in-progress' });
    expect(await bucketCount()).toBe(1);
  });

  test('39: an active name belongs to its owner, and is taken for others', async () => {
    const { bucketId } = await reserved();
    await activate(bucketId);
    expect(await reserve()).toMatchObject({ kind: 'owned-already', record: { bucketId } });
    expect(await reserve(BOB)).toEqual({ kind: 'taken' });
  });

  test('the outbox finishes what a gateway left', async () => {
    const { bucketId, homeShard } = await reserved();
    const { items } = await world.query('list-outbox', { limit: 9 });
    const record = { kind: 'create-bucket', homeShard, bucketId, name, owner: ANN };
    expect(items).toMatchObject([{ record }]);
  });

  test('no more buckets than allowed; a removed one makes room', async () => {
    const { bucketId } = await reserved();
    await reserved(ANN, 'b2' as BucketName);
    expect(await reserve(ANN, 'b3' as BucketName)).toEqual({ kind: 'too-many-buckets' });
    await forget(bucketId);
    expect(await reserve(ANN, 'b3' as BucketName)).toMatchObject({ kind: 'reserved' });
    expect(await bucketCount()).toBe(2);
  });

  test('of racing requests for one name one gets it', async () => {
    const outcomes = await Promise.all([reserve(ANN), reserve(BOB), reserve(BOB)]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['reserved', 'in-progress', 'in-progress']);
  });
});

describe('R42: deleting', () => {
  let bucketId: BucketId;
  let homeShard: number;
  beforeEach(async () => {
    ({ bucketId, homeShard } = await reserved());
    await world.execute('create-bucket', { bucketId, name, owner: ANN }, homeShard);
    await activate(bucketId);
  });
  const remove = () => world.execute('delete-bucket', { bucketId }, homeShard);

  test('the id stays deleted, the name is free', async () => {
    expect(await remove()).toMatchObject({ kind: 'deleted', bucket: { state: 'deleted' } });
    expect(await remove()).toEqual({ kind: 'no-such-bucket' });
    const again = await world.execute('create-bucket', { bucketId, name, owner: ANN }, homeShard);
    expect(again).toEqual({ kind: 'deleted-already' });
    const { items } = await world.query('list-outbox', { limit: 9 }, homeShard);
    expect(items).toMatchObject([{ record: { kind: 'forget-name', bucketId, name, owner: ANN } }]);
    expect(await forget(bucketId)).toEqual({ kind: 'forgotten' });
    expect(await find()).toBeNull();
    expect(await listNames()).toEqual([]);
    expect(await bucketCount()).toBe(0);
    const next = await reserved();
    expect(next.bucketId).not.toBe(bucketId);
    await forget(bucketId);
    expect(await find()).toMatchObject({ bucketId: next.bucketId });
    expect(await activate(bucketId)).toEqual({ kind: 'gone' });
  });

  test('R45: requests that believe in the bucket learn that it is gone', async () => {
    const bucket = { bucketId, name, cfgVersion: 1 };
    const ask = () => world.shards.query({ shard: homeShard, bucket }, 'get-bucket', { bucketId });
    expect(await ask()).toMatchObject({ kind: 'done' });
    await world.execute(
      'set-bucket-config',
      { bucketId, kind: 'versioning', document: { status: 'enabled' } },
      homeShard,
    );
    expect(await ask()).toMatchObject({
      kind: 'stale-bucket',
      bucket: { cfgVersion: 2, versioning: 'enabled' },
    });
    await remove();
    bucket.cfgVersion = 2;
    expect(await ask()).toMatchObject({ kind: 'stale-bucket', bucket: { state: 'deleted' } });
    bucket.bucketId = '0123456789abcdef' as BucketId;
    expect(await ask()).toMatchObject({ kind: 'stale-bucket', bucket: null });
  });

  test('a name that was never activated is removed with its outbox item', async () => {
    const second = await reserved(ANN, 'second' as BucketName);
    await forget(second.bucketId, 'second' as BucketName);
    expect((await world.query('list-outbox', { limit: 9 })).items).toEqual([]);
  });

  test.each(['current', 'marker', 'older'])('not while there is a version left: %s', async (kind) => {
    await world.execute(
      'set-bucket-config',
      { bucketId, kind: 'versioning', document: { status: 'enabled' } },
      homeShard,
    );
    const version = {
      sizeBytes: 0,
      etag: 'e'.repeat(32),
      owner: ANN,
      originals: NO_ORIGINALS,
      manifest: EMPTY,
    };
    const data = { births: [], links: [] };
    const commit = { bucketId, key: 'k' as never, version, data };
    if (kind !== 'marker') await world.execute('commit-version', commit, homeShard);
    const items = [{ key: 'k' as never }];
    if (kind !== 'current')
      await world.execute('delete-versions', { bucketId, owner: ANN, items }, homeShard);
    expect(await remove()).toEqual({ kind: 'not-empty' });
  });
});

const EMPTY = { kind: 'direct' as const, uses: [], segments: [], parts: [] };

test('the account’s list: prefix, pages', async () => {
  await world.execute('set-account', { accountId: ANN, changes: { bucketsMax: 10 } });
  for (const text of ['b2', 'a1', 'b1', 'b3']) {
    const { bucketId } = await reserved(ANN, text as BucketName);
    await activate(bucketId, text as BucketName);
  }
  expect(await listNames()).toEqual(['a1', 'b1', 'b2', 'b3']);
  expect(await listNames({ prefix: 'b', max: 2 })).toEqual(['b1', 'b2']);
  expect(await listNames({ prefix: 'b', after: 'b2', max: 2 })).toEqual(['b3']);
  expect(await listNames({ prefix: 'b', after: 'a1' })).toEqual(['b1', 'b2', 'b3']);
  expect(await world.query('list-names', { owner: ANN, max: 3 })).toMatchObject({ isTruncated: true });
  expect(await world.query('list-names', { owner: BOB, max: 3 })).toEqual({ names: [], isTruncated: false });
});
