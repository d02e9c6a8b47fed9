import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { uploadCopies } from '../../tests/support/objects/object-uploads.ts';
import {
  CHUNK_BYTES,
  codeOf,
  type ObjectWorld,
  openObjectWorld,
  readAll,
  type WorldOptions,
} from '../../tests/support/objects/object-world.ts';
import { must } from '../base/assert.ts';
import type { BatchReadable } from '../base/bytes/batch-stream.ts';
import type { ChunkPort, ChunkRead } from '../ports/chunks.ts';
import type { FoundVersion } from '../ports/metadata/versions.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { ObjectKey } from '../types/names.ts';
import type { ByteRange, MetadataCalls, OpenObject } from './object-store.ts';

const PIECE = LIMITS.sealBlockBytes;

async function open(
  world: ObjectWorld,
  key: string,
  was?: FoundVersion,
  calls = world.calls,
): Promise<{ stream: BatchReadable }> {
  const found = was ?? (await world.find(key));
  return streamOf(
    await world.store.openObject({
      calls,
      bucket: world.bucket(),
      key: key as ObjectKey,
      found,
      range: { offsetBytes: 0, sizeBytes: found.version.sizeBytes },
      signal: new AbortController().signal,
    }),
  );
}

function streamOf(opened: OpenObject): { stream: BatchReadable } {
  return opened.kind === 'stream' ? opened : { stream: Readable.from([opened.bytes]) };
}

test.each([
  ['inline', 4000],
  ['of one chunk', 300_000],
  ['of many chunks', 3 * CHUNK_BYTES + 1000],
])('any range of an object %s', async (_name, sizeBytes) => {
  const world = await openObjectWorld();
  const body = randomBytes(sizeBytes);
  await world.put('k', body);
  const edge = fc.oneof(
    fc.nat(sizeBytes - 1),
    fc
      .constantFrom(0, 1, PIECE - 1, PIECE, CHUNK_BYTES - 1, CHUNK_BYTES, sizeBytes - 1)
      .filter((at) => at < sizeBytes),
  );
  await fc.assert(
    fc.asyncProperty(edge, edge, async (a, b) => {
      const offsetBytes = Math.min(a, b);
      const range = { offsetBytes, sizeBytes: Math.max(a, b) - offsetBytes + 1 };
      const read = await world.get('k', { range });
      expect(read.equals(body.subarray(offsetBytes, offsetBytes + range.sizeBytes))).toBe(true);
    }),
    { numRuns: 60 },
  );
  expect(world.heldBytes()).toBe(0);
});

/** Parts that are ranges of one source, so that many of them cost little; returns the expected bytes. */
async function worldOfParts(partCount: number, options: WorldOptions = {}) {
  const world = await openObjectWorld(options);
  const source = randomBytes(LIMITS.partBytesMin + 1000);
  await world.put('source', source);
  const ranges = Array.from({ length: partCount }, (_, at) => ({
    offsetBytes: at,
    sizeBytes: LIMITS.partBytesMin + (at % 3),
  }));
  await uploadCopies(world, { from: 'source', to: 'k', ranges });
  const { version } = await world.find('k');
  const bytesOf = (range: ByteRange): Buffer => {
    const slices: Buffer[] = [];
    let positionBytes = 0;
    for (const { offsetBytes, sizeBytes } of ranges) {
      const from = Math.max(range.offsetBytes - positionBytes, 0);
      const to = Math.min(range.offsetBytes + range.sizeBytes - positionBytes, sizeBytes);
      if (from < to) slices.push(source.subarray(offsetBytes + from, offsetBytes + to));
      positionBytes += sizeBytes;
    }
    return Buffer.concat(slices);
  };
  return { world, ranges, version, bytesOf };
}

