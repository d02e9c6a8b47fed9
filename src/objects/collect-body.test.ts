import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CHUNK_BYTES, codeOf, openObjectWorld, sourceOf } from '../../tests/support/objects/object-world.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { INTERNAL_TENANT } from '../types/tenant.ts';

const whole = async (pieces: Buffer[]) => [...pieces];

test('a document is returned whole, and its memory is counted until then', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(300_000);
  expect(
    Buffer.concat(
      await world.store.collectBody({ ...sourceOf(body), sizeBytes: body.length }, INTERNAL_TENANT, whole),
    ).equals(body),
  ).toBe(true);
  expect(
    await world.store.collectBody({ ...sourceOf(Buffer.alloc(0)), sizeBytes: 0 }, INTERNAL_TENANT, whole),
  ).toEqual([]);
  expect(world.heldBytesMax()).toBe(LIMITS.documentMemoryFactor * body.length);
  expect(world.heldBytes()).toBe(0);
});

test('a document that arrives byte by byte is held in few buffers', async () => {
  const world = await openObjectWorld();
  async function* bytes() {
    for (let count = 0; count < 50_000; count++) yield Buffer.from('a');
  }
  const document = { stream: bytes(), sizeBytes: 50_000 };
  const pieces = await world.store.collectBody(document, INTERNAL_TENANT, whole);
  expect(pieces.length).toBeLessThan(10);
  expect(Buffer.concat(pieces).length).toBe(50_000);
});

test('nothing stays counted after the stream failed', async () => {
  const world = await openObjectWorld();
  async function* cut() {
    yield randomBytes(1000);
    throw new AppError('IncompleteBody');
  }
  const collected = world.store.collectBody({ stream: cut(), sizeBytes: 2000 }, INTERNAL_TENANT, whole);
  expect(await codeOf(collected)).toBe('IncompleteBody');
  expect(world.heldBytes()).toBe(0);
});

test('stalled documents are evicted when others wait for memory', async () => {
  const world = await openObjectWorld({ bodyBufferBytes: 2 * CHUNK_BYTES });
  const held = Promise.withResolvers<void>();
  async function* still() {
    yield randomBytes(CHUNK_BYTES);
    await held.promise;
    yield randomBytes(1);
  }
  const documents = Array.from({ length: 4 }, () =>
    codeOf(world.store.collectBody({ stream: still(), sizeBytes: CHUNK_BYTES + 1 }, INTERNAL_TENANT, whole)),
  );
  await expect.poll(() => world.heldBytes()).toBeGreaterThanOrEqual(2 * CHUNK_BYTES);
  const body = randomBytes(CHUNK_BYTES);
  const writing = world.put('k', body);
  const passing = setInterval(() => world.metadata.clock.advance(500), 1);
  await writing;
  expect(await Promise.race(documents)).toBe('SlowDown');
  held.resolve();
  await Promise.all(documents);
  clearInterval(passing);
  expect(world.heldBytes()).toBe(0);
});
