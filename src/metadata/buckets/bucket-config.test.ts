import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { must } from '../../base/assert.ts';
import type { BucketConfigs } from '../../types/bucket-config.ts';
import type { BucketName } from '../../types/names.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { rowKey } from '../engine/row-keys.ts';
import { bucketConfigRow, bucketRow } from '../schema/keyspace.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket();
});

const get = async () => {
  const { bucket, configs } = await world.query('get-bucket', { bucketId: BUCKET });
  return { bucket: must(bucket, 'there is a bucket'), configs };
};
const set = (document: BucketConfigs['versioning']) =>
  world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'versioning', document });
const row = async () => {
  const { table, key } = bucketConfigRow(BUCKET, 'versioning');
  return (await world.kv.getMany('rows', [rowKey(0, table, key)]))[0];
};

test('a bucket that was never configured has no document', async () => {
  expect(await get()).toMatchObject({ bucket: { versioning: 'unversioned', cfgVersion: 1 }, configs: {} });
  expect(await row()).toBeUndefined();
});

test('a document is returned as it was put, with the bucket, whose row follows it and counts the change', async () => {
  expect(await set({ status: 'enabled' })).toMatchObject({
    bucket: { versioning: 'enabled', cfgVersion: 2 },
  });
  expect(await get()).toMatchObject({
    bucket: { versioning: 'enabled', cfgVersion: 2 },
    configs: { versioning: { status: 'enabled' } },
  });
});

test('fields that are absent in a versioning document stay unchanged', async () => {
  await set({ mfaDelete: 'disabled' });
  expect((await get()).bucket.versioning).toBe('unversioned');
  await set({ status: 'suspended' });
  expect((await get()).configs.versioning).toEqual({ status: 'suspended', mfaDelete: 'disabled' });
});

test('the same document again changes nothing, and gateways need not read again', async () => {
  await set({ status: 'enabled' });
  expect(await set({ status: 'enabled' })).toMatchObject({ kind: 'changed', bucket: { cfgVersion: 2 } });
  expect((await get()).bucket.cfgVersion).toBe(2);
});

test('it follows a rename', async () => {
  await set({ status: 'enabled' });
  const to = 'other' as BucketName;
  await world.execute('rename-bucket', { bucketId: BUCKET, from: BUCKET_NAME, to, nameEpoch: 1 });
  expect(await get()).toMatchObject({ bucket: { name: to }, configs: { versioning: { status: 'enabled' } } });
});

test('it is deleted with the bucket, and a deleted bucket takes no other', async () => {
  await set({ status: 'enabled' });
  expect(await row()).toBeDefined();
  await world.execute('delete-bucket', { bucketId: BUCKET });
  expect(await row()).toBeUndefined();
  expect(await set({ status: 'suspended' })).toEqual({ kind: 'no-such-bucket' });
});

test('a bucket from before documents had rows is read correctly', async () => {
  const { bucket } = await get();
  const { table, key } = bucketRow(BUCKET);
  const value = bucketCodec.encode({ ...bucket, versioning: 'suspended', mfaDelete: 'disabled' });
  await world.kv.commit([{ column: 'rows', key: rowKey(0, table, key), value }], { keep: true });
  world = await openMetadata({ kv: world.kv, clock: world.clock, seed: 2 });
  expect((await get()).configs.versioning).toEqual({ status: 'suspended', mfaDelete: 'disabled' });
  await set({ status: 'enabled' });
  expect((await get()).configs.versioning).toEqual({ status: 'enabled', mfaDelete: 'disabled' });
  expect((await get()).bucket.versioning).toBe('enabled');
});

test('a document can be deleted if its kind allows it, and the bucket’s row follows; others stay', async () => {
  await set({ status: 'enabled' });
  const record = (document: BucketConfigs['events'] | null) =>
    world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'events', document });
  await record({ consumers: ['feed'] });
  expect(await get()).toMatchObject({
    bucket: { events: ['feed'], versioning: 'enabled', cfgVersion: 3 },
    configs: { events: { consumers: ['feed'] }, versioning: { status: 'enabled' } },
  });
  await record(null);
  const { bucket, configs } = await get();
  expect(bucket).not.toHaveProperty('events');
  expect([bucket.cfgVersion, configs]).toEqual([4, { versioning: { status: 'enabled' } }]);
});

test('a policy follows a rename: its resources name the bucket by its new name', async () => {
  const text = (name: string) =>
    `{"Statement": {"Resource": "arn:aws:s3:::${name}/*", "Sid": "${BUCKET_NAME}"}}`;
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'policy',
    document: { text: text(BUCKET_NAME) },
  });
  const to = 'other' as BucketName;
  const rename = (nameEpoch: number, from: BucketName) =>
    world.execute('rename-bucket', { bucketId: BUCKET, from, to, nameEpoch });
  // A refused rename leaves it.
  expect(await rename(1, 'wrong' as BucketName)).toMatchObject({ kind: 'refused' });
  expect((await get()).configs.policy).toEqual({ text: text(BUCKET_NAME) });
  expect(await rename(2, BUCKET_NAME)).toMatchObject({ kind: 'renamed' });
  expect((await get()).configs.policy).toEqual({ text: text(to) });
});
