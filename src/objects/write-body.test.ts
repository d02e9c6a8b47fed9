import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { settleAll } from '../../tests/support/disks/replicated-world.ts';
import {
  CHUNK_BYTES,
  codeOf,
  INLINE_BYTES_MAX,
  openObjectWorld,
} from '../../tests/support/objects/object-world.ts';
import { createPatiences } from '../base/async/patience.ts';
import { toBase64 } from '../base/bytes/bytes.ts';
import { crcOf } from '../base/crypto/crc.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { BodySource } from './object-store.ts';

test('a failed write rejects without waiting for a disk that does not answer a drop', async () => {
  const answered = Promise.withResolvers<void>();
  const world = await openObjectWorld({
    interceptChunks: (chunks) => ({
      put: async (id, bytes) => {
        if (id.index === 0) return chunks.put(id, bytes);
        throw new AppError('ServiceUnavailable');
      },
      get: (id) => chunks.get(id),
      have: (ids) => chunks.have(ids),
      drop: (ids, fence) => answered.promise.then(() => chunks.drop(ids, fence)),
      list: (options) => chunks.list(options),
      usage: () => chunks.usage(),
      recount: () => chunks.recount(),
    }),
  });
  let code: string | undefined;
  const put = codeOf(world.put('k', randomBytes(3 * CHUNK_BYTES))).then((found) => {
    code = found;
  });
  // The codec works on other threads.
  while ((await world.chunkCount()) === 0) await settleAll();
  for (let turn = 0; turn < 50; turn++) await settleAll();
  expect(code).toBeUndefined();
  world.metadata.clock.advance(LIMITS.abandonWaitMaxMs);
  await put;
  expect(code).toBe('ServiceUnavailable');
  // The drop continues.
  answered.resolve();
  await expect.poll(() => world.chunkCount()).toBe(0);
});

test.each([
  0,
  1,
  INLINE_BYTES_MAX,
  INLINE_BYTES_MAX + 1,
  CHUNK_BYTES - 1,
  CHUNK_BYTES,
  CHUNK_BYTES + 1,
  3 * CHUNK_BYTES,
  3 * CHUNK_BYTES + 7,
])('a body of %i bytes is stored alike, whether its size is known before or not', async (sizeBytes) => {
  const world = await openObjectWorld();
  const body = randomBytes(sizeBytes);
  const checksum = { algorithm: 'CRC64NVME' as const, value: toBase64(crcOf('CRC64NVME', body)) };
  const known = await world.put('known', body, { said: { checksum } });
  const chunkCount = await world.chunkCount();
  // Buffers that end at chunks, and buffers that do not.
  for (const blockBytes of [64 * 1024, 60_000]) {
    const said = { sizeBytes: undefined, checksum };
    const written = await world.put('unknown', body, { said, blockBytes });
    expect(written).toMatchObject({ etag: known.etag, sizeBytes, checksum: known.checksum });
    expect((await world.get('unknown')).equals(body)).toBe(true);
    const range = { offsetBytes: sizeBytes >> 1, sizeBytes: sizeBytes - (sizeBytes >> 1) };
    if (sizeBytes > 0)
      expect((await world.get('unknown', { range })).equals(body.subarray(range.offsetBytes))).toBe(true);
    const layoutOf = async (key: string) => {
      const { manifest } = (await world.find(key)).version;
      if (manifest.kind !== 'direct') throw new Error(manifest.kind);
      return manifest.uses.map(({ storage, chunkSizeBytes }) => ({ storage, chunkSizeBytes }));
    };
    expect(await layoutOf('unknown')).toEqual(await layoutOf('known'));
  }
  expect(await world.chunkCount()).toBe(3 * chunkCount);
  expect(world.heldBytes()).toBe(0);
});

