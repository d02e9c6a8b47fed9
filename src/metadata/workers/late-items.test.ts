// Work of the server on things of several owners, while a client's command holds one of them: the others are done, nothing of
// theirs is held, and what was held is done once it is let go.
import { expect, test } from 'vitest';
import { openHeldWorld } from '../../../tests/support/metadata/hold-lock.ts';
import { BUCKET, beginUpload, OWNER } from '../../../tests/support/metadata/metadata-shards.ts';
import { must } from '../../base/assert.ts';
import type { Worker } from '../../ports/worker.ts';
import { DEFAULT_METERING } from '../../types/metered.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import { DAY_MS } from '../../types/usage.ts';
import { createDeletionMarker } from '../blobs/mark-blobs-worker.ts';
import { LOCK } from '../schema/define-command.ts';
import { createUploadExpiry } from '../uploads/expire-uploads-worker.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from '../usage/close-usage-worker.ts';

const shards = () => [0];

async function rounds(worker: Worker, count: number): Promise<void> {
  for (let round = 0; round < count; round++) await worker.work(new AbortController().signal);
}

test('a blob that is held delays the marking of no other', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const datas = [world.newData(), world.newData()];
  const [held, free] = datas.map(({ uses }) => must(uses[0], 'a blob').blobId);
  for (const [at, data] of datas.entries()) {
    await world.put(`k${at}`, { data });
    await world.remove(`k${at}`);
  }
  const blobs = [must(held, 'one'), must(free, 'another')];
  const holding = hold(LOCK.blob(must(held, 'one')));
  await rounds(createDeletionMarker({ metadata: world.shards, shards }), 1);
  expect(await world.stateOf(...blobs)).toEqual(['live', 'condemned']);
  letGo();
  await holding;
  await expect.poll(() => world.stateOf(...blobs)).toEqual(['condemned', 'condemned']);
});

test('an upload that is held delays the end of no other', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const held = await beginUpload(world, 'held');
  await beginUpload(world, 'free');
  world.clock.advance(2 * DAY_MS);
  const query = { bucketId: BUCKET, prefix: '', max: 10 };
  const open = async () => (await world.query('list-uploads', query)).uploads.map(({ key }) => key);
  const holding = hold(LOCK.upload(held));
  const timeJumps = { mayRemoveByAge: () => true };
  await rounds(createUploadExpiry({ metadata: world.shards, shards, uploadKeptMs: DAY_MS, timeJumps }), 2);
  expect(await open()).toEqual(['held']);
  letGo();
  await holding;
  await expect.poll(open).toEqual([]);
});

test('a bucket that is held delays the closing of no other', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const other = { bucketId: 'b000000000000002' as BucketId, accountId: '000000000002' as AccountId };
  const { bucketId, accountId: owner } = other;
  await world.execute('create-bucket', { bucketId, name: 'others' as BucketName, owner });
  const throughDay = Math.floor(world.clock.wallMs() / DAY_MS);
  world.clock.advance(DAY_MS + CLOSED_AFTER_MS);
  const open = async () => (await world.query('list-open-usage', { throughDay, limit: 10 })).buckets;
  const holding = hold(LOCK.usage(BUCKET));
  const { shards: metadata, clock } = world;
  const telemetry = { gauge() {} };
  const closer = createUsageCloser({ metadata, shards, metering: DEFAULT_METERING, clock, telemetry });
  await rounds(closer, 6);
  expect(await open()).toEqual([{ bucketId: BUCKET, accountId: OWNER }]);
  letGo();
  await holding;
  await expect.poll(open).toEqual([]);
});
