// fsck of compositions and of objects that were appended to: sound at each moment of their life, down to the last page.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { currentRow } from '../../src/metadata/schema/keyspace.ts';
import type { BucketId, ObjectKey } from '../../src/types/names.ts';
import { encodeVersion } from '../../src/types/records/version-record.ts';
import { type FsckWorld, openFsckWorld } from '../support/fsck/fsck-world.ts';
import { OWNER } from '../support/metadata/metadata-shards.ts';
import { sourceOf } from '../support/objects/object-world.ts';

async function compose(world: FsckWorld, key: string, names: readonly string[], shard = 0) {
  const bucket = world.bucket(shard);
  const components = await Promise.all(
    names.map(async (name) => ({
      bucket,
      key: name as ObjectKey,
      found: await world.find(name, { bucket }),
    })),
  );
  await world.store.composeObject({
    calls: world.calls,
    components,
    bucket,
    key: key as ObjectKey,
    owner: OWNER,
  });
}

async function append(world: FsckWorld, key: string, count: number, shard = 0): Promise<void> {
  for (let at = 0; at < count; at++) {
    await world.store.appendObject({
      calls: world.calls,
      bucket: world.bucket(shard),
      key: key as ObjectKey,
      body: sourceOf(randomBytes(100)),
      signal: new AbortController().signal,
    });
  }
}

async function remove(
  world: FsckWorld,
  bucketId: BucketId,
  keys: readonly string[],
  shard = 0,
): Promise<void> {
  const items = keys.map((key) => ({ key: key as ObjectKey }));
  await world.metadata.execute('delete-versions', { bucketId, owner: OWNER, items }, shard);
}

test('nothing is found, whatever was composed, appended, compacted, copied and deleted', async () => {
  const world = await openFsckWorld();
  const sound = async (when: string) =>
    expect((await world.fsck({ readData: true })).findings, when).toEqual([]);
  await compose(world, 'whole', ['inline', 'chunked', 'inline']);
  await compose(world, 'from elsewhere', ['from 0', 'inline'], 1);
  await compose(world, 'pages', ['paged', 'whole', 'paged']);
  await sound('composed');
  for (const key of ['paged', 'inline', 'whole']) await append(world, key, 5);
  await append(world, 'from 0', 3, 1);
  await sound('appended');
  await world.copy('paged', 'copied', { bucket: world.bucket(2) });
  await append(world, 'paged', 20);
  await world.store.compactionIdle();
  await sound('folded');
  const { bucketId } = world.bucket().believed;
  await remove(world, bucketId, ['paged', 'pages', 'chunked', 'inline']);
  for (const shard of [0, 1, 2]) await world.metadata.markUnlinked(shard);
  await sound('deleted');
  await remove(world, bucketId, ['whole', 'beside', 'five']);
  for (const shard of [0, 1, 2]) await world.metadata.markUnlinked(shard);
  await sound('deleted more');
});

test('a tail that does not fit its object is found', async () => {
  const world = await openFsckWorld();
  await append(world, 'paged', 2);
  const { version, bucketId, key } = await world.seen('paged');
  if (version.manifest.kind !== 'paged') throw new Error(version.manifest.kind);
  const tail = must(version.manifest.tail, 'it was appended to');
  const shorter = { ...version.manifest, tail: { ...tail, segments: tail.segments.slice(1) } };
  await world.plant(currentRow(bucketId, key), encodeVersion({ ...version, manifest: shorter }));
  const { findings } = await world.fsck();
  expect(findings.map(({ kind }) => kind)).toEqual(['manifest-wrong']);
});
