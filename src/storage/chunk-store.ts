// The chunks of one disk: the ChunkPort of the embedded form, and what a storage node serves. It keeps sealed bytes and
// checks them; it knows neither keys nor objects, and never deletes on its own (R38).
import { crc32 } from 'node:zlib';
import { createByteGate } from '../lib/byte-gate.ts';
import { concatBytes } from '../lib/bytes.ts';
import { OldFence, OtherBytes } from '../model/chunk-refusals.ts';
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ChunkId, ChunkPort, ChunkRead, ChunkTotals, Fence, StoredChunk } from '../ports/chunks.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { DiskReservePort } from '../ports/disk-reserve.ts';
import type { KvPort } from '../ports/kv.ts';
import type { Logger } from '../ports/telemetry.ts';
import {
  dataKey,
  decodeFence,
  decodeIndexRow,
  decodeTotals,
  encodeFence,
  encodeIndexRow,
  encodeTotals,
  fenceKey,
  indexBounds,
  indexKey,
  isIndexKey,
  parseIndexKey,
  TOTALS_KEY,
} from './keyspace.ts';

export interface ChunkStoreDeps {
  /** With the columns CHUNK_COLUMNS. */
  kv: KvPort;
  reserve: DiskReservePort;
  clock: ClockPort;
  log: Logger;
}

const NOTHING: ChunkTotals = { chunkCount: 0, liveBytes: 0 };
const RECOUNT_ROWS = 1000;

interface Checksum {
  sizeBytes: number;
  crc32: number;
}

export async function openChunkStore(deps: ChunkStoreDeps): Promise<ChunkPort> {
  const [totals] = await deps.kv.getMany('index', [TOTALS_KEY]);
  return new ChunkStore(deps, totals === undefined ? { ...NOTHING } : decodeTotals(totals));
}

class ChunkStore implements ChunkPort {
  readonly #kv: KvPort;
  readonly #reserve: DiskReservePort;
  readonly #clock: ClockPort;
  readonly #log: Logger;
  /** Goes into every commit as an absolute row: commits apply in the order of the calls, so the last one is right. */
  readonly #totals: ChunkTotals;
  /** Chunks wait here, rather than being refused by a store whose queue is full. */
  readonly #gate = createByteGate(LIMITS.chunkPutsBytesMax);
  /** Puts under way, so that one that is sent twice at once is still compared. */
  readonly #puts = new Map<string, Checksum & { done: Promise<undefined> }>();
  /** One after the other, so that a chunk is counted out once. */
  #lastDrop: Promise<unknown> = Promise.resolve();

  constructor(deps: ChunkStoreDeps, totals: ChunkTotals) {
    this.#kv = deps.kv;
    this.#reserve = deps.reserve;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#totals = totals;
  }

  async put(id: ChunkId, bytes: Uint8Array, taken?: number): Promise<undefined> {
    const checksum = { sizeBytes: bytes.length, crc32: taken ?? crc32(bytes) };
    const name = nameOf(id);
    const underWay = this.#puts.get(name);
    if (underWay !== undefined) {
      assertSame(id, underWay, checksum);
      return underWay.done;
    }
    const done = this.#store(id, bytes, checksum).finally(() => this.#puts.delete(name));
    this.#puts.set(name, { ...checksum, done });
    return done;
  }

  async #store(id: ChunkId, bytes: Uint8Array, checksum: Checksum): Promise<undefined> {
    const [known] = await this.#kv.getMany('index', [indexKey(id)]);
    if (known !== undefined) {
      assertSame(id, decodeIndexRow(known), checksum);
      return;
    }
    const { sizeBytes } = checksum;
    const hold = await this.#reserve.hold(sizeBytes);
    if (hold === undefined) throw new AppError('InsufficientStorage');
    await this.#gate.enter(sizeBytes);
    const row = encodeIndexRow({ ...checksum, receivedAtMs: this.#clock.wallMs() });
    this.#count(1, sizeBytes);
    try {
      await this.#kv.commit([
        { column: 'data', key: dataKey(id), value: bytes },
        { column: 'index', key: indexKey(id), value: row },
        { column: 'index', key: TOTALS_KEY, value: encodeTotals(this.#totals) },
      ]);
    } catch (error) {
      this.#count(-1, -sizeBytes);
      throw error instanceof AppError ? error : new AppError('ServiceUnavailable', { cause: error });
    } finally {
      this.#gate.leave(sizeBytes);
      hold.release();
    }
  }

  async get(id: ChunkId, { isProven } = { isProven: false }): Promise<ChunkRead> {
    try {
      const [[row], [bytes]] = await Promise.all([
        this.#kv.getMany('index', [indexKey(id)]),
        this.#kv.getMany('data', [dataKey(id)]),
      ]);
      if (row === undefined && bytes === undefined) return { kind: 'missing' };
      if (row === undefined || bytes === undefined) return this.#halfOf(id);
      const { sizeBytes, crc32: expected } = decodeIndexRow(row);
      if (bytes.length !== sizeBytes || (!isProven && crc32(bytes) !== expected))
        return this.#damaged(id, 'checksum mismatch');
      return { kind: 'found', bytes, checksum: expected };
    } catch (error) {
      return this.#damaged(id, error);
    }
  }

  /** A put or a drop may have come between the two reads: then the row has changed. */
  async #halfOf(id: ChunkId): Promise<ChunkRead> {
    const [row] = await this.#kv.getMany('index', [indexKey(id)]);
    const [bytes] = await this.#kv.getMany('data', [dataKey(id)]);
    if (row === undefined && bytes === undefined) return { kind: 'missing' };
    if (row !== undefined && bytes !== undefined) return this.get(id, { isProven: false });
    return this.#damaged(id, 'half of it is missing');
  }