test.each([
  [3, 'direct'],
  [70, 'paged'],
  [300, 'paged'],
])('any range of an object of %i parts, its manifest %s', async (partCount, kind) => {
  const { world, version, bytesOf } = await worldOfParts(partCount);
  expect(version.manifest.kind).toBe(kind);
  const { sizeBytes } = version;
  const readsRight = async (range: ByteRange) =>
    expect((await world.get('k', { range })).equals(bytesOf(range))).toBe(true);
  await fc.assert(
    fc.asyncProperty(fc.nat(sizeBytes - 1), fc.nat(2_000_000), async (offsetBytes, wanted) => {
      await readsRight({ offsetBytes, sizeBytes: Math.min(wanted + 1, sizeBytes - offsetBytes) });
    }),
    { numRuns: 25 },
  );
  const boundary = LIMITS.partBytesMin * (partCount - 1);
  await readsRight({ offsetBytes: boundary - 1_000_000, sizeBytes: 3_000_000 });
});

test.each([3, 300])('the position of each of %i parts', async (partCount) => {
  const { world, ranges, version } = await worldOfParts(partCount);
  const asked = { calls: world.calls, bucket: world.bucket(), version };
  let offsetBytes = 0;
  for (const [at, { sizeBytes }] of ranges.entries()) {
    const found = await world.store.partRange({ ...asked, partNumber: at + 1 });
    expect(found).toEqual({ range: { offsetBytes, sizeBytes }, partCount });
    offsetBytes += sizeBytes;
  }
  expect(await world.store.partRange({ ...asked, partNumber: partCount + 1 })).toBeUndefined();
});

test('an object without parts is its only part', async () => {
  const world = await openObjectWorld();
  await world.put('k', randomBytes(100));
  const { version } = await world.find('k');
  const asked = { calls: world.calls, bucket: world.bucket(), version };
  expect(await world.store.partRange({ ...asked, partNumber: 1 })).toEqual({
    range: { offsetBytes: 0, sizeBytes: 100 },
    partCount: 1,
  });
  expect(await world.store.partRange({ ...asked, partNumber: 2 })).toBeUndefined();
});

/** A world in which reads of chunks from the `fromIndex`th on go through `instead`. */
async function worldWithBadChunks(
  fromIndex: number,
  instead: (read: ChunkRead, isProven?: boolean) => ChunkRead,
): Promise<ObjectWorld> {
  return openObjectWorld({
    interceptChunks: (chunks): ChunkPort => ({
      put: (id, bytes) => chunks.put(id, bytes),
      async get(id, options) {
        const read = await chunks.get(id, options);
        return id.index < fromIndex ? read : instead(read, options?.isProven);
      },
      have: (ids) => chunks.have(ids),
      drop: (ids, fence) => chunks.drop(ids, fence),
      list: (options) => chunks.list(options),
      usage: () => chunks.usage(),
      recount: () => chunks.recount(),
    }),
  });
}

function flipped(read: ChunkRead, at = 10): ChunkRead {
  if (read.kind !== 'found') return read;
  const bytes = Uint8Array.from(read.bytes);
  bytes[at] = must(bytes[at], 'a byte') ^ 1;
  return { kind: 'found', bytes };
}

test.each<[string, (read: ChunkRead) => ChunkRead, string]>([
  ['missing', () => ({ kind: 'missing' }), 'ServiceUnavailable'],
  ['damaged', () => ({ kind: 'damaged' }), 'InternalError'],
  ['of other bytes', (read) => flipped(read), 'InternalError'],
])('a first chunk that is %s is an honest error, and an alarm', async (_name, instead, code) => {
  const world = await worldWithBadChunks(0, instead);
  await world.put('k', randomBytes(2 * CHUNK_BYTES));
  expect(await codeOf(open(world, 'k'))).toBe(code);
  expect(world.events.some((event) => /lost|does-not-open/.test(event))).toBe(true);
  expect(world.heldBytes()).toBe(0);
});

