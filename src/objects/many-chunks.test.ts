// Objects of many chunks and pieces: what names them is made as it is needed, and counts.
import { expect, test } from 'vitest';
import { crcOf } from '../base/crypto/crc.ts';
import type { BlobId } from '../types/names.ts';
import type { Manifest } from '../types/version.ts';
import type { DataPath } from './data-path.ts';
import { chunkRuns } from './locate-runs.ts';
import { checksumOfRange, type RangeToDigest } from './range-checksum.ts';
import { type BodyToRead, readPlaintext } from './read-body.ts';

type DirectManifest = Extract<Manifest, { kind: 'direct' }>;

const BLOB = '00'.repeat(16) as BlobId;

function manifestOf(chunkCount: number, chunkSizeBytes: number): DirectManifest {
  const sizeBytes = chunkCount * chunkSizeBytes;
  const use = { blobId: BLOB, sizeBytes, chunkSizeBytes, storage: 'chunks', wrappedKey: new Uint8Array() };
  return {
    kind: 'direct',
    uses: [use],
    segments: [{ use: 0, offsetBytes: 0, sizeBytes }],
  } as unknown as DirectManifest;
}

test('the chunks of a part are named one after the other, and none before it is asked for', () => {
  const { uses } = manifestOf(2 ** 40, 1024);
  const [use] = uses;
  if (use === undefined) throw new Error('it has one');
  const runs = chunkRuns([{ use, offsetBytes: 1, sizeBytes: use.sizeBytes - 1 }]);
  const whole = { use, chunkBytes: 1024, isLastChunk: false, toBytes: 1024 };
  expect([runs.next().value, runs.next().value]).toEqual([
    { ...whole, chunkIndex: 0, fromBytes: 1 },
    { ...whole, chunkIndex: 1, fromBytes: 0 },
  ]);
});

test('stored CRCs of thousands of chunks are combined in turns of the account', async () => {
  const chunk = Buffer.alloc(4, 7);
  const chunkCount = 3500;
  const taken: unknown[] = [];
  const path = { turns: { take: async (turn: unknown) => void taken.push(turn) } } as unknown as DataPath;
  const chunkCrc32 = Buffer.concat(Array.from({ length: chunkCount }, () => crcOf('CRC32', chunk)));
  const calls = {
    tenant: { account: 'owner', address: '192.0.2.1' },
    query: async () => ({ value: { blobs: [{ chunkCrc32 }] } }),
  };
  const range = { offsetBytes: 0, sizeBytes: chunkCount * chunk.length };
  const body = { calls, manifest: manifestOf(chunkCount, chunk.length), range } as unknown as RangeToDigest;
  const expected = crcOf('CRC32', Buffer.alloc(range.sizeBytes, 7));
  expect(await checksumOfRange(path, body, 'CRC32')).toBe(Buffer.from(expected).toString('base64'));
  expect(taken).toEqual(Array.from({ length: 3 }, () => ({ owner: 'owner', work: 'digests' })));
});

test('who reads an object of many pieces counts what names them as long as it reads', async () => {
  const taken: string[] = [];
  const lease = {
    admit(sizeBytes: number) {
      taken.push(`admit ${sizeBytes}`);
    },
    holdBeside(sizeBytes: number) {
      taken.push(`beside ${sizeBytes}`);
    },
    hold(sizeBytes: number) {
      taken.push(`hold ${sizeBytes}`);
      throw new Error('enough');
    },
    close() {},
  };
  const path = {
    budget: { open: () => lease },
    settings: { chunkSizeBytes: 100 },
    clock: { monotonicMs: () => 0 },
  } as unknown as DataPath;
  const manifest = manifestOf(1, 100);
  const [segment] = manifest.segments;
  if (segment === undefined) throw new Error('it has one');
  for (const count of [64, 1000]) {
    const segments = Array.from({ length: count }, () => segment);
    const range = { offsetBytes: 0, sizeBytes: 100 };
    const body = { calls: {}, manifest: { ...manifest, segments }, range };
    await expect(readPlaintext(path, body as unknown as BodyToRead).next()).rejects.toThrow('enough');
  }
  // The chunk and the piece on its way; nothing is held before they are let in.
  expect(taken).toEqual(['admit 200', 'beside 0', 'hold 100', 'admit 512200', 'beside 512000', 'hold 100']);
});
