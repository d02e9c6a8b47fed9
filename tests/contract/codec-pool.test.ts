// What every CodecPoolPort promises (src/ports/codec-pool.ts), run over each adapter.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { toHex } from '../../src/base/bytes/bytes.ts';
import { crcOf } from '../../src/base/crypto/crc.ts';
import { blockCount, layPlaintext, openBlock, sealedBytes } from '../../src/base/crypto/seal.ts';
import { inlineCodecPool } from '../../src/platform/codec/inline-codec-pool.ts';
import { createCodecPool } from '../../src/platform/codec/piscina-codec-pool.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import type { CodecPoolPort } from '../../src/ports/codec-pool.ts';

const threads = createCodecPool({ workers: 1 });
afterAll(() => threads.close());

const BLOCK_BYTES = 16 * 1024;
const CHUNK = 80 * 1024;
/** More than is worked on where it is. */
const BYTES = 200 * 1024;
const blobId = '00112233445566778899aabbccddeeff';
const dataKey = randomBytes(32);

function cut(body: Uint8Array) {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < body.length; at += CHUNK) parts.push(body.subarray(at, at + CHUNK));
  return parts.map((plaintext, index) => {
    const bytes = new Uint8Array(sealedBytes({ sizeBytes: plaintext.length, blockBytes: BLOCK_BYTES }));
    layPlaintext(bytes, plaintext, { offsetBytes: 0, blockBytes: BLOCK_BYTES });
    return { bytes, sizeBytes: plaintext.length, isLast: index === parts.length - 1 };
  });
}

/** Of a chunk that is laid out. */
function plaintextOf({ bytes, sizeBytes }: { bytes: Uint8Array; sizeBytes: number }): Buffer {
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < sizeBytes; at += BLOCK_BYTES) {
    const begin = at + (at / BLOCK_BYTES) * 16;
    blocks.push(Uint8Array.from(bytes.subarray(begin, begin + Math.min(BLOCK_BYTES, sizeBytes - at))));
  }
  return Buffer.concat(blocks);
}

function open(pool: CodecPoolPort, sizeBytes: number) {
  return pool.open({
    blobId,
    dataKey,
    blockBytes: BLOCK_BYTES,
    hashes: ['MD5', 'SHA256'],
    crcs: ['CRC32', 'CRC64NVME'],
    sizeBytes,
  });
}