test('a later chunk that is bad ends the stream with an error, never early as if complete', async () => {
  const world = await worldWithBadChunks(2, (read) => flipped(read));
  const body = randomBytes(4 * CHUNK_BYTES);
  await world.put('k', body);
  const { stream } = await open(world, 'k');
  const received: Buffer[] = [];
  const ended = (async () => {
    for await (const piece of stream) received.push(piece);
  })();
  expect(await codeOf(ended)).toBe('InternalError');
  const read = Buffer.concat(received);
  expect(read.equals(body.subarray(0, read.length))).toBe(true);
  expect(read.length).toBeLessThan(body.length);
  expect(world.heldBytes()).toBe(0);
});

test.each([10, LIMITS.sealBlockBytes + 10])(
  'a copy that is wrong at byte %i is read anew where another is right',
  async (at) => {
    const world = await worldWithBadChunks(0, (read, isProven) => (isProven ? flipped(read, at) : read));
    const body = randomBytes(4 * CHUNK_BYTES - 100);
    await world.put('k', body);
    expect((await world.get('k')).equals(body)).toBe(true);
    const range = { offsetBytes: CHUNK_BYTES - 1000, sizeBytes: CHUNK_BYTES };
    expect(
      (await world.get('k', { range })).equals(body.subarray(CHUNK_BYTES - 1000).subarray(0, CHUNK_BYTES)),
    ).toBe(true);
    expect(world.events.some((event) => event.includes('does-not-open'))).toBe(true);
    expect(world.heldBytes()).toBe(0);
  },
);

/** A world whose chunks give the part alone that is asked for, as those on disks do, through `instead`. */
async function worldOfChunkParts(instead: (read: ChunkRead, isPart: boolean) => ChunkRead) {
  const fetched: number[] = [];
  const world = await openObjectWorld({
    largeChunkSizeBytes: 4 * CHUNK_BYTES,
    interceptChunks: (chunks): ChunkPort => ({
      ...othersOf(chunks),
      async get(id, options = { isProven: false }) {
        const { part } = options;
        const read = await chunks.get(id, options);
        if (read.kind !== 'found') return read;
        const { offsetBytes, sizeBytes } = part ?? { offsetBytes: 0, sizeBytes: read.bytes.length };
        const bytes = Uint8Array.from(read.bytes.subarray(offsetBytes, offsetBytes + sizeBytes));
        fetched.push(bytes.length);
        return instead({ kind: 'found', bytes }, part !== undefined);
      },
    }),
  });
  return { world, fetched };
}

const othersOf = (chunks: ChunkPort) => ({
  put: (...asked: Parameters<ChunkPort['put']>) => chunks.put(...asked),
  have: (...asked: Parameters<ChunkPort['have']>) => chunks.have(...asked),
  drop: (...asked: Parameters<ChunkPort['drop']>) => chunks.drop(...asked),
  list: (...asked: Parameters<ChunkPort['list']>) => chunks.list(...asked),
  usage: () => chunks.usage(),
  recount: () => chunks.recount(),
});

const BLOCK = LIMITS.sealBlockBytes;
const SEALED_BLOCK = BLOCK + 16;

test.each<[string, { offsetBytes: number; sizeBytes: number }, number[]]>([
  ['within a seal block', { offsetBytes: BLOCK + 10, sizeBytes: 1000 }, [SEALED_BLOCK]],
  ['over a border of blocks', { offsetBytes: 2 * BLOCK - 10, sizeBytes: 20 }, [2 * SEALED_BLOCK]],
  [
    'of three blocks, which codec threads open',
    { offsetBytes: BLOCK + 5, sizeBytes: 2 * BLOCK },
    [3 * SEALED_BLOCK],
  ],
  [
    'over a border of chunks',
    { offsetBytes: 4 * CHUNK_BYTES - 10, sizeBytes: 20 },
    [SEALED_BLOCK, SEALED_BLOCK],
  ],
])('a range %s fetches only the seal blocks that it has bytes of', async (_name, range, wanted) => {
  const { world, fetched } = await worldOfChunkParts((read) => read);
  const body = randomBytes(LIMITS.largeBodyBytesMin + 100);
  await world.put('k', body);
  const read = await world.get('k', { range });
  expect(read.equals(body.subarray(range.offsetBytes, range.offsetBytes + range.sizeBytes))).toBe(true);
  expect(fetched).toEqual(wanted);
  // The last block of the last chunk is shorter.
  fetched.length = 0;
  const end = { offsetBytes: body.length - 50, sizeBytes: 50 };
  expect((await world.get('k', { range: end })).equals(body.subarray(-50))).toBe(true);
  expect(fetched).toEqual([100 + 16]);
  expect(world.heldBytes()).toBe(0);
});

