// What a deleted account has left goes, but for what is protected, and that goes when it is due.
import { beforeEach, expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { runUntilIdle } from '../../../tests/support/metadata/run-worker.ts';
import { must } from '../../base/assert.ts';
import type { Worker } from '../../ports/worker.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import { identityKeys } from '../../types/records/identity-records.ts';
import { createBucketEmptier } from '../buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../jobs/deliver-outbox.ts';
import { createAccountRemover } from './remove-accounts-worker.ts';

const ANN = '000000000007' as AccountId;
const DAY = 24 * 3600_000;
const LOCKED = { retention: { mode: 'COMPLIANCE' as const } };

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
  await makeAccount('ann', ANN);
});

function makeAccount(name: string, accountId: AccountId) {
  const account = { accountId, name, email: `${name}@example.com`, canonicalId: accountId.padEnd(64, '0') };
  const limits = { state: 'paid' as const, bucketsMax: 1000, isRoot: false };
  const accessKey = { accessKey: `AK${name}`, sealedSecret: new Uint8Array(8) as never };
  return world.execute('create-account', { account: { ...account, ...limits }, accessKey });
}

async function makeBucket(name: string): Promise<{ bucketId: BucketId; shard: number }> {
  const owner = ANN;
  const reserved = await world.execute('reserve-name', { name: name as BucketName, owner });
  if (reserved.kind !== 'reserved') throw new Error(reserved.kind);
  const { bucketId, homeShard: shard } = reserved;
  await world.execute('create-bucket', { bucketId, name: name as BucketName, owner }, shard);
  await world.execute('activate-name', { name: name as BucketName, bucketId });
  return { bucketId, shard };
}

async function lockBucket({ bucketId, shard }: { bucketId: BucketId; shard: number }) {
  const versioning = { kind: 'versioning', document: { status: 'enabled' } } as const;
  await world.execute('set-bucket-config', { bucketId, ...versioning }, shard);
  await world.execute('set-bucket-config', { bucketId, kind: 'objectLock', document: {} }, shard);
}

async function put(
  { bucketId, shard }: { bucketId: BucketId; shard: number },
  key: string,
  keptDays?: number,
): Promise<void> {
  const protection =
    keptDays === undefined
      ? undefined
      : { retention: { ...LOCKED.retention, untilMs: world.clock.wallMs() + keptDays * DAY } };
  const data = world.newData({ homeShard: shard });
  await world.put(key, { bucketId, data, version: { owner: ANN, ...(protection && { protection }) } });
}

function workers(): Worker[] {
  const { shards: metadata, clock } = world;
  const parts = { metadata, shards: () => [0], clock };
  const nothing = () => {};
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  return [
    createAccountRemover(parts),
    createOutboxDelivery({ ...parts, log } as never),
    createBucketEmptier(parts),
  ];
}

/** Until the account and its removal are gone, or wait for a time. */
async function run(): Promise<void> {
  for (let round = 0; round < 10; round++) {
    for (const worker of workers()) await runUntilIdle(worker);
    world.clock.advance(2000);
  }
}

const removal = async () => (await world.query('get-account-removal', { accountId: ANN })).removal;
const account = async () => (await world.query('get-account', { accountId: ANN })).account;