describe.each([
  ['inline', inlineCodecPool],
  ['piscina', threads],
])('%s', (_name, pool) => {
  test.each([1, BLOCK_BYTES, CHUNK, 3 * CHUNK - 1, 5 * CHUNK + 7])(
    'seals and digests %i bytes',
    async (size) => {
      const body = randomBytes(size);
      const chunks = cut(body);
      const sealer = open(pool, size);
      const sizes = chunks.map(({ sizeBytes }) => sizeBytes);
      const sealed = await Promise.all(chunks.map((chunk) => sealer.seal(chunk)));
      const hashes = await sealer.finish();
      sealer.abandon();
      expect(toHex(hashes.MD5 ?? new Uint8Array())).toBe(createHash('md5').update(body).digest('hex'));
      expect(toHex(hashes.SHA256 ?? new Uint8Array())).toBe(createHash('sha256').update(body).digest('hex'));
      const opened: Uint8Array[] = [];
      for (const [chunkIndex, { bytes, crcs }] of sealed.entries()) {
        const sizeBytes = sizes[chunkIndex] ?? 0;
        const isLastChunk = chunkIndex === sealed.length - 1;
        const position = { blobId, chunkIndex, isLastChunk, sizeBytes, blockBytes: BLOCK_BYTES };
        const plain = body.subarray(chunkIndex * CHUNK, chunkIndex * CHUNK + sizeBytes);
        expect(toHex(crcs.CRC32 ?? new Uint8Array())).toBe(toHex(crcOf('CRC32', plain)));
        expect(toHex(crcs.CRC64NVME ?? new Uint8Array())).toBe(toHex(crcOf('CRC64NVME', plain)));
        for (let block = 0; block < blockCount(position); block++)
          opened.push(openBlock({ dataKey, position, chunk: bytes, block }) ?? Buffer.from('not opened'));
      }
      expect(Buffer.concat(opened).equals(body)).toBe(true);
    },
  );

  test.each([1, 1000, BLOCK_BYTES, CHUNK + 1])(
    'digests pieces of %i bytes, over the bounds of chunks',
    async (pieceBytes) => {
      const body = randomBytes(3 * CHUNK + 7);
      const pieces = Array.from({ length: Math.ceil(body.length / pieceBytes) }, (_, index) =>
        body.subarray(index * pieceBytes, (index + 1) * pieceBytes),
      );
      const ends = pieces.map((piece, index) => index * pieceBytes + piece.length);
      const sealer = open(pool, body.length);
      const found: Uint8Array[] = [];
      for (const [index, chunk] of cut(body).entries()) {
        const from = index * CHUNK;
        const pieceEnds = ends
          .filter((end) => end > from && end <= from + chunk.sizeBytes)
          .map((end) => end - from);
        found.push((await sealer.seal({ ...chunk, pieceEnds })).pieceSha256s ?? Buffer.from('none'));
      }
      await sealer.finish();
      sealer.abandon();
      const expected = pieces.map((piece) => createHash('sha256').update(piece).digest());
      expect(Buffer.concat(found).equals(Buffer.concat(expected))).toBe(true);
    },
  );

  test('opens some blocks of a chunk, each in memory of its own, up to one that does not verify', async () => {
    const blockBytes = 256 * 1024;
    const sizeBytes = 3 * blockBytes + 5;
    const body = randomBytes(sizeBytes);
    const bytes = new Uint8Array(sealedBytes({ sizeBytes, blockBytes }));
    layPlaintext(bytes, body, { offsetBytes: 0, blockBytes });
    const options = { blobId, dataKey, blockBytes, hashes: [], crcs: [], sizeBytes };
    const sealed = await pool.open(options).seal({ bytes, sizeBytes, isLast: true });
    const chunk = Uint8Array.from(sealed.bytes);
    const damaged = Uint8Array.from(chunk);
    damaged[2 * blockBytes + 100] = must(damaged[2 * blockBytes + 100], 'a byte') ^ 1;
    const position = { blobId, chunkIndex: 0, isLastChunk: true, sizeBytes, blockBytes };
    const whole = await pool.openBlocks({ dataKey, position, chunk, fromBlock: 1, toBlock: 4 });
    expect(Buffer.concat(whole).equals(body.subarray(blockBytes))).toBe(true);
    expect(whole.map((block) => block.buffer.byteLength)).toEqual([blockBytes, blockBytes, 5]);
    const some = await pool.openBlocks({ dataKey, position, chunk: damaged, fromBlock: 0, toBlock: 4 });
    expect(some.map((block) => block.length)).toEqual([blockBytes, blockBytes]);
  });

  test('opens blocks of a chunk in memory of the database, which cannot be moved to a thread', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-codec-'));
    const kv = await openRocksdbKv({
      folder,
      columns: { bodies: { reads: 'async', content: 'ciphertext' } },
    });
    try {
      const body = randomBytes(BYTES);
      const chunk = new Uint8Array(sealedBytes({ sizeBytes: BYTES, blockBytes: BLOCK_BYTES }));
      layPlaintext(chunk, body, { offsetBytes: 0, blockBytes: BLOCK_BYTES });
      const { bytes } = await open(pool, BYTES).seal({ bytes: chunk, sizeBytes: BYTES, isLast: true });
      const key = Uint8Array.of(1);
      await kv.commit([{ column: 'bodies', key, value: bytes }]);
      const [stored] = await kv.getMany('bodies', [key]);
      const position = {
        blobId,
        chunkIndex: 0,
        isLastChunk: true,
        sizeBytes: BYTES,
        blockBytes: BLOCK_BYTES,
      };
      const opened = await pool.openBlocks({
        dataKey,
        position,
        chunk: must(stored, 'a row') as Uint8Array<ArrayBuffer>,
        fromBlock: 0,
        toBlock: blockCount(position),
      });
      expect(Buffer.concat(opened).equals(body)).toBe(true);
    } finally {
      await kv.close();
      await rm(folder, { recursive: true });
    }
  });

  test('returns an ArrayBuffer of the given size', async () => {
    const [chunk] = cut(randomBytes(CHUNK));
    if (chunk === undefined) throw new Error('one chunk');
    const { bytes } = await open(pool, CHUNK).seal({ ...chunk, bytes: new Uint8Array(chunk.bytes) });
    expect(bytes.buffer.byteLength).toBe(sealedBytes({ sizeBytes: CHUNK, blockBytes: BLOCK_BYTES }));
  });

  test('waiting bodies do not delay others, and may be abandoned at any time', async () => {
    const size = 2 * CHUNK;
    const waiting = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const sealer = open(pool, size);
        const [first] = cut(randomBytes(size));
        if (first !== undefined) await sealer.seal(first);
        return sealer;
      }),
    );
    const body = randomBytes(size);
    const sealer = open(pool, size);
    await Promise.all(cut(body).map((chunk) => sealer.seal(chunk)));
    expect(toHex((await sealer.finish()).MD5 ?? new Uint8Array())).toBe(
      createHash('md5').update(body).digest('hex'),
    );
    for (const abandoned of waiting) {
      abandoned.abandon();
      abandoned.abandon();
    }
  });

  test('a chunk that does not fit its plaintext is refused, and ends the body', async () => {
    const sealer = open(pool, 3 * CHUNK);
    await expect(sealer.seal({ bytes: new Uint8Array(10), sizeBytes: 10, isLast: false })).rejects.toThrow(
      'room for its tags',
    );
    sealer.abandon();
  });
});

test('a chunk in memory that threads share is sealed there, and its call ends after that, also behind an abandon', async () => {
  const chunks = cut(randomBytes(2 * CHUNK)).map(({ bytes, ...chunk }) => {
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length + 100), 100);
    shared.set(bytes);
    return { ...chunk, bytes: shared };
  });
  const expected = open(inlineCodecPool, BYTES);
  const sealed = await Promise.all(
    cut(Buffer.concat(chunks.map(plaintextOf))).map((chunk) => expected.seal(chunk)),
  );
  const sealer = open(threads, BYTES);
  const sealing = Promise.all(chunks.map((chunk) => sealer.seal(chunk)));
  sealer.abandon();
  for (const [at, { bytes, sealedCrc32 }] of (await sealing).entries()) {
    expect(bytes).toBe(chunks[at]?.bytes);
    expect(Buffer.from(bytes).equals(must(sealed[at], 'as many').bytes)).toBe(true);
    expect(sealedCrc32).toBe(sealed[at]?.sealedCrc32);
  }
  await expect(sealer.seal(must(chunks[0], 'two chunks'))).rejects.toThrow('closed');
});

test('closing the pool rejects work under way', async () => {
  const pool = createCodecPool({ workers: 1 });
  const sealer = open(pool, 3 * CHUNK);
  const [first] = cut(randomBytes(2 * CHUNK));
  if (first !== undefined) await sealer.seal(first);
  await pool.close();
  await expect(sealer.finish()).rejects.toThrow();
});