test.each([1000, 2 * BLOCK])(
  'a part of %i bytes that does not open is fetched anew, with all of its chunk',
  async (sizeBytes) => {
    const { world, fetched } = await worldOfChunkParts((read, isPart) => (isPart ? flipped(read) : read));
    const body = randomBytes(LIMITS.largeBodyBytesMin);
    await world.put('k', body);
    const range = { offsetBytes: BLOCK, sizeBytes };
    expect((await world.get('k', { range })).equals(body.subarray(BLOCK, BLOCK + sizeBytes))).toBe(true);
    expect(fetched.at(-1)).toBe((4 * CHUNK_BYTES * SEALED_BLOCK) / BLOCK);
    expect(world.events).toContain('chunk-does-not-open');
    expect(world.heldBytes()).toBe(0);
  },
);

test('an inline body that does not open is an error', async () => {
  const world = await openObjectWorld();
  await world.put('k', randomBytes(100));
  const found = await world.find('k');
  const inlineBody = Uint8Array.from(must(found.inlineBody, 'inline'));
  inlineBody[0] = must(inlineBody[0], 'a byte') ^ 1;
  const opened = world.store.openObject({
    calls: world.calls,
    bucket: world.bucket(),
    key: 'k' as ObjectKey,
    found: { ...found, inlineBody },
    range: { offsetBytes: 0, sizeBytes: 100 },
    signal: new AbortController().signal,
  });
  expect(await codeOf(opened)).toBe('InternalError');
});

test('a lost manifest page is an alarm; one that was deleted with its version is not', async () => {
  let isLost = false;
  const { world } = await worldOfParts(70, {
    intercept: (metadata) => ({
      shardCount: metadata.shardCount,
      execute: (...args) => metadata.execute(...args),
      async query(envelope, name, query) {
        const reply = await metadata.query(envelope, name, query);
        const lost = { kind: 'done', value: { pages: [null] }, timeMs: 0 } as never;
        return isLost && name === 'get-manifest-pages' ? lost : reply;
      },
    }),
  });
  const found = await world.find('k');
  isLost = true;
  expect(await codeOf(open(world, 'k'))).toBe('ServiceUnavailable');
  expect(world.events).toEqual(['data-of-a-version-is-lost']);
  await world.put('k', Buffer.from('another'));
  await world.metadata.markUnlinked();
  expect(await codeOf(open(world, 'k', found))).toBe('ServiceUnavailable');
  expect(world.events).toHaveLength(1);
});

test('chunks that were deleted with their version are no alarm', async () => {
  let isGone = false;
  const world = await worldWithBadChunks(1, (read) => (isGone ? { kind: 'missing' } : read));
  await world.put('k', randomBytes(8 * CHUNK_BYTES));
  const { stream } = await open(world, 'k');
  await world.put('k', Buffer.from('another'));
  await world.metadata.markUnlinked();
  isGone = true;
  expect(await codeOf(readAll(stream))).toBe('ServiceUnavailable');
  expect(world.events).toEqual([]);
});

