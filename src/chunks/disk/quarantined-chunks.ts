// Quarantine of copies that did not verify (R40). From the moment it is found, durably, such a copy counts as missing. Its
// bytes are kept under keys of their own until the chunk's home orders them dropped; a new copy may be stored beside them.
// Moving a copy needs room: where that would come from the reserve (R20) the copy stays in its place, and the put of a new
// copy moves it, if there is room for both.

import { type ReadPage, readPage } from '../../base/read-page.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskReservePort } from '../../ports/disk-reserve.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { homeShardOf } from '../../types/names.ts';
import { passUnread } from './chunk-checks.ts';
import { type ChunkHalves, judge, orLost, readHalves, readRows, type Verdict } from './chunk-halves.ts';
import type { DiskTotals } from './disk-totals.ts';
import {
  dataKey,
  indexKey,
  parseIndexKey,
  type QuarantineRow,
  quarantineBounds,
  quarantineCodec,
  quarantineDataKey,
  quarantineKey,
} from './keyspace.ts';

export interface QuarantineDeps {
  kv: KvPort;
  /** How halves of chunks are read. */
  reads: Pick<KvPort, 'getMany'>;
  reserve: Pick<DiskReservePort, 'hold'>;
  totals: DiskTotals;
  clock: ClockPort;
  log: Logger;
  onDamaged(): void;
}

const PAGE_ROWS = 1000;

export class QuarantinedChunks {
  readonly #deps: QuarantineDeps;
  #count = 0;

  private constructor(deps: QuarantineDeps) {
    this.#deps = deps;
  }

  static async open(deps: QuarantineDeps): Promise<QuarantinedChunks> {
    const quarantine = new QuarantinedChunks(deps);
    for await (const _id of quarantine.#ids(undefined)) quarantine.#count++;
    return quarantine;
  }

  get count(): number {
    return this.#count;
  }

  /** Reads the copy and judges it. A damaged copy that stayed in its place is known to be bad and is not read again. */
  async judge(id: ChunkId, how: { isProven: boolean }): Promise<Verdict> {
    const halves = await readHalves(this.#deps.reads, id);
    const verdict = judge(halves, how);
    if (verdict.kind !== 'damaged' || halves.row !== undefined) return verdict;
    const [found] = await this.#look([id]);
    return isInPlace(found) ? { kind: 'missing' } : verdict;
  }

  /**
   * Reads the copy once more, and quarantines it if it still does not verify. Runs in sequence with drops; only a put may
   * come between.
   */
  async take(id: ChunkId): Promise<'quarantined' | 'missing' | 'whole'> {
    const { reads, reserve, clock, log } = this.#deps;
    let halves = await readHalves(reads, id);
    // A put may have come between the two reads.
    if (halves.row === undefined || halves.bytes === undefined) halves = await readHalves(reads, id);
    const verdict = judge(halves, { isProven: false });
    if (verdict.kind !== 'damaged') return verdict.kind;
    const { row, bytes } = halves;
    const [before] = await this.#look([id]);
    if (row === undefined && isInPlace(before)) return 'missing';
    const kept = bytes === undefined || bytes === 'lost' ? undefined : Uint8Array.from(bytes);
    const facts = row === undefined || row === 'lost' ? {} : { sizeBytes: row.sizeBytes, crc32: row.crc32 };
    const record = { ...facts, asideAtMs: clock.wallMs(), hasBytes: kept !== undefined };
    const hold = kept && (await reserve.hold(kept.length));
    const bytesRows: KvPut[] = [{ column: 'data', key: dataKey(id), value: null }];
    if (kept !== undefined) bytesRows.push({ column: 'data', key: quarantineDataKey(id), value: kept });
    const stays = kept !== undefined && hold === undefined;
    try {
      await this.#commit(countedOf(halves), [
        { column: 'index', key: indexKey(id), value: null },
        quarantineRow(id, stays ? { ...record, isInPlace: true } : record),
        ...(stays ? [] : bytesRows),
      ]);
    } finally {
      hold?.release();
    }
    // A lost row may have been counted, or not. Until a restart the count may be too high: with a count too low nobody
    // would look.
    if (before === undefined || before === 'lost') this.#count++;
    this.#deps.onDamaged();
    log.error({ ...id, why: verdict.why }, 'chunk-damaged');
    return 'quarantined';
  }