test('a body that is known to be large has larger chunks, one of unknown size has not', async () => {
  const world = await openObjectWorld({ largeChunkSizeBytes: 4 * CHUNK_BYTES });
  const body = randomBytes(LIMITS.largeBodyBytesMin);
  const chunkSizesOf = async (key: string) => {
    const { manifest } = (await world.find(key)).version;
    return manifest.kind === 'direct' && manifest.uses.map(({ chunkSizeBytes }) => chunkSizeBytes);
  };
  await world.put('large', body);
  expect(await chunkSizesOf('large')).toEqual([4 * CHUNK_BYTES]);
  expect(await world.chunkCount()).toBe(Math.ceil(body.length / (4 * CHUNK_BYTES)));
  expect((await world.get('large')).equals(body)).toBe(true);
  const range = { offsetBytes: 5 * CHUNK_BYTES - 3, sizeBytes: 4 * CHUNK_BYTES };
  const end = range.offsetBytes + range.sizeBytes;
  expect((await world.get('large', { range })).equals(body.subarray(range.offsetBytes, end))).toBe(true);
  await world.put('less', body.subarray(1));
  expect(await chunkSizesOf('less')).toEqual([CHUNK_BYTES]);
  await world.put('unknown', body, { said: { sizeBytes: undefined } });
  expect(await chunkSizesOf('unknown')).toEqual([CHUNK_BYTES]);
  expect(world.heldBytes()).toBe(0);
});

test('in a chunk of a large body each usual chunk that has come keeps it from being evicted', async () => {
  const world = await openObjectWorld({
    largeChunkSizeBytes: 4 * CHUNK_BYTES,
    bodyBufferBytes: CHUNK_BYTES,
  });
  const body = randomBytes(LIMITS.largeBodyBytesMin);
  const other = Promise.withResolvers<unknown>();
  async function* slow() {
    for (let at = 0; at < body.length; at += 64 * 1024) {
      yield Buffer.from(body.subarray(at, at + 64 * 1024));
      if (at + 64 * 1024 === CHUNK_BYTES) other.resolve(world.put('other', randomBytes(CHUNK_BYTES)));
      const isEndOfOne = (at + 64 * 1024) % CHUNK_BYTES === 0 && at < 3 * CHUNK_BYTES;
      for (let ms = 0; isEndOfOne && ms < 0.8 * LIMITS.bodyStalledMs; ms += 500) {
        world.metadata.clock.advance(500);
        await settleAll();
      }
    }
  }
  await world.put('slow', body, { said: { stream: slow() } });
  expect((await world.get('slow')).equals(body)).toBe(true);
  await other.promise;
});

test('bodies of unknown size in mid-chunk make progress when they hold all memory', async () => {
  const world = await openObjectWorld({ bodyBufferBytes: 4 * CHUNK_BYTES });
  const bodies = Array.from({ length: 12 }, () => randomBytes(2 * CHUNK_BYTES));
  await Promise.all(
    bodies.map((body, index) => world.put(`k${index}`, body, { said: { sizeBytes: undefined } })),
  );
  for (const [index, body] of bodies.entries())
    expect((await world.get(`k${index}`)).equals(body)).toBe(true);
});

/** A body in signed pieces whose signatures take as much as its bytes. */
function inSmallPieces(body: Buffer): Partial<BodySource> {
  let cameBytes = 0;
  async function* stream() {
    for (let at = 0; at < body.length; at += 64 * 1024) {
      cameBytes = at + 64 * 1024;
      yield Buffer.from(body.subarray(at, cameBytes));
    }
  }
  let checkedBytes = 0;
  const deferred = {
    takeEnds: (uptoBytes: number) => [uptoBytes],
    async check() {
      checkedBytes += CHUNK_BYTES;
    },
    heldBytes: () => cameBytes - checkedBytes,
    isDone: () => checkedBytes === body.length,
  };
  return { deferSignatures: () => ({ stream: stream(), deferred }) };
}

test('signatures that wait for their check count in the memory of bodies, until the body ends', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(CHUNK_BYTES);
  await world.put('k', body, { said: inSmallPieces(body) });
  expect(world.heldBytesMax()).toBeGreaterThan(2 * CHUNK_BYTES);
  expect(world.heldBytes()).toBe(0);
});

test('bodies in small signed pieces make progress when they hold all memory', async () => {
  const world = await openObjectWorld({ bodyBufferBytes: 4 * CHUNK_BYTES });
  const bodies = Array.from({ length: 12 }, () => randomBytes(2 * CHUNK_BYTES));
  await Promise.all(bodies.map((body, at) => world.put(String(at), body, { said: inSmallPieces(body) })));
  for (const [at, body] of bodies.entries()) expect((await world.get(String(at))).equals(body)).toBe(true);
  expect(world.heldBytes()).toBe(0);
});