describe('a long read checks whether its data stays', () => {
  const body = randomBytes(12 * CHUNK_BYTES);
  let world: ObjectWorld;
  let reading: Readable;
  beforeEach(async () => {
    world = await openObjectWorld();
    await world.put('k', body);
    reading = (await open(world, 'k')).stream;
    world.metadata.clock.advance(LIMITS.readerRevalidateMs + 1);
  });

  test('data of an existing version stays', async () => {
    expect((await readAll(reading)).equals(body)).toBe(true);
  });

  test('data of a replaced version stays until it is marked for deletion', async () => {
    const another = (await open(world, 'k')).stream;
    world.metadata.clock.advance(LIMITS.readerRevalidateMs + 1);
    await world.put('k', Buffer.from('another'));
    expect((await readAll(another)).equals(body)).toBe(true);
    await world.metadata.markUnlinked();
    expect(await codeOf(readAll(reading))).toBe('ServiceUnavailable');
    expect(world.events).toEqual([]);
  });

  test.each([
    ['the bucket was renamed', 'NoSuchBucket', body.length],
    ['nobody may read the bucket any more', 'AccessDenied', 'AccessDenied'],
  ] as const)('when %s', async (_name, code, outcome) => {
    const calls: MetadataCalls = {
      ...world.calls,
      query: (target, name, query) =>
        name === 'get-version' ? Promise.reject(new AppError(code)) : world.calls.query(target, name, query),
    };
    const { stream } = await open(world, 'k', undefined, calls);
    world.metadata.clock.advance(LIMITS.readerRevalidateMs + 1);
    const read = readAll(stream).then(({ length }) => length);
    expect(await read.catch((error) => error.code)).toBe(outcome);
  });

  test('data of a renamed object stays', async () => {
    const { believed, homeShard: shard } = world.bucket();
    const move = { from: 'k' as ObjectKey, to: 'elsewhere' };
    const command = { bucketId: believed.bucketId, move, overwrites: false };
    const { value } = await world.calls.execute({ shard, bucket: believed }, 'move-key', command);
    expect(value).toMatchObject({ kind: 'moved-key', result: [expect.any(String)] });
    await world.metadata.markUnlinked();
    expect((await readAll(reading)).equals(body)).toBe(true);
  });
});

test('stalled readers hold little, and release it when they are closed', async () => {
  const world = await openObjectWorld();
  await world.put('k', randomBytes(20 * CHUNK_BYTES));
  const still = await Promise.all(Array.from({ length: 20 }, async () => (await open(world, 'k')).stream));
  expect(world.heldBytes()).toBeLessThanOrEqual(20 * (2 * CHUNK_BYTES + LIMITS.sealBlockBytes));
  for (const stream of still) stream.destroy();
  await new Promise(setImmediate);
  expect(world.heldBytes()).toBe(0);
});

test('a reader that waits for its next chunk holds nothing, and has no memory beyond the limit', async () => {
  const bodyBufferBytes = 16 * (2 * CHUNK_BYTES + LIMITS.sealBlockBytes);
  const world = await openObjectWorld({ bodyBufferBytes });
  const body = randomBytes(3 * CHUNK_BYTES);
  await world.put('k', body);
  const { stream } = await open(world, 'k');
  const ends = Array.from({ length: 8 }, (_, at) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const tenant = { account: `a${at}`, address: `192.0.2.${at}` };
    void world.store.withMemory({ sizeBytes: bodyBufferBytes / 8, tenant }, () => promise);
    return resolve;
  });
  let isRead = false;
  const read = readAll(stream).finally(() => {
    isRead = true;
  });
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  expect([world.heldBytes(), isRead]).toEqual([bodyBufferBytes, false]);
  for (const end of ends) end();
  expect((await read).equals(body)).toBe(true);
  expect(world.heldBytes()).toBe(0);
});