  async #commit(counted: { chunks: number; bytes: number }, rows: KvPut[]): Promise<void> {
    const { kv, totals } = this.#deps;
    totals.count(-counted.chunks, -counted.bytes);
    await kv.commit([...rows, totals.row()]).catch((error: unknown) => {
      // Nothing was written; the damage will be found again.
      totals.count(counted.chunks, counted.bytes);
      throw error;
    });
  }

  /** Rows and room for a put that would overwrite a damaged copy in its place. The caller calls `moved` after the commit. */
  async rowsToMove(id: ChunkId): Promise<{ rows: KvPut[]; sizeBytes: number; moved(): void }> {
    const [found] = await this.#look([id]);
    const stays = found === 'lost' ? await this.#restOf(id) : found;
    const moved = () => {
      if (found === 'lost' && stays !== undefined) this.#count++;
    };
    if (!isInPlace(stays)) return { rows: [], sizeBytes: 0, moved };
    // Bytes that cannot be read cannot be kept.
    const read = orLost(() => this.#deps.reads.getMany('data', [dataKey(id)]), 1);
    const [bytes] = await read.catch((error: unknown) => [passUnread(error)]);
    const { isInPlace: _, ...record } = stays;
    if (bytes === undefined || bytes === 'lost')
      return { rows: [quarantineRow(id, { ...record, hasBytes: false })], sizeBytes: 0, moved };
    const data = { column: 'data', key: quarantineDataKey(id), value: Uint8Array.from(bytes) };
    return { rows: [quarantineRow(id, record), data], sizeBytes: bytes.length, moved };
  }

  /** A new row in place of one that cannot be read: bytes without an index row are those of a damaged copy in its place. */
  async #restOf(id: ChunkId): Promise<QuarantineRow | undefined> {
    const { row, bytes } = await readHalves(this.#deps.reads, id);
    if (row !== undefined || bytes === undefined) return undefined;
    return { asideAtMs: this.#deps.clock.wallMs(), hasBytes: true, isInPlace: true };
  }

  /**
   * Whether a copy is quarantined. A row that cannot be read counts as one: its home has it dropped once other copies are
   * proven.
   */
  async has(ids: readonly ChunkId[]): Promise<boolean[]> {
    return (await this.#look(ids)).map((found) => found !== undefined);
  }

  async #look(ids: readonly ChunkId[]): Promise<(QuarantineRow | undefined | 'lost')[]> {
    if (this.#count === 0) return ids.map(() => undefined);
    const rows = await orLost(() => this.#deps.kv.getMany('index', ids.map(quarantineKey)), ids.length);
    if (ids.length > 1 && rows[0] === 'lost')
      return (await Promise.all(ids.map((id) => this.#look([id])))).flat();
    return rows.map((row) => (row === undefined || row === 'lost' ? row : quarantineCodec.decode(row)));
  }

  /** Rows that drop these copies. The caller calls `dropped` after the commit. No put may come between. */
  async rowsToDrop(ids: readonly ChunkId[]): Promise<{ rows: KvPut[]; dropped(): void }> {
    const [found, present] = await Promise.all([this.#look(ids), readRows(this.#deps.kv, ids)]);
    const gone = (key: Uint8Array): KvPut => ({ column: 'data', key, value: null });
    return {
      rows: ids.flatMap((id, at): KvPut[] => {
        const row = found[at];
        if (row === undefined) return [];
        // An index row says that the bytes belong to a copy that counts, whatever this row says (R38).
        const inPlace = isInPlace(row) && present[at] === undefined ? [gone(dataKey(id))] : [];
        return [
          { column: 'index', key: quarantineKey(id), value: null },
          gone(quarantineDataKey(id)),
          ...inPlace,
        ];
      }),
      dropped: () => {
        this.#count -= found.filter((one) => one !== undefined && one !== 'lost').length;
      },
    };
  }

  /** Drops the copies, in one commit with `more`. */
  async drop(ids: readonly ChunkId[], more: readonly KvPut[]): Promise<void> {
    const { rows, dropped } = await this.rowsToDrop(ids);
    await this.#deps.kv.commit([...rows, ...more]);
    dropped();
  }

  /** Chunks of these home shards, in id order. */
  async list(options: { homes: readonly number[]; after?: ChunkId; limit: number }): Promise<ChunkId[]> {
    const homes = new Set(options.homes);
    const found: ChunkId[] = [];
    if (this.#count === 0 || options.limit <= 0) return found;
    for await (const id of this.#ids(options.after)) {
      if (!homes.has(homeShardOf(id.blobId))) continue;
      if (found.push(id) >= options.limit) break;
    }
    return found;
  }

  async *#ids(after: ChunkId | undefined): AsyncGenerator<ChunkId> {
    const bounds = quarantineBounds(after);
    for (let gte: Uint8Array | undefined = bounds.gte; gte !== undefined; ) {
      const range = { column: 'index', gte, lt: bounds.lt, limit: PAGE_ROWS, keysOnly: true };
      const { rows, next }: ReadPage = await readPage(this.#deps.kv, range);
      for (const { key } of rows) yield parseIndexKey(key);
      gte = next;
    }
  }
}

function isInPlace(found: QuarantineRow | undefined | 'lost'): found is QuarantineRow {
  return found !== undefined && found !== 'lost' && found.isInPlace === true;
}

function quarantineRow(id: ChunkId, row: QuarantineRow): KvPut {
  return { column: 'index', key: quarantineKey(id), value: quarantineCodec.encode(row) };
}

/** What the copy added to the totals, as far as that is known. */
function countedOf({ row, bytes }: ChunkHalves): { chunks: number; bytes: number } {
  if (row === undefined) return { chunks: 0, bytes: 0 };
  if (row !== 'lost') return { chunks: 1, bytes: row.sizeBytes };
  return { chunks: 1, bytes: bytes === undefined || bytes === 'lost' ? 0 : bytes.length };
}