test('the keys are refused at once, then buckets and users go; the name is free', async () => {
  const buckets = [await makeBucket('first'), await makeBucket('second')];
  for (const bucket of buckets) for (const key of ['a', 'b']) await put(bucket, key);
  const key = identityKeys.mfaDevice('left');
  const device = { kind: 'mfa-device', name: 'left', path: '/', tags: [], createdAtMs: 1 } as never;
  const change = { accountId: ANN, ifRevision: 0, rows: [{ key, record: device }], isSeen: false };
  await world.execute('change-identities', change);
  const deleted = await world.execute('delete-account', { accountId: ANN, withBuckets: true });
  expect(deleted).toMatchObject({ kind: 'deleted', revokedSeq: expect.any(Number) });
  expect(await world.query('get-access-key', { accessKey: 'AKann' })).toEqual({ kind: 'unknown' });
  expect(await world.execute('set-account', { accountId: ANN, changes: { state: 'paid' } })).toMatchObject({
    kind: 'no-such-account',
  });
  // Others may have its name and its address before its data is gone.
  expect((await makeAccount('ann', '000000000008' as AccountId)).kind).toBe('created');
  await run();
  expect(await account()).toBeNull();
  expect(await removal()).toBeNull();
  const query = { accountId: ANN, ranges: [{ prefix: '', limit: 10 }] };
  expect((await world.query('read-identities', query)).ranges).toEqual([[]]);
  for (const { bucketId, shard } of buckets)
    expect(await world.query('count-usage', { bucketId }, shard)).toMatchObject({ objectCount: 0 });
});

test('what is protected stays, says until when, and goes when it is due', async () => {
  const locked = await makeBucket('locked');
  const open = await makeBucket('open');
  await lockBucket(locked);
  await put(locked, 'kept', 30);
  await put(locked, 'free');
  await put(locked, 'free');
  await put(open, 'a');
  const untilMs = world.clock.wallMs() + 30 * DAY;
  await world.execute('delete-account', { accountId: ANN, withBuckets: true });
  await run();
  const left = must(await removal(), 'something is left');
  expect(left.kept).toEqual([{ name: 'locked', versionCount: 1, untilMs: expect.any(Number) }]);
  expect(Math.abs(must(left.kept[0]?.untilMs, 'it ends') - untilMs)).toBeLessThan(60_000);
  expect(left).toMatchObject({ removedBucketCount: 1, removedVersionCount: 2, keptBucketCount: 1 });
  expect(left.nextAtMs).toBeGreaterThan(world.clock.wallMs());
  expect(await account()).toMatchObject({ bucketCount: 1, deletedAtMs: expect.any(Number) });
  const { bucketId, shard } = locked;
  expect(await world.query('count-usage', { bucketId }, shard)).toMatchObject({ objectCount: 1 });
  for (let day = 0; day < 31; day++) {
    world.clock.advance(DAY);
    await run();
  }
  expect(await removal()).toBeNull();
  expect(await account()).toBeNull();
  expect(await world.query('count-usage', { bucketId }, shard)).toMatchObject({ objectCount: 0 });
});

test('a hold keeps a version until somebody ends it', async () => {
  const held = await makeBucket('held');
  await lockBucket(held);
  const data = world.newData({ homeShard: held.shard });
  await world.put('k', {
    bucketId: held.bucketId,
    data,
    version: { owner: ANN, protection: { legalHold: true } },
  });
  await world.execute('delete-account', { accountId: ANN, withBuckets: true });
  await run();
  expect((await removal())?.kept).toEqual([{ name: 'held', versionCount: 1 }]);
});

test('another node goes on where the first one was', async () => {
  const locked = await makeBucket('locked');
  await lockBucket(locked);
  await put(locked, 'kept', 30);
  for (let at = 0; at < 1500; at++) await put(locked, `k${at}`);
  await world.execute('delete-account', { accountId: ANN, withBuckets: true });
  const within = async () => (await removal())?.pass?.within;
  const signal = new AbortController().signal;
  const first = must(workers()[0], 'the remover is the first');
  while ((await within())?.after === undefined) await first.work(signal);
  const place = await within();
  expect(place?.removedCount).toBeGreaterThan(0);
  // Two who go on with it at once: each note counts once.
  const [one, two] = [must(workers()[0], ''), must(workers()[0], '')];
  await Promise.all([one.work(signal), two.work(signal)]);
  await run();
  expect(await removal()).toMatchObject({
    removedVersionCount: 1500,
    kept: [{ name: 'locked', versionCount: 1 }],
  });
});

test('without buckets its identities are forgotten all the same', async () => {
  await world.execute('delete-account', { accountId: ANN });
  expect(await removal()).not.toBeNull();
  await run();
  expect(await removal()).toBeNull();
});
