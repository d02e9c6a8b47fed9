import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BlobId } from '../names.ts';
import { decodePiece, encodePiece } from './piece-record.ts';

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((some) => Buffer.from(some));
const record = fc.record({
  pieceId: fc
    .uint8Array({ minLength: 16, maxLength: 16 })
    .map((some) => Buffer.from(some).toString('hex') as BlobId),
  sizeBytes: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  wrappedDataKey: bytes(100),
  sealed: bytes(300),
});

test('a written piece is read back', () => {
  fc.assert(
    fc.property(record, (piece) => {
      expect(decodePiece(encodePiece(piece))).toEqual(piece);
    }),
  );
});

test('a cut record, or one of an unknown form, is refused', () => {
  const piece = encodePiece({
    pieceId: 'ab'.repeat(16) as BlobId,
    sizeBytes: 1,
    wrappedDataKey: Buffer.alloc(60),
    sealed: Buffer.alloc(17),
  });
  for (const length of [0, 5, 21, 40]) expect(() => decodePiece(piece.subarray(0, length))).toThrow();
  expect(() => decodePiece(Buffer.concat([Uint8Array.of(2), piece.subarray(1)]))).toThrow('unknown format 2');
});
