// The checksum of a range of stored data. Stored CRCs of chunks are combined, so that at most the two edge chunks of each
// blob are read; for any other algorithm the range is read and digested.
import { createHash } from 'node:crypto';
import { must } from '../base/assert.ts';
import { EMPTY_BYTES, toBase64 } from '../base/bytes/bytes.ts';
import { type CrcAlgorithm, crcCombine, crcOf, createCrc } from '../base/crypto/crc.ts';
import { type ChecksumAlgorithm, isCrc } from '../types/checksums.ts';
import { type BlobId, homeShardOf } from '../types/names.ts';
import type { BlobRecord } from '../types/records/rows.ts';
import { turnOf } from '../types/tenant.ts';
import type { DataPath } from './data-path.ts';
import { type BlobRun, type ChunkRun, chunkRuns, locateBlobRuns } from './locate-runs.ts';
import type { MetadataCalls } from './object-store.ts';
import { type BodyToRead, readPlaintext } from './read-body.ts';

/** Chunks whose CRCs are combined in one turn; they take less than a millisecond. */
const CHUNKS_OF_TURN = 1000;

/** What readPlaintext needs, without the options that end a read early. */
export type RangeToDigest = Omit<BodyToRead, 'onEvicted' | 'tenant'>;

/** base64. Throws as reading does. */
export async function checksumOfRange(
  path: DataPath,
  body: RangeToDigest,
  algorithm: ChecksumAlgorithm,
): Promise<string> {
  if (isCrc(algorithm)) return toBase64(await combinedCrc(path, body, algorithm));
  const hash = createHash(algorithm.toLowerCase());
  for await (const piece of piecesInTurns(path, body)) hash.update(piece);
  return hash.digest('base64');
}

/** Each when it is the account's turn: a digest of 256 KiB takes some tenths of a millisecond, and copies come in crowds. */
async function* piecesInTurns(path: DataPath, body: RangeToDigest): AsyncGenerator<Buffer> {
  const turn = turnOf(body.calls.tenant, 'digests');
  for await (const piece of readPlaintext(path, neverEvicted(body))) {
    await path.turns.take(turn);
    yield piece;
  }
}

/** A copy that stands still while others wait for memory gets the error at its next read. */
function neverEvicted(body: RangeToDigest): BodyToRead {
  return { ...body, tenant: body.calls.tenant, isWithin: true, onEvicted() {} };
}

async function combinedCrc(
  path: DataPath,
  body: RangeToDigest,
  algorithm: CrcAlgorithm,
): Promise<Uint8Array> {
  let whole = crcOf(algorithm, EMPTY_BYTES);
  let offsetBytes = body.range.offsetBytes;
  const turn = turnOf(body.calls.tenant, 'digests');
  let count = 0;
  for await (const runs of locateBlobRuns(body.calls, body.manifest, body.range)) {
    const stored = await storedCrcs(body.calls, runs, algorithm);
    for (const run of chunkRuns(runs)) {
      if (++count % CHUNKS_OF_TURN === 0) await path.turns.take(turn);
      const sizeBytes = run.toBytes - run.fromBytes;
      const crc =
        storedCrc(run, stored) ??
        (await readCrc(path, { ...body, range: { offsetBytes, sizeBytes } }, algorithm));
      whole = crcCombine(algorithm, whole, crc, sizeBytes);
      offsetBytes += sizeBytes;
    }
  }
  return whole;
}

/** CRCs of chunks, in order, by blob; absent where this algorithm was not stored. */
async function storedCrcs(
  calls: MetadataCalls,
  runs: readonly BlobRun[],
  algorithm: CrcAlgorithm,
): Promise<Map<BlobId, Uint8Array>> {
  const stored = new Map<BlobId, Uint8Array>();
  const blobIds = [...new Set(runs.map(({ use }) => use.blobId))];
  for (const [shard, ofHome] of Map.groupBy(blobIds, homeShardOf)) {
    const { value } = await calls.query({ shard }, 'get-blobs', { blobIds: ofHome });
    for (const [index, blob] of value.blobs.entries()) {
      const values = blob === null ? undefined : valuesOf(blob, algorithm);
      if (values !== undefined) stored.set(must(ofHome[index], 'a blob each'), values);
    }
  }
  return stored;
}

function valuesOf(blob: BlobRecord, algorithm: CrcAlgorithm): Uint8Array | undefined {
  if (algorithm === 'CRC32') return blob.chunkCrc32;
  return blob.chunkCrcs?.algorithm === algorithm ? blob.chunkCrcs.values : undefined;
}

/** The stored CRC of a run that is a whole chunk. */
function storedCrc(run: ChunkRun, stored: ReadonlyMap<BlobId, Uint8Array>): Uint8Array | undefined {
  const isWhole = run.fromBytes === 0 && run.toBytes === run.chunkBytes;
  const values = isWhole ? stored.get(run.use.blobId) : undefined;
  if (values === undefined) return undefined;
  const widthBytes = values.length / Math.ceil(run.use.sizeBytes / run.use.chunkSizeBytes);
  return values.subarray(run.chunkIndex * widthBytes, (run.chunkIndex + 1) * widthBytes);
}

async function readCrc(path: DataPath, body: RangeToDigest, algorithm: CrcAlgorithm): Promise<Uint8Array> {
  const crc = createCrc(algorithm);
  for await (const piece of piecesInTurns(path, body)) crc.update(piece);
  return crc.digest();
}