test('memory that the disk writes from is given back when sealing and the put are done, also of a body that fails', async () => {
  const leased: { bytes: Uint8Array; isReleased: boolean }[] = [];
  const records = {
    fromBytes: CHUNK_BYTES,
    take(sizeBytes: number) {
      const lease = { bytes: new Uint8Array(new SharedArrayBuffer(sizeBytes)), isReleased: false };
      leased.push(lease);
      return {
        bytes: lease.bytes,
        release() {
          expect(lease.isReleased).toBe(false);
          lease.isReleased = true;
        },
      };
    },
  };
  const held = Promise.withResolvers<void>();
  let putCount = 0;
  const world = await openObjectWorld({
    records,
    interceptChunks: (chunks) => ({
      ...chunks,
      put: async (id, bytes, checksum) => {
        expect(leased.map((lease) => lease.bytes)).toContain(bytes);
        putCount++;
        await held.promise;
        return chunks.put(id, bytes, checksum);
      },
      get: (id) => chunks.get(id),
      drop: (ids, fence) => chunks.drop(ids, fence),
    }),
  });
  const body = randomBytes(2 * CHUNK_BYTES);
  const putting = world.put('whole', body);
  async function* cut() {
    yield randomBytes(CHUNK_BYTES);
    yield randomBytes(CHUNK_BYTES);
    throw new AppError('IncompleteBody');
  }
  const failing = codeOf(
    world.put('cut', Buffer.alloc(0), { said: { sizeBytes: 3 * CHUNK_BYTES, stream: cut() } }),
  );
  while (putCount < 4) await settleAll();
  for (let turn = 0; turn < 50; turn++) await settleAll();
  expect(leased.map((lease) => lease.isReleased)).toEqual([false, false, false, false]);
  held.resolve();
  await putting;
  expect(await failing).toBe('IncompleteBody');
  expect(leased.map((lease) => lease.isReleased)).toEqual([true, true, true, true]);
  expect((await world.get('whole')).equals(body)).toBe(true);
});

test('a long body over slow disks leaves its request the time for a commit', async () => {
  const tookMs = LIMITS.copyLateMs + 500;
  const world = await openObjectWorld({
    interceptChunks: (chunks) => ({
      ...chunks,
      async put(id, bytes, crc32) {
        world.metadata.clock.advance(tookMs);
        return chunks.put(id, bytes, crc32);
      },
    }),
  });
  const bounds = { mostMs: LIMITS.requestWaitMaxMs, leastMs: LIMITS.requestWaitLeastMs };
  const patience = createPatiences(world.metadata.clock, bounds)();
  await world.put('k', randomBytes(20 * CHUNK_BYTES), { calls: { ...world.calls, patience } });
  expect(patience.leftMs()).toBe(LIMITS.requestWaitMaxMs);
});

test('a chunk waits for disks as long as its request can', async () => {
  const waits: (number | undefined)[] = [];
  const world = await openObjectWorld({
    interceptChunks: (chunks) => ({
      ...chunks,
      put(id, bytes, crc32, waitMaxMs) {
        waits.push(waitMaxMs);
        return chunks.put(id, bytes, crc32);
      },
    }),
  });
  const { clock } = world.metadata;
  const bounds = { mostMs: LIMITS.requestWaitMaxMs, leastMs: LIMITS.requestWaitLeastMs };
  for (const beforeMs of [0, 1000, LIMITS.requestWaitMaxMs]) {
    const patience = createPatiences(clock, bounds)();
    clock.advance(beforeMs);
    await world.put('k', randomBytes(2 * CHUNK_BYTES), { calls: { ...world.calls, patience } });
  }
  const expected = [LIMITS.requestWaitMaxMs, LIMITS.requestWaitMaxMs - 1000, LIMITS.chunkWaitLeastMs];
  expect(waits).toEqual(expected.flatMap((ms) => [ms, ms]));
});

test('a failed body of unknown size leaves nothing', async () => {
  const world = await openObjectWorld();
  async function* cut() {
    yield randomBytes(2.5 * CHUNK_BYTES);
    throw new AppError('IncompleteBody');
  }
  const said = { sizeBytes: undefined, stream: cut() };
  expect(await codeOf(world.put('k', Buffer.alloc(0), { said }))).toBe('IncompleteBody');
  expect([await world.chunkCount(), world.heldBytes()]).toEqual([0, 0]);
});
