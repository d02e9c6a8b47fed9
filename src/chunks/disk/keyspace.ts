// All keys of a disk's store. Column `data`: sealed chunks by id, in time order, so that compaction moves tables instead of
// rewriting them. Column `index`: what is known of each chunk, and the disk's own rows.
import { assert } from '../../base/assert.ts';
import { asBuffer } from '../../base/bytes/bytes.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { ChunkId, ChunkTotals, Fence } from '../../ports/chunks.ts';
import type { KvPut } from '../../ports/kv.ts';
import type { BlobId } from '../../types/names.ts';

/** `data` first: usage is reported for the first column. */
export const CHUNK_COLUMNS = ['data', 'index'] as const;

const CHUNK_KEY_BYTES = 20;
const TABLE = {
  chunk: 1,
  fence: 2,
  totals: 3,
  disk: 4,
  quarantine: 5,
  scrub: 6,
  commits: 7,
  unread: 8,
  lost: 9,
  place: 10,
} as const;
/** Column `index`: table 10 | key in `data`: where the bytes of a large chunk are, which is not in `data` then (platform/extents). */
export const CHUNK_PLACES = {
  column: 'data',
  placeColumn: 'index',
  placePrefix: Uint8Array.of(TABLE.place),
} as const;

const FORMAT = 1;

/** Column `data`: blob id 16 | index 4. */
export function dataKey(id: ChunkId): Uint8Array {
  const key = Buffer.allocUnsafeSlow(CHUNK_KEY_BYTES);
  writeChunkId(key, 0, id);
  return key;
}

/** Above all ids, whose times are far below, so no key is a prefix of another. */
const QUARANTINE_DATA = 0xff;

/** Column `data`: 255 | blob id 16 | index 4: quarantined bytes (R40). */
export function quarantineDataKey(id: ChunkId): Uint8Array {
  return keyIn(QUARANTINE_DATA, id);
}

/** The range of column `data` that belongs to index keys from `gte` to `lt`. */
export function dataBounds({ gte, lt }: { gte: Uint8Array; lt: Uint8Array }): {
  gte: Uint8Array;
  lt: Uint8Array;
} {
  return {
    gte: gte.length > 1 ? gte.slice(1) : Uint8Array.of(0),
    lt: lt[0] === TABLE.chunk ? lt.slice(1) : Uint8Array.of(QUARANTINE_DATA),
  };
}

/** The index key for a position in column `data`; never longer than a key plus one byte, so that steps do not grow it. */
export function indexPosition(dataPosition: Uint8Array): Uint8Array {
  const key = Buffer.concat([Uint8Array.of(TABLE.chunk), dataPosition.subarray(0, CHUNK_KEY_BYTES)]);
  return dataPosition.length > CHUNK_KEY_BYTES ? keyBehind(key) : key;
}

export function parseDataKey(key: Uint8Array): ChunkId {
  return readChunkId(key, 0);
}

/** Column `index`: table 1 | blob id 16 | index 4. */
export function indexKey(id: ChunkId): Uint8Array {
  return keyIn(TABLE.chunk, id);
}

/** Takes chunks out of both columns. */
export function removalsOf(ids: readonly ChunkId[]): KvPut[] {
  return ids.flatMap((id) => [
    { column: 'data', key: dataKey(id), value: null },
    { column: 'index', key: indexKey(id), value: null },
  ]);
}

/** Of a chunk that is stored, quarantined, or could not be read. */
export function parseIndexKey(key: Uint8Array): ChunkId {
  return readChunkId(key, 1);
}

export function isIndexKey(key: Uint8Array): boolean {
  return key[0] === TABLE.chunk;
}

/** Index rows of chunks after `after`; without it, of all chunks. */
export function indexBounds(after?: ChunkId): { gte: Uint8Array; lt: Uint8Array } {
  return boundsIn(TABLE.chunk, after);
}

/** Column `index`: table 5 | blob id 16 | index 4: a quarantined copy (R40). */
export function quarantineKey(id: ChunkId): Uint8Array {
  return keyIn(TABLE.quarantine, id);
}

export function quarantineBounds(after?: ChunkId): { gte: Uint8Array; lt: Uint8Array } {
  return boundsIn(TABLE.quarantine, after);
}

/** Column `index`: table 8 | blob id 16 | index 4: a copy that could not be read (unread-chunks.ts). */
export function unreadKey(id: ChunkId): Uint8Array {
  return keyIn(TABLE.unread, id);
}

export function unreadBounds(): { gte: Uint8Array; lt: Uint8Array } {
  return boundsIn(TABLE.unread, undefined);
}

/** Column `index`: table 9 | blob id 16 | index 4: a chunk that is damaged or missing for good (lost-chunks.ts). */
export function lostKey(id: ChunkId): Uint8Array {
  return keyIn(TABLE.lost, id);
}

export function lostBounds(): { gte: Uint8Array; lt: Uint8Array } {
  return boundsIn(TABLE.lost, undefined);
}

function boundsIn(table: number, after: ChunkId | undefined): { gte: Uint8Array; lt: Uint8Array } {
  const lt = Uint8Array.of(table + 1);
  return { gte: after === undefined ? Uint8Array.of(table) : keyBehind(keyIn(table, after)), lt };
}

/** The next key that there may be. */
export function keyBehind(key: Uint8Array): Uint8Array {
  return Buffer.concat([key, Uint8Array.of(0)]);
}

/** Column `index`: the highest fence seen of a shard (R21). */
export function fenceKey(shard: number): Uint8Array {
  return Uint8Array.of(TABLE.fence, shard >> 8, shard & 255);
}

/** Column `index`: how much the disk holds. */
export const TOTALS_KEY = Uint8Array.of(TABLE.totals);

/** Column `index`: who the disk is. */
export const DISK_KEY = Uint8Array.of(TABLE.disk);

/** Column `index`: the progress of the scrub (scrub.ts). */
export const SCRUB_KEY = Uint8Array.of(TABLE.scrub);

/** Column `index`: the number of synced commits (witnessed-kv.ts). */
export const COMMITS_KEY = Uint8Array.of(TABLE.commits);

function keyIn(table: number, id: ChunkId): Uint8Array {
  const key = Buffer.allocUnsafeSlow(1 + CHUNK_KEY_BYTES);
  key[0] = table;
  writeChunkId(key, 1, id);
  return key;
}

function readChunkId(key: Uint8Array, at: number): ChunkId {
  const bytes = asBuffer(key);
  return { blobId: bytes.toString('hex', at, at + 16) as BlobId, index: bytes.readUInt32BE(at + 16) };
}

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

/** A quarantined copy. Size and checksum are absent where its index row was lost, too. */
export interface QuarantineRow {
  sizeBytes?: number;
  crc32?: number;
  asideAtMs: number;
  /** Whether there are bytes under `quarantineDataKey`, or where they were. */
  hasBytes: boolean;
  /**
   * It could not be moved for want of room: its bytes are still under `dataKey`, without an index row, until a new copy is
   * put there.
   */
  isInPlace?: boolean;
}

export const quarantineCodec = defineRecord<QuarantineRow>({ name: 'quarantined', version: 1 });

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

/** format 1 | commits 8 */
export function encodeCommits(count: number): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(9);
  bytes[0] = FORMAT;
  bytes.writeDoubleBE(count, 1);
  return bytes;
}

export function decodeCommits(stored: Uint8Array): number {
  return known(stored).readDoubleBE(1);
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
