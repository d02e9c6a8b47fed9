// Every key of a disk's store on one page. Columns: `data`, sealed chunks by id, which is time order, so that compaction
// moves tables instead of rewriting them; `index`, what is known of each chunk, and the disk's own rows.
import { assert } from '../lib/assert.ts';
import { asBuffer } from '../lib/bytes.ts';
import type { BlobId } from '../model/names.ts';
import type { ChunkId, ChunkTotals, Fence } from '../ports/chunks.ts';

/** `data` first: usage is told of the first column. */
export const CHUNK_COLUMNS = ['data', 'index'] as const;

const CHUNK_KEY_BYTES = 20;
const TABLE = { chunk: 1, fence: 2, totals: 3, disk: 4 } as const;
const FORMAT = 1;

/** Column `data`: blob id 16 | index 4. */
export function dataKey(id: ChunkId): Uint8Array {
  const key = Buffer.allocUnsafeSlow(CHUNK_KEY_BYTES);
  writeChunkId(key, 0, id);
  return key;
}

/** Column `index`: table 1 | blob id 16 | index 4. */
export function indexKey(id: ChunkId): Uint8Array {
  const key = Buffer.allocUnsafeSlow(1 + CHUNK_KEY_BYTES);
  key[0] = TABLE.chunk;
  writeChunkId(key, 1, id);
  return key;
}

export function parseIndexKey(key: Uint8Array): ChunkId {
  const bytes = asBuffer(key);
  return { blobId: bytes.toString('hex', 1, 17) as BlobId, index: bytes.readUInt32BE(17) };
}

export function isIndexKey(key: Uint8Array): boolean {
  return key[0] === TABLE.chunk;
}

/** Index rows of chunks after `after`, all of them without it. */
export function indexBounds(after?: ChunkId): { gte: Uint8Array; lt: Uint8Array } {
  const lt = Uint8Array.of(TABLE.chunk + 1);
  if (after === undefined) return { gte: Uint8Array.of(TABLE.chunk), lt };
  return { gte: Buffer.concat([indexKey(after), Uint8Array.of(0)]), lt };
}

/** Column `index`: the highest fence seen of a shard (R21). */
export function fenceKey(shard: number): Uint8Array {
  return Uint8Array.of(TABLE.fence, shard >> 8, shard & 255);
}

/** Column `index`: how much the disk holds. */
export const TOTALS_KEY = Uint8Array.of(TABLE.totals);

/** Column `index`: who the disk is. */
export const DISK_KEY = Uint8Array.of(TABLE.disk);

function writeChunkId(key: Buffer, at: number, { blobId, index }: ChunkId): void {
  key.write(blobId, at, 16, 'hex');
  key.writeUInt32BE(index, at + 16);
}

/** What the disk knows of a chunk without reading it. */
export interface IndexRow {
  sizeBytes: number;
  /** Of the sealed bytes. */
  crc32: number;
  /** Wall clock of the disk. */
  receivedAtMs: number;
}

/** format 1 | size 4 | crc 4 | received 6 */
export function encodeIndexRow(row: IndexRow): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(15);
  bytes[0] = FORMAT;
  bytes.writeUInt32BE(row.sizeBytes, 1);
  bytes.writeUInt32BE(row.crc32, 5);
  bytes.writeUIntBE(row.receivedAtMs, 9, 6);
  return bytes;
}

export function decodeIndexRow(stored: Uint8Array): IndexRow {
  const bytes = known(stored);
  return {
    sizeBytes: bytes.readUInt32BE(1),
    crc32: bytes.readUInt32BE(5),
    receivedAtMs: bytes.readUIntBE(9, 6),
  };
}

/** format 1 | chunks 8 | bytes 8 */
export function encodeTotals({ chunkCount, liveBytes }: ChunkTotals): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(17);
  bytes[0] = FORMAT;
  bytes.writeDoubleBE(chunkCount, 1);
  bytes.writeDoubleBE(liveBytes, 9);
  return bytes;
}

export function decodeTotals(stored: Uint8Array): ChunkTotals {
  const bytes = known(stored);
  return { chunkCount: bytes.readDoubleBE(1), liveBytes: bytes.readDoubleBE(9) };
}

/** format 1 | incarnation 8 | epoch 8 */
export function encodeFence({ incarnation, epoch }: Fence): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(17);
  bytes[0] = FORMAT;
  bytes.writeDoubleBE(incarnation, 1);
  bytes.writeDoubleBE(epoch, 9);
  return bytes;
}

export function decodeFence(stored: Uint8Array): Pick<Fence, 'incarnation' | 'epoch'> {
  const bytes = known(stored);
  return { incarnation: bytes.readDoubleBE(1), epoch: bytes.readDoubleBE(9) };
}

function known(stored: Uint8Array): Buffer {
  assert(stored[0] === FORMAT, `chunk store row: unknown format ${stored[0]}`);
  return asBuffer(stored);
}
