// Compaction of the small pieces of appended objects, through the whole data path.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OWNER } from '../../tests/support/metadata/metadata-shards.ts';
import { append, appendMany, segmentsOf, versioned } from '../../tests/support/objects/appends.ts';
import { uploadCopies } from '../../tests/support/objects/object-uploads.ts';
import {
  CHUNK_BYTES,
  INLINE_BYTES_MAX,
  openObjectWorld,
  readAll,
} from '../../tests/support/objects/object-world.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';
import type { ObjectKey } from '../types/names.ts';
import { linksOf, ownBody } from '../types/version.ts';

const KiB = 1024;

/** Each piece has a blob of its own here, like larger ones; small ones are in grown-pieces.test.ts. */
const limits = LIMITS as { grownPieceBytesMax: number };
const { grownPieceBytesMax } = LIMITS;
beforeAll(() => void Object.assign(limits, { grownPieceBytesMax: 0 }));
afterAll(() => void Object.assign(limits, { grownPieceBytesMax }));

describe('compaction', () => {
  test('makes few pieces of many; bytes, ETag, version and times stay; the old data is erased', async () => {
    const world = await openObjectWorld();
    await world.put('k', randomBytes(100));
    const expected = await appendMany(world, 'k', 70, 300);
    const before = (await world.find('k')).version;
    await world.store.compactionIdle();
    expect((await segmentsOf(world, 'k')).length).toBeLessThan(32);
    expect((await world.get('k')).equals(expected)).toBe(true);
    await world.store.compactionIdle();
    expect(await segmentsOf(world, 'k'), 'who reads it folds more').toHaveLength(1);
    const { version } = await world.find('k');
    const { manifest, ...rest } = version;
    const { manifest: _manifest, ...restBefore } = before;
    expect(rest).toEqual(restBefore);
    expect(linksOf(manifest)).toHaveLength(1);
    for (let round = 0; round < 3; round++) await world.metadata.markUnlinked();
    const states = await world.metadata.stateOf(...linksOf(manifest).map(({ blobId }) => blobId));
    expect(new Set(states)).toEqual(new Set(['live']));
    const { totalCount } = await world.metadata.query('list-condemned', { olderThanMs: 0, limit: 1 });
    expect(totalCount).toBeGreaterThanOrEqual(64);
    expect((await world.get('k')).equals(expected), 'of what is left').toBe(true);
  });

  test('writes large pieces into chunks, and leaves the object before them alone', async () => {
    const world = await openObjectWorld();
    await world.put('k', randomBytes(2 * 1024 * KiB));
    const chunksBefore = await world.chunkCount();
    const expected = await appendMany(world, 'k', 20, INLINE_BYTES_MAX);
    await world.store.compactionIdle();
    expect(await world.chunkCount()).toBe(chunksBefore + 1);
    const segments = await segmentsOf(world, 'k');
    expect(segments.map(({ sizeBytes }) => sizeBytes)).toEqual([
      2 * 1024 * KiB,
      16 * INLINE_BYTES_MAX,
      ...Array(4).fill(INLINE_BYTES_MAX),
    ]);
    expect((await world.get('k')).equals(expected)).toBe(true);
  });

  test('compacts the tail of an object with pages', async () => {
    const world = await openObjectWorld();
    await world.put('source', randomBytes(LIMITS.partBytesMin));
    const range = { offsetBytes: 0, sizeBytes: LIMITS.partBytesMin };
    await uploadCopies(world, { from: 'source', to: 'k', ranges: Array(65).fill(range) });
    const offsetBytes = 65 * LIMITS.partBytesMin;
    const pieces = Array.from({ length: 20 }, () => randomBytes(100));
    for (const piece of pieces) await append(world, 'k', piece);
    await world.store.compactionIdle();
    expect(await segmentsOf(world, 'k')).toHaveLength(5);
    const got = await world.get('k', { range: { offsetBytes, sizeBytes: 2000 } });
    expect(got.equals(Buffer.concat(pieces))).toBe(true);
  });

  test('compacts versions; older ones keep their pieces', async () => {
    const world = await openObjectWorld();
    const bucket = await versioned(world);
    await world.put('k', Buffer.from('0'), { bucket });
    const pieces = [Buffer.from('0')];
    const ids: { id: string; size: number }[] = [];
    for (let at = 1; at <= 40; at++) {
      pieces.push(randomBytes(50));
      const { versionId, sizeBytes } = await append(world, 'k', pieces[at] as Buffer, { bucket });
      ids.push({ id: versionId, size: sizeBytes });
    }
    await world.store.compactionIdle();
    await world.metadata.markUnlinked();
    const whole = Buffer.concat(pieces);
    for (const { id, size } of ids.filter((_one, at) => at % 5 === 0)) {
      const found = await world.find('k', { bucket, versionId: id as never });
      const opened = await world.store.openObject({
        calls: world.calls,
        bucket,
        key: 'k' as ObjectKey,
        found,
        range: { offsetBytes: 0, sizeBytes: size },
        signal: new AbortController().signal,
      });
      const got = opened.kind === 'bytes' ? opened.bytes : await readAll(opened.stream);
      expect(got.equals(whole.subarray(0, size))).toBe(true);
    }
  });

  test('that fails before its commit leaves the object unchanged, and garbage for the sweep', async () => {
    let fails = true;
    const intercept = (metadata: MetadataPort): MetadataPort => ({
      shardCount: metadata.shardCount,
      query: (envelope, name, query) => metadata.query(envelope, name, query),
      execute: (envelope, name, command) => {
        if (name === 'fold-version' && fails) throw new Error('crash');
        return metadata.execute(envelope, name, command);
      },
    });
    const world = await openObjectWorld({ intercept });
    await world.put('k', randomBytes(10));
    const expected = await appendMany(world, 'k', 16, INLINE_BYTES_MAX);
    await world.store.compactionIdle();
    expect(world.events).toContain('pieces-not-compacted');
    expect(await segmentsOf(world, 'k')).toHaveLength(17);
    expect((await world.get('k')).equals(expected)).toBe(true);
    const garbage = await world.chunkCount();
    expect(garbage).toBe(1);
    fails = false;
    await world.get('k');
    await world.store.compactionIdle();
    expect(await world.chunkCount(), 'it rests after a failure').toBe(1);
    world.metadata.clock.advance(LIMITS.compactionPauseMs);
    expect((await world.get('k')).equals(expected), 'a read sees to it, too').toBe(true);
    await world.store.compactionIdle();
    expect(await segmentsOf(world, 'k')).toHaveLength(1);
    expect((await world.get('k')).equals(expected)).toBe(true);
  });

  test('of other objects continues when one fails; several failures in a row pause all', async () => {
    let failing: readonly string[] = ['bad'];
    const tried: string[] = [];
    const intercept = (metadata: MetadataPort): MetadataPort => ({
      shardCount: metadata.shardCount,
      query: (envelope, name, query) => metadata.query(envelope, name, query),
      execute: (envelope, name, command) => {
        if (name === 'fold-version') {
          const { key } = command as { key: string };
          tried.push(key);
          if (failing.includes(key)) throw new Error('it is damaged');
        }
        return metadata.execute(envelope, name, command);
      },
    });
    const world = await openObjectWorld({ intercept });
    const grow = async (key: string) => {
      await world.put(key, randomBytes(10));
      await appendMany(world, key, 15, 10);
      await world.store.compactionIdle();
    };
    await grow('bad');
    await append(world, 'bad', randomBytes(10));
    await grow('good');
    await world.store.compactionIdle();
    expect(tried, 'the bad one rests').toEqual(['bad', 'good']);
    expect(await segmentsOf(world, 'good')).toHaveLength(1);

    failing = ['a', 'b', 'c'];
    for (const key of failing) await grow(key);
    await grow('later');
    expect(tried.slice(2), 'all rest').toEqual(['a', 'b', 'c']);
    // A single failure does not pause all.
    failing = ['bad'];
    for (let minute = 0; minute < 3; minute++) {
      world.metadata.clock.advance(LIMITS.compactionPauseMs);
      await append(world, 'bad', randomBytes(10));
      await world.store.compactionIdle();
      await append(world, minute === 0 ? 'later' : 'a', randomBytes(10));
      await world.store.compactionIdle();
    }
    expect(await segmentsOf(world, 'later')).toHaveLength(1);
    world.metadata.clock.advance(LIMITS.compactionPauseMs);
    failing = [];
    for (const key of ['bad']) {
      await append(world, key, randomBytes(10));
      await world.store.compactionIdle();
      expect(await segmentsOf(world, key), key).toHaveLength(1);
    }
  });

  test('moves a reader on: it finds the bytes in their new place', async () => {
    const world = await openObjectWorld();
    await world.put('k', randomBytes(10));
    const expected = await appendMany(world, 'k', 15, INLINE_BYTES_MAX);
    const found = await world.find('k');
    const large = randomBytes(20 * CHUNK_BYTES);
    await append(world, 'k', large);
    const begun = await world.find('k');
    const sizeBytes = begun.version.sizeBytes;
    const opened = await world.store.openObject({
      calls: world.calls,
      bucket: world.bucket(),
      key: 'k' as ObjectKey,
      found: begun,
      range: { offsetBytes: 0, sizeBytes },
      signal: new AbortController().signal,
    });
    if (opened.kind !== 'stream') throw new Error(opened.kind);
    const reader = opened.stream[Symbol.asyncIterator]();
    const got = [(await reader.next()).value as Buffer];
    // The pieces are compacted and erased while the reader stands still.
    await append(world, 'k', randomBytes(1));
    await world.store.compactionIdle();
    expect((await segmentsOf(world, 'k')).length).toBeLessThan(
      ownBody(found.version.manifest)?.segments.length ?? 0,
    );
    world.metadata.clock.advance(LIMITS.readerRevalidateMs + 1);
    for (let next = await reader.next(); next.done !== true; next = await reader.next()) got.push(next.value);
    expect(Buffer.concat(got).equals(Buffer.concat([expected, large]))).toBe(true);
  });

  test('ends in a bucket that is deleted meanwhile', async () => {
    let compactionCount = 0;
    const intercept = (metadata: MetadataPort): MetadataPort => ({
      shardCount: metadata.shardCount,
      query: (envelope, name, query) => metadata.query(envelope, name, query),
      execute: async (envelope, name, command) => {
        if (name !== 'fold-version') return metadata.execute(envelope, name, command);
        if (++compactionCount > 10) throw new Error('it goes on and on');
        await metadata.execute(envelope, 'close-bucket', { bucketId: world.bucket().believed.bucketId });
        return metadata.execute(envelope, name, command);
      },
    });
    const world = await openObjectWorld({ intercept });
    await world.put('k', randomBytes(10));
    await appendMany(world, 'k', 15, 10);
    await world.store.compactionIdle();
    expect(compactionCount).toBe(1);
  });

  test('leaves objects alone that were not appended to: compositions, and objects that replaced an appended one', async () => {
    let replacement: string | undefined;
    const intercept = (metadata: MetadataPort): MetadataPort => ({
      shardCount: metadata.shardCount,
      execute: (envelope, name, command) => metadata.execute(envelope, name, command),
      query: async (envelope, name, query) => {
        const isOfCompaction = name === 'get-version' && envelope.bucket === undefined;
        const from = isOfCompaction ? replacement : undefined;
        if (from !== undefined) {
          replacement = undefined;
          await world.copy(from, 'k');
        }
        return metadata.query(envelope, name, query);
      },
    });
    const world = await openObjectWorld({ intercept });
    await world.put('one', randomBytes(10));
    const component = {
      bucket: world.bucket(),
      key: 'one' as ObjectKey,
      found: await world.find('one'),
    };
    await world.store.composeObject({
      calls: world.calls,
      bucket: world.bucket(),
      key: 'many' as ObjectKey,
      owner: OWNER,
      components: Array.from({ length: 20 }, () => component),
    });
    await world.get('many');
    await world.store.compactionIdle();
    expect(await segmentsOf(world, 'many'), 'what is composed is not copied for who reads it').toHaveLength(
      20,
    );
    await append(world, 'many', randomBytes(1));
    await world.get('many');
    await world.store.compactionIdle();
    expect(await segmentsOf(world, 'many'), 'nor for who appends a byte to it').toHaveLength(21);
    await uploadCopies(world, { from: 'many', to: 'parts', ranges: [{ offsetBytes: 0, sizeBytes: 200 }] });
    await world.put('k', randomBytes(10));
    replacement = 'parts';
    await appendMany(world, 'k', 15, 10);
    await world.store.compactionIdle();
    expect([replacement, (await segmentsOf(world, 'k')).length]).toEqual([undefined, 20]);
  });

  test('starts nothing more after it was stopped', async () => {
    const world = await openObjectWorld();
    await world.put('k', randomBytes(10));
    await world.store.stopCompaction();
    await appendMany(world, 'k', 20, 10);
    await world.store.compactionIdle();
    expect(await segmentsOf(world, 'k')).toHaveLength(21);
  });
});
