// Pieces come out in their order, and small ones together.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BufferQueue } from './buffer-queue.ts';

test('a body that comes byte by byte is held in few buffers', () => {
  const queue = new BufferQueue();
  for (let at = 0; at < 100_000; at++) queue.add(Buffer.from([at % 256]));
  const buffers = queue.takeAll();
  expect(buffers.length).toBeLessThan(10);
  expect(Buffer.concat(buffers).every((byte, at) => byte === at % 256)).toBe(true);
});

test('bytes come out once and in order, whatever is added and taken in between', () => {
  const step = fc.oneof(
    fc.integer({ min: 1, max: 5000 }).map((sizeBytes) => ({ sizeBytes })),
    fc.constant('shift' as const),
    fc.constant('all' as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new BufferQueue();
      const added: Buffer[] = [];
      const taken: Buffer[] = [];
      for (const next of steps) {
        if (next === 'shift') taken.push(queue.shift() ?? Buffer.alloc(0));
        else if (next === 'all') taken.push(...queue.takeAll());
        else {
          const buffer = Buffer.alloc(next.sizeBytes, added.length);
          added.push(Buffer.from(buffer));
          queue.add(buffer);
        }
        const waiting = Buffer.concat(added).length - Buffer.concat(taken).length;
        expect(queue.sizeBytes).toBe(waiting);
      }
      taken.push(...queue.takeAll());
      expect(Buffer.concat(taken).equals(Buffer.concat(added))).toBe(true);
    }),
  );
});

test('returns what was added, however it was added and taken', () => {
  const size = fc.oneof(fc.nat(30), fc.nat(3000), fc.constant(2048), fc.constant(0));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 60 }), fc.array(fc.nat(20_000)), (sizes, takes) => {
      const buffers = new BufferQueue();
      const added: Buffer[] = [];
      const taken: Uint8Array[] = [];
      const takeAt = [...takes];
      for (const sizeBytes of sizes) {
        const buffer = randomBytes(sizeBytes);
        added.push(buffer);
        buffers.add(buffer);
        const next = takeAt[0];
        if (next !== undefined && next <= buffers.sizeBytes) {
          takeAt.shift();
          taken.push(...buffers.take(next));
        }
      }
      taken.push(...buffers.take(buffers.sizeBytes));
      expect(buffers.sizeBytes).toBe(0);
      expect(Buffer.concat(taken).equals(Buffer.concat(added))).toBe(true);
    }),
  );
});

test('a body of one buffer is not copied', () => {
  const queue = new BufferQueue();
  const buffer = Buffer.from('small');
  queue.add(buffer);
  expect(queue.take(5)[0]?.buffer).toBe(buffer.buffer);
});

test('trickling bytes are held in few buffers', () => {
  const queue = new BufferQueue();
  for (let count = 0; count < 100_000; count++) {
    queue.add(Buffer.of(count));
    if (count % 1000 === 0) queue.add(Buffer.alloc(4096));
  }
  const buffers = new Set(queue.take(queue.sizeBytes).map(({ buffer }) => buffer));
  const heldBytes = [...buffers].reduce((total, buffer) => total + buffer.byteLength, 0);
  expect(heldBytes).toBeLessThan(100_000 + 100 * 4096 + 2 * 16 * 1024);
});
