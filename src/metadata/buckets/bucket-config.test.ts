import { beforeEach, describe, expect, test } from 'vitest';
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

test('only what is asked for is answered, and nothing of what takes more than is wanted', async () => {
  await set({ status: 'enabled' });
  const policy = { text: 'x'.repeat(1000) };
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'policy', document: policy });
  const ask = async (query: object) => {
    const {
      bucket,
      configs,
      isLarge = false,
    } = await world.query('get-bucket', {
      bucketId: BUCKET,
      ...query,
    });
    return [bucket?.bucketId, Object.keys(configs).sort(), isLarge];
  };
  expect(await ask({})).toEqual([BUCKET, ['policy', 'versioning'], false]);
  expect(await ask({ kinds: ['versioning', 'acl'] })).toEqual([BUCKET, ['versioning'], false]);
  expect(await ask({ kinds: [] })).toEqual([BUCKET, [], false]);
  expect(await ask({ bytesMax: 2000 })).toEqual([BUCKET, ['policy', 'versioning'], false]);
  expect(await ask({ bytesMax: 1000 })).toEqual([BUCKET, [], true]);
  expect(await ask({ bytesMax: 1000, kinds: ['versioning'] })).toEqual([BUCKET, ['versioning'], false]);
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

test('a bucket whose policy would become too long keeps its name and its policy', async () => {
  const Resource = Array.from({ length: 195 }, (_, at) => `*${'?'.repeat(95)}${at}`);
  const document = { text: JSON.stringify({ Statement: [{ Resource }] }) };
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'policy', document });
  const rename = (nameEpoch: number) =>
    world.execute('rename-bucket', {
      bucketId: BUCKET,
      from: BUCKET_NAME,
      to: `${'a'.repeat(62)}b` as BucketName,
      nameEpoch,
    });
  // However often it is asked for: the first answer may have been lost.
  for (const _ of [1, 2, 3]) expect(await rename(1)).toEqual({ kind: 'refused', because: 'policy-too-long' });
  expect(await get()).toMatchObject({
    bucket: { name: BUCKET_NAME, nameEpoch: 2 },
    configs: { policy: document },
  });
  // Once another policy is there the repetition is refused only because it is late.
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'policy', document: null });
  expect(await rename(1)).toEqual({ kind: 'refused' });
  expect((await get()).bucket).toMatchObject({ name: BUCKET_NAME, nameEpoch: 2 });
});

describe('compliance settings', () => {
  const DAY = 24 * 3600 * 1000;
  const open = { isEnabled: true, retentionDays: 2, conditionalHold: true, deleteAfterRetention: false };
  const put = (document: BucketConfigs['compliance']) =>
    world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'compliance', document });
  const unlock = (reason: string) =>
    world.execute('unlock-compliance', { bucketId: BUCKET, by: 'arn:aws:iam::1:root', reason });
  const refused = (setting: string) => ({ kind: 'refused', because: `locked-${setting}` });

  test('from the time of their lock on they are never reduced, and may be extended', async () => {
    const locked = { ...open, lockAtMs: world.clock.wallMs() + DAY };
    expect(await put(locked)).toMatchObject({ kind: 'changed' });
    expect(await put({ ...locked, retentionDays: 1 })).toMatchObject({ kind: 'changed' });
    expect(await put(locked)).toMatchObject({ kind: 'changed' });
    world.clock.advance(DAY);
    expect(await put({ ...locked, isEnabled: false })).toEqual(refused('status'));
    expect(await put({ ...locked, retentionDays: 1 })).toEqual(refused('retention-days'));
    expect(await put(open)).toEqual(refused('lock-time'));
    expect(await put({ ...locked, lockAtMs: locked.lockAtMs + 1 })).toEqual(refused('lock-time'));
    expect((await get()).configs.compliance).toEqual(locked);
    const extended = { ...locked, retentionDays: 3, conditionalHold: false, deleteAfterRetention: true };
    expect(await put(extended)).toMatchObject({ kind: 'changed' });
    expect(await get()).toMatchObject({
      bucket: { compliance: extended },
      configs: { compliance: extended },
    });
  });

  test('the operator ends their lock, which is recorded, and stays so whatever is put', async () => {
    const lockAtMs = world.clock.wallMs();
    expect(await unlock('none')).toEqual({ kind: 'not-locked' });
    await put({ ...open, lockAtMs });
    const first = { atMs: lockAtMs + 5, by: 'arn:aws:iam::1:root', reason: 'wrong bucket' };
    world.clock.advance(5);
    const { cfgVersion } = (await get()).bucket;
    expect(await unlock('wrong bucket')).toMatchObject({ kind: 'unlocked', unlocks: [first] });
    expect(await get()).toMatchObject({
      bucket: { cfgVersion: cfgVersion + 1, compliance: open },
      configs: { compliance: { ...open, unlocks: [first] } },
    });
    expect((await get()).configs.compliance).not.toHaveProperty('lockAtMs');
    expect(await unlock('again')).toEqual({ kind: 'not-locked' });
    expect(await put({ ...open, isEnabled: false, lockAtMs })).toMatchObject({ kind: 'changed' });
    await put({ ...open, lockAtMs });
    expect(await unlock('again')).toMatchObject({ kind: 'unlocked', unlocks: [first, { reason: 'again' }] });
  });

  test('of the unlocks the last hundred are kept', async () => {
    for (let number = 1; number <= 101; number++) {
      await put({ ...open, lockAtMs: world.clock.wallMs() });
      await unlock(`number ${number}`);
    }
    const { unlocks = [] } = (await get()).configs.compliance ?? {};
    expect([unlocks.length, unlocks[0]?.reason, unlocks.at(-1)?.reason]).toEqual([
      100,
      'number 2',
      'number 101',
    ]);
  });

  test('they do not go with object lock, whichever is first', async () => {
    const lock = () =>
      world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'objectLock', document: {} });
    await set({ status: 'enabled' });
    await put(open);
    expect(await lock()).toEqual({ kind: 'refused', because: 'has-compliance' });
    await put({ ...open, isEnabled: false });
    expect(await lock()).toMatchObject({ kind: 'changed' });
    expect(await put(open)).toEqual({ kind: 'refused', because: 'has-object-lock' });
    expect(await put({ ...open, isEnabled: false, retentionDays: 0 })).toMatchObject({ kind: 'changed' });
  });

  test('they wait for a rename of a key in several entries to end, and need not wait to be off', async () => {
    const { bucket } = await get();
    const { table, key } = bucketRow(BUCKET);
    const value = bucketCodec.encode({ ...bucket, keyRenames: [] });
    await world.kv.commit([{ column: 'rows', key: rowKey(0, table, key), value }], { keep: true });
    world = await openMetadata({ kv: world.kv, clock: world.clock, seed: 2 });
    expect(await put(open)).toEqual({ kind: 'refused', because: 'keys-are-moving' });
    expect(await put({ ...open, isEnabled: false })).toMatchObject({ kind: 'changed' });
  });

  test('a bucket that is gone has none to unlock', async () => {
    await put({ ...open, lockAtMs: world.clock.wallMs() });
    await world.execute('delete-bucket', { bucketId: BUCKET });
    expect(await unlock('late')).toEqual({ kind: 'no-such-bucket' });
  });
});
