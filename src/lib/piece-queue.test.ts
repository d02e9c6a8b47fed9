// Pieces come out in their order, and small ones together.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PieceQueue } from './piece-queue.ts';

test('a body that comes byte by byte is kept in few pieces', () => {
  const queue = new PieceQueue();
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
      const queue = new PieceQueue();
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