test('a reader that waits for the disk gets more read ahead, up to the limit', async () => {
  const world = await openObjectWorld({
    interceptChunks: (chunks) => ({
      put: (id, bytes) => chunks.put(id, bytes),
      async get(id) {
        for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
        return chunks.get(id);
      },
      have: (ids) => chunks.have(ids),
      drop: (ids, fence) => chunks.drop(ids, fence),
      list: (options) => chunks.list(options),
      usage: () => chunks.usage(),
      recount: () => chunks.recount(),
    }),
  });
  const body = randomBytes(20 * CHUNK_BYTES);
  await world.put('k', body);
  let heldBytesMax = 0;
  const { stream } = await open(world, 'k');
  const received: Buffer[] = [];
  for await (const piece of stream) {
    received.push(piece);
    heldBytesMax = Math.max(heldBytesMax, world.heldBytes());
  }
  expect(Buffer.concat(received).equals(body)).toBe(true);
  expect(heldBytesMax).toBeGreaterThan(2 * CHUNK_BYTES);
  expect(heldBytesMax).toBeLessThanOrEqual((2 + LIMITS.readAheadChunks) * CHUNK_BYTES);
});

test('a quick reader is given several pieces at once, one that was slow a single one', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(4 * CHUNK_BYTES);
  await world.put('k', body);
  const { stream } = await open(world, 'k');
  const received: Buffer[] = [];
  const takePieces = async (): Promise<number> => {
    const isThere = once(stream, 'readable');
    stream.read(0);
    await isThere;
    const pieces = [stream.read(), ...(stream.takeRest?.() ?? [])];
    received.push(...pieces);
    return pieces.length;
  };
  expect([await takePieces(), await takePieces()]).toEqual([1, 1]);
  const heldBytes = world.heldBytes();
  expect(await takePieces()).toBe(2);
  expect(world.heldBytes()).toBe(heldBytes + PIECE);
  world.metadata.clock.advance(LIMITS.quickReadMs + 1);
  expect([await takePieces(), await takePieces(), await takePieces()]).toEqual([1, 1, 2]);
  expect(Buffer.concat(received).equals(body)).toBe(true);
});

/** Advances the clock until `wanted` is settled, by `ms` at most. */
async function whilePassing<T>(
  { metadata: { clock } }: ObjectWorld,
  wanted: Promise<T>,
  ms = Number.POSITIVE_INFINITY,
): Promise<T> {
  const untilMs = clock.monotonicMs() + ms;
  const passing = setInterval(() => {
    if (clock.monotonicMs() < untilMs) clock.advance(500);
  }, 1);
  try {
    return await wanted;
  } finally {
    clearInterval(passing);
  }
}

test('stalled readers release all but one buffer when others wait, and continue where they were', async () => {
  const world = await openObjectWorld({ bodyBufferBytes: 8 * CHUNK_BYTES });
  const body = randomBytes(6 * CHUNK_BYTES + 1000);
  await world.put('k', body);
  const still = await Promise.all(Array.from({ length: 5 }, async () => (await open(world, 'k')).stream));
  expect((await whilePassing(world, world.get('k'), 4000)).equals(body)).toBe(true);
  expect(world.heldBytes()).toBeLessThan(5 * (CHUNK_BYTES + LIMITS.sealBlockBytes));
  for (const stream of still) expect((await readAll(stream)).equals(body)).toBe(true);
  expect(world.heldBytes()).toBe(0);
});

test('stalled readers that hold one buffer are evicted when others have no room without it', async () => {
  const world = await openObjectWorld({ bodyBufferBytes: 8 * CHUNK_BYTES });
  const body = randomBytes(6 * CHUNK_BYTES);
  await world.put('k', body);
  const errors: string[] = [];
  const readers: Promise<unknown>[] = [];
  for (let count = 0; count < 16; count++) {
    const { stream } = await whilePassing(world, open(world, 'k'));
    readers.push(new Promise((resolve) => stream.once('close', resolve)));
    stream.once('error', (error: AppError) => void errors.push(error.code));
  }
  await whilePassing(world, Promise.race(readers));
  expect(new Set(errors)).toEqual(new Set(['SlowDown']));
  expect((await whilePassing(world, world.get('k'))).equals(body)).toBe(true);
});
