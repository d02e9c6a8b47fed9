import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { BodyPieces } from './body-pieces.ts';

test('gives back what was added, however it came and however it is taken', () => {
  const size = fc.oneof(fc.nat(30), fc.nat(3000), fc.constant(2048), fc.constant(0));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 60 }), fc.array(fc.nat(20_000)), (sizes, takes) => {
      const pieces = new BodyPieces();
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
  const pieces = new BodyPieces();
  const piece = Buffer.from('small');
  pieces.add(piece);
  expect(pieces.take(5)[0]?.buffer).toBe(piece.buffer);
});

test('bytes that trickle are held in few buffers', () => {
  const pieces = new BodyPieces();
  for (let count = 0; count < 100_000; count++) {
    pieces.add(Uint8Array.of(count));
    if (count % 1000 === 0) pieces.add(new Uint8Array(4096));
  }
  const buffers = new Set(pieces.take(pieces.sizeBytes).map(({ buffer }) => buffer));
  const heldBytes = [...buffers].reduce((total, buffer) => total + buffer.byteLength, 0);
  expect(heldBytes).toBeLessThan(100_000 + 100 * 4096 + 2 * 16 * 1024);
});
