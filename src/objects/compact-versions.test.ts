// Compaction where each append makes another version: as much is compacted as without versions, however appends and
// compactions interleave.
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { append, versioned } from '../../tests/support/objects/appends.ts';
import { dataAtRest } from '../../tests/support/objects/data-at-rest.ts';
import { type ObjectWorld, openObjectWorld } from '../../tests/support/objects/object-world.ts';
import { createManualClock } from '../../tests/support/run/simulated.ts';
import { must } from '../base/assert.ts';
import { CHUNK_COLUMNS } from '../chunks/disk/keyspace.ts';
import { SHARD_COLUMNS } from '../metadata/engine/shards.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import { createMemoryKv } from '../platform/memory/memory-kv.ts';
import type { CommandOf, MetadataPort } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';
import type { BlobId } from '../types/names.ts';
import { ownBody } from '../types/version.ts';
import type { BucketTarget } from './object-store.ts';

const KiB = 1024;
const FIRST_BYTES = 10;
/** Larger than an inline body here, so that each has a blob of its own. */
const PIECE_BYTES = 5000;

interface Grown {
  world: ObjectWorld;
  bucket: BucketTarget;
  /** The outcomes of compactions, and the sizes of those that were done. */
  answers: string[];
  compactedBytes: number[];
}

/**
 * A world with an object in a bucket with or without versions. `beforeCompaction`: runs between the read and the commit of a
 * compaction.
 */
async function grow(
  keeps: boolean,
  beforeCompaction?: (grown: Grown) => Promise<void>,
  keyring = createKeyring(),
): Promise<Grown> {
  const [answers, compactedBytes]: [string[], number[]] = [[], []];
  const intercept = (metadata: MetadataPort): MetadataPort => ({
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    execute: async (envelope, name, command) => {
      if (name !== 'fold-version') return metadata.execute(envelope, name, command);
      await beforeCompaction?.(grown);
      const reply = await metadata.execute(envelope, name, command);
      const { kind } = reply.kind === 'done' ? (reply.value as { kind: string }) : reply;
      answers.push(kind);
      if (kind === 'folded') compactedBytes.push((command as CommandOf<'fold-version'>).birth.use.sizeBytes);
      return reply;
    },
  });
  const stores = {
    kv: createMemoryKv(SHARD_COLUMNS),
    chunkKv: createMemoryKv(CHUNK_COLUMNS),
    keyring,
    clock: createManualClock(Date.parse('2024-01-01')),
  };
  const world = await openObjectWorld({ intercept, stores });
  const bucket = keeps ? await versioned(world) : world.bucket();
  const grown: Grown = { world, bucket, answers, compactedBytes };
  await world.put('k', randomBytes(FIRST_BYTES), { bucket });
  return grown;
}

async function appendMany({ world, bucket }: Grown, count: number, sizeBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < count; at++) {
    const piece = randomBytes(sizeBytes);
    pieces.push(piece);
    await append(world, 'k', piece, { bucket });
  }
  await world.store.compactionIdle();
  return Buffer.concat(pieces);
}

const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);
async function reportedBytes({ metadata }: ObjectWorld): Promise<number> {
  let bytes = 0;
  for (let after: BlobId | undefined; ; ) {
    const page = await metadata.query('count-composed-only', { limit: 1000, ...(after && { after }) });
    bytes += sum(page.buckets.map(({ sizeBytes }) => sizeBytes));
    after = page.next;
    if (after === undefined) return bytes;
  }
}
const segmentCount = async ({ world, bucket }: Grown) =>
  must(ownBody((await world.find('k', { bucket })).version.manifest), 'it has bytes').segments.length;

