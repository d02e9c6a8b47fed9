import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { must } from '../assert.ts';
import { openBytes, sealBytes } from './aead.ts';
import { blockCount, type ChunkPosition, layPlaintext, openBlock, sealChunk, sealedBytes } from './seal.ts';

const BLOCK_BYTES = 1024;
const dataKey = randomBytes(32);

function positionOf(sizeBytes: number): ChunkPosition {
  return { blobId: 'ab'.repeat(16), chunkIndex: 3, isLastChunk: true, sizeBytes, blockBytes: BLOCK_BYTES };
}

function seal(plaintext: Uint8Array, position: ChunkPosition): Uint8Array {
  const chunk = new Uint8Array(sealedBytes(position));
  layPlaintext(chunk, plaintext, { offsetBytes: 0, blockBytes: BLOCK_BYTES });
  const seen: Buffer[] = [];
  sealChunk({ dataKey, position, chunk, onPlaintext: (part) => seen.push(Buffer.from(part)) });
  expect(Buffer.concat(seen).equals(plaintext)).toBe(true);
  return chunk;
}

function open(chunk: Uint8Array, position: ChunkPosition, key: Uint8Array = dataKey): Buffer | undefined {
  const blocks: Buffer[] = [];
  for (let block = 0; block < blockCount(position); block++) {
    const plaintext = openBlock({ dataKey: key, position, chunk, block });
    if (plaintext === undefined) return undefined;
    blocks.push(plaintext);
  }
  return Buffer.concat(blocks);
}

describe('chunks', () => {
  test.each([
    1,
    BLOCK_BYTES - 1,
    BLOCK_BYTES,
    BLOCK_BYTES + 1,
    4 * BLOCK_BYTES,
    4 * BLOCK_BYTES + 1,
    200_000,
  ])('of %i bytes open to what was sealed', (sizeBytes) => {
    const plaintext = randomBytes(sizeBytes);
    const position = positionOf(sizeBytes);
    const chunk = seal(plaintext, position);
    expect(chunk.length).toBe(sizeBytes + 16 * Math.ceil(sizeBytes / BLOCK_BYTES));
    expect(open(chunk, position)?.equals(plaintext)).toBe(true);
  });

  test('plaintext may be laid out in parts of any size', () => {
    const plaintext = randomBytes(5000);
    const whole = new Uint8Array(sealedBytes(positionOf(5000)));
    layPlaintext(whole, plaintext, { offsetBytes: 0, blockBytes: BLOCK_BYTES });
    const inParts = new Uint8Array(whole.length);
    for (let at = 0; at < plaintext.length; at += 700)
      layPlaintext(inParts, plaintext.subarray(at, at + 700), { offsetBytes: at, blockBytes: BLOCK_BYTES });
    expect(Buffer.compare(whole, inParts)).toBe(0);
  });

  test('no plaintext is left in a sealed chunk', () => {
    const position = positionOf(2500);
    const chunk = seal(Buffer.from('plainly readable '.repeat(200).slice(0, 2500)), position);
    expect(Buffer.from(chunk).includes('plain')).toBe(false);
  });

  test.each<[string, Partial<ChunkPosition>]>([
    ['blob', { blobId: 'ac'.repeat(16) }],
    ['chunk index', { chunkIndex: 4 }],
    ['end of the blob', { isLastChunk: false }],
  ])('are bound to their %s', (_field, changed) => {
    const position = positionOf(2500);
    const chunk = seal(randomBytes(2500), position);
    expect(open(chunk, { ...position, ...changed })).toBeUndefined();
  });

  test('only the last block marks the end of the blob', () => {
    const position = positionOf(2500);
    const chunk = seal(randomBytes(2500), position);
    const notLast = { ...position, isLastChunk: false };
    const opened = [0, 1, 2].map((block) => openBlock({ dataKey, position: notLast, chunk, block }));
    expect(opened.map((block) => block !== undefined)).toEqual([true, true, false]);
  });

  test('blocks do not open at another place', () => {
    const position = positionOf(2 * BLOCK_BYTES);
    const chunk = seal(randomBytes(2 * BLOCK_BYTES), position);
    const swapped = Buffer.concat([chunk.subarray(BLOCK_BYTES + 16), chunk.subarray(0, BLOCK_BYTES + 16)]);
    expect(open(swapped, position)).toBeUndefined();
  });

  test('do not open with another key, a changed bit or another length', () => {
    const position = positionOf(2500);
    const chunk = seal(randomBytes(2500), position);
    expect(open(chunk, position, randomBytes(32))).toBeUndefined();
    expect(open(chunk.subarray(1), position)).toBeUndefined();
    for (const at of [0, 1030, chunk.length - 1]) {
      const changed = Uint8Array.from(chunk);
      changed[at] = must(changed[at], 'a byte') ^ 1;
      expect(open(changed, position)).toBeUndefined();
    }
  });
});

describe('small values', () => {
  const key = randomBytes(32);
  const plaintext = Buffer.from('headers');
  const sealed = sealBytes({ key, nonce: randomBytes(12), context: 'here', plaintext });

  test('open under their key and context only', () => {
    expect(openBytes({ key, context: 'here', sealed })).toEqual(plaintext);
    expect(openBytes({ key, context: 'there', sealed })).toBeUndefined();
    expect(openBytes({ key: randomBytes(32), context: 'here', sealed })).toBeUndefined();
    expect(openBytes({ key, context: 'here', sealed: sealed.subarray(0, 20) })).toBeUndefined();
    for (let at = 0; at < sealed.length; at++) {
      const changed = Uint8Array.from(sealed);
      changed[at] = must(changed[at], 'a byte') ^ 0x80;
      expect(openBytes({ key, context: 'here', sealed: changed })).toBeUndefined();
    }
  });
});
