// Copies that did not verify (R40): each counts as none from the moment at which it was found, durably, and what is left of
// it is kept under keys of its own until the chunk's home says that it may go. A new copy may come beside it. Moving it takes
// room: where that would be of the reserve (R20) it stays in its place, and is moved by who puts a new copy there, within the
// room for both.

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
  type AsideRow,
  asideBounds,
  asideCodec,
  asideDataKey,
  asideKey,
  dataKey,
  indexKey,
  parseIndexKey,
} from './keyspace.ts';
import { type ReadPage, readPage } from './read-page.ts';

export interface AsideDeps {
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

export class AsideChunks {
  readonly #deps: AsideDeps;
  #count = 0;

  private constructor(deps: AsideDeps) {
    this.#deps = deps;
  }

  static async open(deps: AsideDeps): Promise<AsideChunks> {
    const aside = new AsideChunks(deps);
    for await (const _id of aside.#ids(undefined)) aside.#count++;
    return aside;
  }

  get count(): number {
    return this.#count;
  }

  /** What is read of a copy now. What has stayed in its place is none, and is not read again and again to be told so. */
  async judge(id: ChunkId, how: { isProven: boolean }): Promise<Verdict> {
    const halves = await readHalves(this.#deps.reads, id);
    const verdict = judge(halves, how);
    if (verdict.kind !== 'damaged' || halves.row !== undefined) return verdict;
    const [found] = await this.#look([id]);
    return isInPlace(found) ? { kind: 'missing' } : verdict;
  }

  /**
   * Reads the copy once more, and sets it aside if it does not verify now either. In turn with drops: nothing but a put may
   * come between.
   */
  async take(id: ChunkId): Promise<'aside' | 'missing' | 'whole'> {
    const { reads, reserve, clock, log } = this.#deps;
    let halves = await readHalves(reads, id);
    // A put may have come between the two.
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
    if (kept !== undefined) bytesRows.push({ column: 'data', key: asideDataKey(id), value: kept });
    const stays = kept !== undefined && hold === undefined;
    try {
      await this.#commit(countedOf(halves), [
        { column: 'index', key: indexKey(id), value: null },
        asideRow(id, stays ? { ...record, isInPlace: true } : record),
        ...(stays ? [] : bytesRows),
      ]);
    } finally {
      hold?.release();
    }
    // One that was lost may have been counted, or not. Too many are told until a restart: with too few nobody would look.
    if (before === undefined || before === 'lost') this.#count++;
    this.#deps.onDamaged();
    log.error({ ...id, why: verdict.why }, 'chunk-damaged');
    return 'aside';
  }

  async #commit(counted: { chunks: number; bytes: number }, rows: KvPut[]): Promise<void> {
    const { kv, totals } = this.#deps;
    totals.count(-counted.chunks, -counted.bytes);
    await kv.commit([...rows, totals.row()]).catch((error: unknown) => {
      // Nothing of it is written: it is found again.
      totals.count(counted.chunks, counted.bytes);
      throw error;
    });
  }