describe('appends in quick succession', () => {
  test.each([
    ['into blobs of several pieces', 512, KiB],
    ['each with a blob of its own', 200, PIECE_BYTES],
  ])('%s: the same is folded as where no version is kept', async (_what, count, sizeBytes) => {
    const [replaced, kept] = [await grow(false), await grow(true)];
    for (const grown of [replaced, kept]) await appendMany(grown, count, sizeBytes);
    expect(new Set(kept.answers)).toEqual(new Set(['folded']));
    expect(kept.compactedBytes.length).toBeLessThanOrEqual(replaced.compactedBytes.length + 1);
    expect(sum(kept.compactedBytes)).toBeLessThan(1.2 * sum(replaced.compactedBytes));
    expect(await segmentCount(kept)).toBeLessThan(2 * LIMITS.compactPiecesMin);
    // Blobs that live only because of appends, each byte once; the first ones where no object begins with them any more.
    for (let round = 0; round < 10; round++)
      for (const { world } of [replaced, kept]) await world.metadata.markUnlinked();
    expect(await reportedBytes(replaced.world)).toBe(FIRST_BYTES + count * sizeBytes);
    expect(await reportedBytes(kept.world)).toBe(count * sizeBytes);
  });

  test('stored bytes are the appended ones, once as they came and once for each compaction', async () => {
    const grown = await grow(true);
    const [count, sizeBytes] = [300, PIECE_BYTES];
    await appendMany(grown, count, sizeBytes);
    for (let round = 0; round < 10; round++) await grown.world.metadata.markUnlinked();
    const atRest = await dataAtRest(grown.world.metadata);
    const appendedBytes = FIRST_BYTES + count * sizeBytes;
    // Blobs that only the last version had before its compaction are erased.
    expect(atRest.sizeBytes).toBeLessThanOrEqual(appendedBytes + sum(grown.compactedBytes));
    expect(atRest.sizeBytes).toBeLessThan(2.5 * appendedBytes);
    expect(atRest.blobCount).toBeLessThan(1 + count + count / (LIMITS.compactPiecesMin - 1));
  });
});

test('each compaction meets a version newer than the one that it has read: none is in vain, and all bytes are there', async () => {
  const late: Buffer[] = [];
  const grown = await grow(true, async ({ world, bucket, answers }) => {
    // The last ones compact the rest undisturbed.
    if (answers.length > 20) return;
    const piece = randomBytes(PIECE_BYTES);
    await append(world, 'k', piece, { bucket });
    late.push(piece);
  });
  const { world, bucket, answers, compactedBytes } = grown;
  const first = await world.get('k', { bucket });
  const pieces = [first];
  for (let at = 0; at < 40; at++) {
    const piece = randomBytes(PIECE_BYTES);
    await append(world, 'k', piece, { bucket });
    await world.store.compactionIdle();
    pieces.push(piece, ...late.splice(0));
  }
  expect(answers.length).toBeGreaterThan(1);
  expect(new Set(answers)).toEqual(new Set(['folded']));
  const whole = Buffer.concat(pieces);
  expect(sum(compactedBytes), 'each byte once').toBeLessThanOrEqual(whole.length);
  expect(await segmentCount(grown)).toBeLessThan(2 * LIMITS.compactPiecesMin);
  expect((await world.get('k', { bucket })).equals(whole)).toBe(true);
});

test('a version keeps the ETag, id, checksum, times and number of appends that its append was answered', async () => {
  const grown = await grow(true);
  const { world, bucket } = grown;
  await appendMany(grown, LIMITS.compactPiecesMin - 2, PIECE_BYTES);
  const answer = await append(world, 'k', randomBytes(PIECE_BYTES), { bucket });
  const before = (await world.find('k', { bucket })).version;
  await world.store.compactionIdle();
  const { version } = await world.find('k', { bucket });
  expect(grown.answers).toEqual(['folded']);
  expect(version.manifest).not.toEqual(before.manifest);
  expect({ ...version, manifest: before.manifest }).toEqual(before);
  expect(answer).toMatchObject({ versionId: version.versionId, etag: version.etag });
});

test('a compaction during a rewrap of the object’s key is dropped, and the writer in between schedules the rest', async () => {
  const keyring = createKeyring();
  let isRotated = false;
  const grown = await grow(
    true,
    async ({ world, bucket }) => {
      if (isRotated) return;
      isRotated = true;
      await keyring.addKey();
      await append(world, 'k', Buffer.from('under the new key'), { bucket });
    },
    keyring,
  );
  const { world, bucket, answers } = grown;
  const first = await world.get('k', { bucket });
  const pieces = await appendMany(grown, LIMITS.compactPiecesMin, PIECE_BYTES);
  expect(answers).toEqual(['changed', 'folded']);
  expect(await world.chunkCount(), 'what was written for nothing is gone').toBe(LIMITS.compactPiecesMin + 1);
  const whole = Buffer.concat([first, pieces]);
  expect(
    (await world.get('k', { bucket, range: { offsetBytes: 0, sizeBytes: whole.length } })).equals(whole),
  ).toBe(true);
});
