// A composition of many parts has pages of its own, which a copy shares: its data counts for the buckets with links to the
// pages, wherever it was composed (service 4.2, compose rule 6).
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { type FsckWorld, openFsckWorld } from '../../../tests/support/fsck/fsck-world.ts';
import { runJobs } from '../../../tests/support/metadata/lives.ts';
import { OWNER } from '../../../tests/support/metadata/metadata-shards.ts';
import { uploadCopies } from '../../../tests/support/objects/object-uploads.ts';
import { type ComposedPlace, readComposed } from '../../metadata/blobs/read-composed.ts';
import type { BucketTarget } from '../../objects/object-store.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, BucketName, ObjectKey } from '../../types/names.ts';

const BYTES = LIMITS.partBytesMin;
const MINUTE = 60_000;
const ROUNDS = 6;

async function compose(world: FsckWorld, bucket: BucketTarget, from: string, to: string): Promise<void> {
  const components = [{ bucket, key: from as ObjectKey, found: await world.find(from, { bucket }) }];
  const target = { bucket, key: to as ObjectKey, owner: OWNER };
  await world.store.composeObject({ calls: world.calls, components, ...target });
}

/** Erases everything that has lost its last link. */
async function settle(world: FsckWorld): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    await runJobs(world);
    world.metadata.clock.advance(11 * MINUTE);
  }
}

/** By the bucket's name. */
async function told({ metadata }: FsckWorld): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (let place: ComposedPlace | undefined = { shard: 0 }; place !== undefined; ) {
    const { buckets, missingShard, next } = await readComposed(metadata.shards, place);
    if (missingShard !== undefined) throw new Error(`shard ${missingShard}`);
    for (const { name, sizeBytes } of buckets) sums[name] = (sums[name] ?? 0) + sizeBytes;
    place = next;
  }
  return sums;
}

/** Another bucket of the first shard. */
async function neighbour(world: FsckWorld): Promise<BucketTarget> {
  const [bucketId, name] = ['b0000000000000ff' as BucketId, 'neighbour' as BucketName];
  const created = await world.metadata.execute('create-bucket', { bucketId, name, owner: OWNER });
  if (created.kind !== 'created') throw new Error(created.kind);
  return { homeShard: 0, believed: { bucketId, name, cfgVersion: created.bucket.cfgVersion } };
}

/** An object of more parts than a version has in its row; all of them are the same bytes, of the first shard. */
async function putParts(world: FsckWorld): Promise<void> {
  await world.put('one', randomBytes(BYTES));
  const range = { offsetBytes: 0, sizeBytes: BYTES };
  const ranges = Array(LIMITS.manifestSegmentsInlineMax + 1).fill(range);
  await uploadCopies(world, { from: 'one', to: 'parts', ranges });
}

test('data counts for its composition, then for the copies that are left, in its shard and in another one', async () => {
  const world = await openFsckWorld({ isEmpty: true });
  const beside = await neighbour(world);
  await putParts(world);
  await compose(world, world.bucket(), 'parts', 'whole');
  await world.copy('whole', 'copy', { bucket: beside });
  await world.copy('whole', 'copy', { bucket: world.bucket(1) });
  await world.remove('parts');
  await settle(world);
  expect(await told(world), 'the object itself is there').toEqual({});
  await world.remove('one');
  await settle(world);
  expect(await told(world)).toEqual({ 'bucket-0': BYTES });
  await world.remove('whole');
  await settle(world);
  expect(await told(world)).toEqual({ neighbour: BYTES });
  await world.remove('copy', { bucket: beside });
  await settle(world);
  expect(await told(world)).toEqual({ 'bucket-1': BYTES });
  await world.remove('copy', { bucket: world.bucket(1) });
  await settle(world);
  expect(await told(world)).toEqual({});
});

test('data of a third shard', async () => {
  const world = await openFsckWorld({ isEmpty: true });
  const [first, second, third] = [world.bucket(0), world.bucket(1), world.bucket(2)];
  await putParts(world);
  await world.copy('parts', 'parts', { bucket: second });
  await compose(world, second, 'parts', 'whole');
  await world.copy('whole', 'copy', { fromBucket: second, bucket: third });
  for (const key of ['one', 'parts']) await world.remove(key, { bucket: first });
  await world.remove('parts', { bucket: second });
  await settle(world);
  expect(await told(world)).toEqual({ 'bucket-1': BYTES });
  await world.remove('whole', { bucket: second });
  await settle(world);
  expect(await told(world)).toEqual({ 'bucket-2': BYTES });
  expect((await world.fsck()).findings).toEqual([]);
  await world.remove('copy', { bucket: third });
  await settle(world);
  expect(await told(world)).toEqual({});
});
