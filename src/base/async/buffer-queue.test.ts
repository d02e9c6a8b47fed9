// Pieces come out in their order, and small ones together.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BufferQueue } from './buffer-queue.ts';

test('a body that comes byte by byte is kept in few pieces', () => {
  const queue = new BufferQueue();
  for (let at = 0; at < 100_000; at++) queue.add(Buffer.from([at % 256]));
  const pieces = queue.takeAll();
  expect(pieces.length).toBeLessThan(10);
  expect(Buffer.concat(pieces).every((byte, at) => byte === at % 256)).toBe(true);
});

test('whatever is added and taken in between, bytes come out once and in their order', () => {
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
          const piece = Buffer.alloc(next.sizeBytes, added.length);
          added.push(Buffer.from(piece));
          queue.add(piece);
        }
        const waiting = Buffer.concat(added).length - Buffer.concat(taken).length;
        expect(queue.sizeBytes).toBe(waiting);
      }
      taken.push(...queue.takeAll());
      expect(Buffer.concat(taken).equals(Buffer.concat(added))).toBe(true);
    }),
  );
});

test('gives back what was added, however it came and however it is taken', () => {
  const size = fc.oneof(fc.nat(30), fc.nat(3000), fc.constant(2048), fc.constant(0));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 60 }), fc.array(fc.nat(20_000)), (sizes, takes) => {
      const pieces = new BufferQueue();
      const added: Buffer[] = [];
      const taken: Uint8Array[] = [];
      const takeAt = [...takes];
      for (const sizeBytes of sizes) {
        const piece = randomBytes(sizeBytes);
        added.push(piece);
        pieces.add(piece);
        const next = takeAt[0];
        if (next !== undefined && next <= pieces.sizeBytes) {
          takeAt.shift();
          taken.push(...pieces.take(next));
        }
      }
      taken.push(...pieces.take(pieces.sizeBytes));
      expect(pieces.sizeBytes).toBe(0);
      expect(Buffer.concat(taken).equals(Buffer.concat(added))).toBe(true);
    }),
  );
});

test('a body of one piece is not copied', () => {
  const pieces = new BufferQueue();
  const piece = Buffer.from('small');
  pieces.add(piece);
  expect(pieces.take(5)[0]?.buffer).toBe(piece.buffer);
});

test('bytes that trickle are held in few buffers', () => {
  const pieces = new BufferQueue();
  for (let count = 0; count < 100_000; count++) {
    pieces.add(Buffer.of(count));
    if (count % 1000 === 0) pieces.add(Buffer.alloc(4096));
  }
  const buffers = new Set(pieces.take(pieces.sizeBytes).map(({ buffer }) => buffer));
  const heldBytes = [...buffers].reduce((total, buffer) => total + buffer.byteLength, 0);
  expect(heldBytes).toBeLessThan(100_000 + 100 * 4096 + 2 * 16 * 1024);
});
