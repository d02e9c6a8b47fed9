// service 4.2: a copy links to the original data, at any size up to 5 TB. Its cost does not depend on the size: an object
// of 5 TiB, whose parts are rows without bytes, is copied like one of 1 MiB.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { etagOf, type NewData, OWNER } from '../../tests/support/metadata/metadata-shards.ts';
import { type ObjectWorld, openObjectWorld } from '../../tests/support/objects/object-world.ts';
import { packPlain } from '../base/record-codec.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';
import type { ObjectKey } from '../types/names.ts';

const MiB = 1024 * 1024;
const KEY = 'large' as ObjectKey;
const PARTS = LIMITS.objectBytesMax / LIMITS.partBytesMax;
const ROUNDS = 40;

/** Metadata calls of a copy, with the size of each request. */
const asked: [name: string, sizeBytes: number][] = [];
const intercept = (metadata: MetadataPort): MetadataPort => ({
  shardCount: metadata.shardCount,
  query: (envelope, name, query) => {
    asked.push([name, packPlain(query).length]);
    return metadata.query(envelope, name, query);
  },
  execute: (envelope, name, command) => {
    asked.push([name, packPlain(command).length]);
    return metadata.execute(envelope, name, command);
  },
});

test('copies 5 TiB in 1,024 parts with the calls of 1 MiB, within the shard and into another', async () => {
  const world = await openObjectWorld({ intercept });
  await world.put('small', randomBytes(MiB));
  await makeLarge(world);
  const { version } = await world.find(KEY);
  expect([version.sizeBytes, version.manifest.kind]).toEqual([LIMITS.objectBytesMax, 'paged']);
  for (const shard of [0, 1]) {
    const bucket = world.bucket(shard);
    const tookMs: Record<string, number[]> = { small: [], large: [] };
    const calls: Record<string, typeof asked> = {};
    for (let round = 0; round < ROUNDS; round++) {
      for (const [key, took] of Object.entries(tookMs)) {
        const found = await world.find(key);
        const source = { bucket: world.bucket(), key: key as ObjectKey, found };
        asked.length = 0;
        const startedAt = performance.now();
        await world.copy(key, `copy of ${key}`, { bucket, source });
        took.push(performance.now() - startedAt);
        calls[key] = [...asked];
      }
    }
    const names = (key: string) => calls[key]?.map(([name]) => name);
    expect(names('large')).toEqual(names('small'));
    const bytes = (key: string) => calls[key]?.reduce((sum, [, sizeBytes]) => sum + sizeBytes, 0) ?? 0;
    expect(bytes('large'), 'four pages instead of two chunks').toBeLessThan(2 * bytes('small'));
    // Generous, for machines that are busy.
    expect(median(tookMs.large)).toBeLessThan(3 * median(tookMs.small) + 1);
    const copied = await world.find('copy of large', { bucket });
    expect(copied.version).toMatchObject({ etag: version.etag, sizeBytes: LIMITS.objectBytesMax });
  }
});

/** Under the key of the small object, which the store can open. */
async function makeLarge(world: ObjectWorld): Promise<void> {
  const { metadata, bucket } = world;
  const { bucketId } = bucket().believed;
  const { kek, sealedHeaders } = (await world.find('small')).version;
  if (kek === undefined || sealedHeaders === undefined) throw new Error('an object has a key');
  const upload = { key: KEY, initiator: OWNER, owner: OWNER, kek, sealedHeaders };
  const begun = await metadata.execute('create-upload', { bucketId, upload });
  if (begun.kind !== 'created') throw new Error(begun.kind);
  const { uploadId } = begun.upload;
  const parts: { partNumber: number; etag: string }[] = [];
  for (let partNumber = 1; partNumber <= PARTS; partNumber++) {
    const data: NewData = metadata.newData({ sizeBytes: LIMITS.partBytesMax });
    const { sizeBytes, uses } = data;
    const segments = [{ use: 0, offsetBytes: 0, sizeBytes }];
    const etag = etagOf(`part ${partNumber}`);
    const part = { partNumber, sizeBytes, etag, uses, segments };
    await metadata.execute('commit-part', { bucketId, key: KEY, uploadId, part, data: data.grant });
    parts.push({ partNumber, etag });
  }
  const outcome = await metadata.execute('complete-upload', { bucketId, key: KEY, uploadId, parts });
  expect(outcome.kind).toBe('committed');
}

function median(values: readonly number[] = []): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