  #damaged(id: ChunkId, err: unknown): ChunkRead {
    this.#log.error({ ...id, err }, 'chunk-damaged');
    return { kind: 'damaged' };
  }

  async have(ids: readonly ChunkId[]): Promise<(StoredChunk | null)[]> {
    const rows = await this.#kv.getMany('index', ids.map(indexKey));
    return rows.map((row) => {
      if (row === undefined) return null;
      const { sizeBytes, crc32: checksum, receivedAtMs } = decodeIndexRow(row);
      return { sizeBytes, checksum, receivedAtMs };
    });
  }

  drop(ids: readonly ChunkId[], fence: Fence): Promise<void> {
    const done = this.#lastDrop.then(() => this.#drop(ids, fence));
    this.#lastDrop = done.catch(() => {});
    return done;
  }

  async #drop(ids: readonly ChunkId[], fence: Fence): Promise<void> {
    const [seen, ...rows] = await this.#kv.getMany('index', [fenceKey(fence.shard), ...ids.map(indexKey)]);
    const order = seen === undefined ? 1 : compareFences(fence, decodeFence(seen));
    if (order < 0) throw new OldFence();
    const present = ids.flatMap((id, at) => {
      const row = rows[at];
      return row === undefined ? [] : [{ id, sizeBytes: decodeIndexRow(row).sizeBytes }];
    });
    for (const { sizeBytes } of present) this.#count(-1, -sizeBytes);
    await this.#kv.commit([
      ...present.flatMap(({ id }) => [
        { column: 'data', key: dataKey(id), value: null },
        { column: 'index', key: indexKey(id), value: null },
      ]),
      { column: 'index', key: TOTALS_KEY, value: encodeTotals(this.#totals) },
      ...(order > 0 ? [{ column: 'index', key: fenceKey(fence.shard), value: encodeFence(fence) }] : []),
    ]);
  }

  async list(options: { after?: ChunkId; limit: number }): ReturnType<ChunkPort['list']> {
    const rows = await this.#kv.range({
      column: 'index',
      ...indexBounds(options.after),
      limit: options.limit,
    });
    return rows.map(({ key, value }) => {
      const { sizeBytes, receivedAtMs } = decodeIndexRow(value);
      return { id: parseIndexKey(key), sizeBytes, receivedAtMs };
    });
  }

  async usage(): ReturnType<ChunkPort['usage']> {
    const space = await this.#reserve.measure();
    const stored = this.#kv.usage();
    // Everything the store holds beyond the live chunks waits to be compacted away.
    const heldBytes = stored.liveBytes + stored.pendingReclaimBytes;
    return {
      ...this.#totals,
      pendingReclaimBytes: Math.max(0, heldBytes - this.#totals.liveBytes),
      diskFreeBytes: space.freeBytes,
      diskTotalBytes: space.totalBytes,
    };
  }

  async recount(): ReturnType<ChunkPort['recount']> {
    const counted = { chunkCount: 0, liveBytes: 0 };
    const { gte } = indexBounds();
    // The totals lie behind the chunks: one cursor sees both as they were at one moment (L3).
    const cursor = this.#kv.cursor({ column: 'index', gte, lt: concatBytes(TOTALS_KEY, Uint8Array.of(0)) });
    try {
      for (let isInside = true; isInside; ) {
        // As many as are read on another thread.
        const rows = await cursor.next(RECOUNT_ROWS);
        for (const { key, value } of rows) {
          if (!isIndexKey(key)) continue;
          counted.chunkCount++;
          counted.liveBytes += decodeIndexRow(value).sizeBytes;
        }
        isInside = rows.length === RECOUNT_ROWS;
      }
      cursor.seek(TOTALS_KEY);
      const [totals] = await cursor.next(1);
      return { counted, kept: totals === undefined ? { ...NOTHING } : decodeTotals(totals.value) };
    } finally {
      cursor.close();
    }
  }

  #count(chunks: number, bytes: number): void {
    this.#totals.chunkCount += chunks;
    this.#totals.liveBytes += bytes;
  }
}

function nameOf({ blobId, index }: ChunkId): string {
  return `${blobId}.${index}`;
}

function assertSame(id: ChunkId, stored: Checksum, given: Checksum): void {
  const isSame = stored.sizeBytes === given.sizeBytes && stored.crc32 === given.crc32;
  if (!isSame) throw new OtherBytes(nameOf(id));
}

function compareFences(
  a: Pick<Fence, 'incarnation' | 'epoch'>,
  b: Pick<Fence, 'incarnation' | 'epoch'>,
): number {
  return a.incarnation - b.incarnation || a.epoch - b.epoch;
}