  /**
   * What a put takes that would write over a copy which has stayed in its place, and the room for that; to be followed by
   * `moved`.
   */
  async rowsToMove(id: ChunkId): Promise<{ rows: KvPut[]; sizeBytes: number; moved(): void }> {
    const [found] = await this.#look([id]);
    const stays = found === 'lost' ? await this.#restOf(id) : found;
    const moved = () => {
      if (found === 'lost' && stays !== undefined) this.#count++;
    };
    if (!isInPlace(stays)) return { rows: [], sizeBytes: 0, moved };
    // What cannot be read cannot be kept.
    const read = orLost(() => this.#deps.reads.getMany('data', [dataKey(id)]), 1);
    const [bytes] = await read.catch((error: unknown) => [passUnread(error)]);
    const { isInPlace: _, ...record } = stays;
    if (bytes === undefined || bytes === 'lost')
      return { rows: [asideRow(id, { ...record, hasBytes: false })], sizeBytes: 0, moved };
    const data = { column: 'data', key: asideDataKey(id), value: Uint8Array.from(bytes) };
    return { rows: [asideRow(id, record), data], sizeBytes: bytes.length, moved };
  }

  /** Of a row that cannot be read, a new one: bytes without a row of the index are those of a copy that has stayed. */
  async #restOf(id: ChunkId): Promise<AsideRow | undefined> {
    const { row, bytes } = await readHalves(this.#deps.reads, id);
    if (row !== undefined || bytes === undefined) return undefined;
    return { asideAtMs: this.#deps.clock.wallMs(), hasBytes: true, isInPlace: true };
  }

  /** Where it cannot be read it may be: its home is told so, and has it dropped once others are proven. */
  async has(ids: readonly ChunkId[]): Promise<boolean[]> {
    return (await this.#look(ids)).map((found) => found !== undefined);
  }

  async #look(ids: readonly ChunkId[]): Promise<(AsideRow | undefined | 'lost')[]> {
    if (this.#count === 0) return ids.map(() => undefined);
    const rows = await orLost(() => this.#deps.kv.getMany('index', ids.map(asideKey)), ids.length);
    if (ids.length > 1 && rows[0] === 'lost')
      return (await Promise.all(ids.map((id) => this.#look([id])))).flat();
    return rows.map((row) => (row === undefined || row === 'lost' ? row : asideCodec.decode(row)));
  }

  /** What a commit takes that drops them; to be followed by `dropped`. No put may come between. */
  async rowsToDrop(ids: readonly ChunkId[]): Promise<{ rows: KvPut[]; dropped(): void }> {
    const [found, present] = await Promise.all([this.#look(ids), readRows(this.#deps.kv, ids)]);
    const gone = (key: Uint8Array): KvPut => ({ column: 'data', key, value: null });
    return {
      rows: ids.flatMap((id, at): KvPut[] => {
        const row = found[at];
        if (row === undefined) return [];
        // A row of the index says that the bytes are those of a copy that counts, whatever this row says (R38).
        const inPlace = isInPlace(row) && present[at] === undefined ? [gone(dataKey(id))] : [];
        return [{ column: 'index', key: asideKey(id), value: null }, gone(asideDataKey(id)), ...inPlace];
      }),
      dropped: () => {
        this.#count -= found.filter((one) => one !== undefined && one !== 'lost').length;
      },
    };
  }

  /** Drops them, in one commit with `more`. */
  async drop(ids: readonly ChunkId[], more: readonly KvPut[]): Promise<void> {
    const { rows, dropped } = await this.rowsToDrop(ids);
    await this.#deps.kv.commit([...rows, ...more]);
    dropped();
  }

  /** Of these homes, in id order. */
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
    const bounds = asideBounds(after);
    for (let gte: Uint8Array | undefined = bounds.gte; gte !== undefined; ) {
      const range = { column: 'index', gte, lt: bounds.lt, limit: PAGE_ROWS, keysOnly: true };
      const { rows, next }: ReadPage = await readPage(this.#deps.kv, range);
      for (const { key } of rows) yield parseIndexKey(key);
      gte = next;
    }
  }
}

function isInPlace(found: AsideRow | undefined | 'lost'): found is AsideRow {
  return found !== undefined && found !== 'lost' && found.isInPlace === true;
}

function asideRow(id: ChunkId, row: AsideRow): KvPut {
  return { column: 'index', key: asideKey(id), value: asideCodec.encode(row) };
}

/** As far as it is known what was counted in. */
function countedOf({ row, bytes }: ChunkHalves): { chunks: number; bytes: number } {
  if (row === undefined) return { chunks: 0, bytes: 0 };
  if (row !== 'lost') return { chunks: 1, bytes: row.sizeBytes };
  return { chunks: 1, bytes: bytes === undefined || bytes === 'lost' ? 0 : bytes.length };
}
