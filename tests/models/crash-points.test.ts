// What a crash leaves behind is freed by the background jobs, whatever the point: each operation, and the background
// itself, is cut short before each of its commits in turn; the process starts again a day later; the jobs run until
// nothing waits; then fsck finds nothing, in rows, chunks and bodies, without its help (R24 to R33, R41, R42).
import { expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { type ClosingCalls, driveClosing } from '../../src/metadata/buckets/drive-closing.ts';
import type { PartTarget } from '../../src/objects/object-store.ts';
import type { BucketId, BucketName, ObjectKey } from '../../src/types/names.ts';
import type { FsckWorld } from '../support/fsck/fsck-world.ts';
import { bringToRest, cutShort } from '../support/metadata/crash-points.ts';
import { runJobs } from '../support/metadata/lives.ts';
import { OWNER } from '../support/metadata/metadata-shards.ts';
import { beginUpload, completeUpload } from '../support/objects/object-uploads.ts';
import { CHUNK_BYTES, sourceOf } from '../support/objects/object-world.ts';

const MINUTE = 60_000;
const chunks = (count: number, letter: string) => Buffer.alloc(count * CHUNK_BYTES - 5, letter);

async function remove(world: FsckWorld, key: string, shard = 0): Promise<void> {
  const { bucketId } = world.bucket(shard).believed;
  const items = [{ key: key as ObjectKey }];
  await world.metadata.execute('delete-versions', { bucketId, owner: OWNER, items }, shard);
}

async function putPart(world: FsckWorld, target: PartTarget, letter: string) {
  return world.store.putPart({ ...target, body: sourceOf(chunks(1, letter)) });
}

const PASSING = 'passing' as BucketName;
const RENAMED = 'renamed' as BucketName;

async function makeBucket({ metadata }: FsckWorld): Promise<{ bucketId: BucketId; homeShard: number }> {
  const name = PASSING;
  const reserved = await metadata.execute('reserve-name', { name, owner: OWNER });
  if (reserved.kind !== 'reserved') throw new Error(reserved.kind);
  const { bucketId, homeShard } = reserved;
  await metadata.execute('create-bucket', { bucketId, name, owner: OWNER }, homeShard);
  await metadata.execute('activate-name', { name, bucketId });
  return { bucketId, homeShard };
}

/** Makes a bucket as a gateway does, and deletes it again with an upload in it. */
async function passBucket(world: FsckWorld): Promise<void> {
  const { metadata } = world;
  const name = PASSING;
  const { bucketId, homeShard } = await makeBucket(world);
  const believed = { bucketId, name, cfgVersion: 1 };
  const part = await beginUpload(world, 'left', { bucket: { homeShard, believed } });
  await putPart(world, part(1), 'l');
  await metadata.execute('delete-bucket', { bucketId }, homeShard);
  await metadata.execute('forget-name', { name, bucketId, owner: OWNER });
}

async function renameTo(
  { metadata }: FsckWorld,
  bucket: { bucketId: BucketId; homeShard: number },
  [from, to]: readonly [BucketName, BucketName],
): Promise<void> {
  const { bucketId, homeShard } = bucket;
  const { nameEpoch } = must(
    (await metadata.query('get-bucket', { bucketId }, homeShard)).bucket,
    'a bucket',
  );
  const names = { bucketId, from, to };
  const begun = await metadata.execute('begin-rename', { ...names, nameEpoch });
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  const { kind: verdict } = await metadata.execute('rename-bucket', { ...names, nameEpoch }, homeShard);
  await metadata.execute('end-rename', { ...names, itemId: begun.itemId, verdict });
}

/** Away from its first name and back, with somebody else's bucket under that name between. */
async function renameBucket(world: FsckWorld): Promise<void> {
  const bucket = await makeBucket(world);
  await renameTo(world, bucket, [PASSING, RENAMED]);
  await passBucket(world);
  await renameTo(world, bucket, [RENAMED, PASSING]);
}

/** Each step of the two as late as may be: the name is forgotten before the rename has ended. */
async function renameAndDelete({ metadata, ...world }: FsckWorld): Promise<void> {
  const { bucketId, homeShard } = await makeBucket({ metadata, ...world });
  const names = { bucketId, from: PASSING, to: RENAMED };
  await metadata.execute('begin-rename', { ...names, nameEpoch: 1 });
  await metadata.execute('rename-bucket', { ...names, nameEpoch: 1 }, homeShard);
  await metadata.execute('delete-bucket', { bucketId }, homeShard);
  await metadata.execute('forget-name', { name: RENAMED, bucketId, owner: OWNER });
}

/** A bucket with objects of its own and copies from elsewhere, of which others have copies, and with an upload. */
async function forceDelete(world: FsckWorld): Promise<void> {
  const { bucketId, homeShard } = await makeBucket(world);
  const { execute, query } = world.metadata;
  const bucket = { homeShard, believed: { bucketId, name: PASSING, cfgVersion: 1 } };
  await world.put('own', chunks(1, 'o'), { bucket });
  await world.put('small', Buffer.alloc(10, 's'), { bucket });
  await world.copy('chunked', 'copy', { bucket });
  await world.copy('own', 'kept', { fromBucket: bucket });
  const part = await beginUpload(world, 'left', { bucket });
  await putPart(world, part(1), 'l');
  const closed = await execute('close-bucket', { bucketId }, homeShard);
  if (closed.kind !== 'closing') throw new Error(closed.kind);
  const calls: ClosingCalls = {
    look: (command) => query('find-protected', command, homeShard),
    step: (command) => execute('step-closing', command, homeShard),
  };
  expect((await driveClosing(calls, closed.job)).kind).toBe('deleted');
  await execute('forget-name', { name: PASSING, bucketId, owner: OWNER });
  // What is left, some of it at a time.
  await runJobs(world);
}

const OPERATIONS: [what: string, run: (world: FsckWorld) => Promise<unknown>][] = [
  ['PUT of chunks over chunks', (world) => world.put('chunked', chunks(2, 'n'))],
  ['PUT inline over chunks', (world) => world.put('chunked', Buffer.alloc(10, 'n'))],
  ['force delete of a bucket', forceDelete],
  ['copy within a shard', (world) => world.copy('chunked', 'inline')],
  ['copy across shards', (world) => world.copy('chunked', 'copied', { bucket: world.bucket(2) })],
  ['copy over a copy', (world) => world.copy('inline', 'copied', { bucket: world.bucket(1) })],
  ['copy of a copy', (world) => world.copy('copied', 'again', { fromBucket: world.bucket(1) })],
  ['delete', (world) => remove(world, 'chunked')],
  ['delete of a copy', (world) => remove(world, 'copied', 1)],
  ['a bucket that comes and goes', passBucket],
  ['a bucket that is renamed, and back', renameBucket],
  ['a bucket that is deleted while it is renamed', renameAndDelete],
  [
    'upload, a part replaced, one left out, completed',
    async (world) => {
      const part = await beginUpload(world, 'chunked');
      await putPart(world, part(1), 'a');
      const kept = await putPart(world, part(1), 'b');
      await putPart(world, part(2), 'c');
      await completeUpload(world, part(1), [kept]);
    },
  ],
  [
    'upload of a part copied from another shard, aborted',
    async (world) => {
      const bucket = world.bucket(1);
      const part = await beginUpload(world, 'upload', { bucket });
      const found = await world.find('chunked');
      const source = { bucket: world.bucket(), key: 'chunked' as ObjectKey, found };
      await world.store.copyPart({ ...part(1), source, range: { offsetBytes: 5, sizeBytes: CHUNK_BYTES } });
      await putPart(world, part(2), 'd');
      const { key, uploadId } = part(1).upload;
      await world.metadata.execute('abort-upload', { bucketId: bucket.believed.bucketId, key, uploadId }, 1);
    },
  ],
  [
    'the background itself',
    async (world) => {
      await remove(world, 'chunked');
      await remove(world, 'copied', 1);
      await passBucket(world);
      for (let round = 0; round < 3; round++) {
        world.metadata.clock.advance(11 * MINUTE);
        await runJobs(world);
      }
    },
  ],
];

async function setUp(world: FsckWorld): Promise<void> {
  await world.put('chunked', chunks(3, 'c'));
  await world.put('inline', Buffer.alloc(100, 'i'));
  await world.copy('chunked', 'copied', { bucket: world.bucket(1) });
}

test.each(OPERATIONS)('%s', async (_, run) => {
  let cutCount = 0;
  for (let isWhole = false; !isWhole; cutCount++) {
    const cut = await cutShort({ setUp, run, left: cutCount });
    await bringToRest(await cut.restart(), `cut before commit ${cutCount}`);
    ({ isWhole } = cut);
  }
  expect(cutCount).toBeGreaterThan(1);
});
