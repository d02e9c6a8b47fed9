// Copies that did not verify (R40): each counts as none from the moment at which it was found, durably, and what is left of
// it is kept under keys of its own until the chunk's home says that it may go. A new copy may come beside it.
import { homeShardOf } from '../model/names.ts';
import type { ChunkId } from '../ports/chunks.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { KvPort, KvPut } from '../ports/kv.ts';
import type { Logger } from '../ports/telemetry.ts';
import { type ChunkHalves, judge, orLost, readHalves } from './chunk-halves.ts';
import type { DiskTotals } from './disk-totals.ts';
import {
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

  /**
   * Reads the copy once more, and sets it aside if it does not verify now either. In turn with drops: nothing but a put may
   * come between.
   */
  async take(id: ChunkId): Promise<'aside' | 'missing' | 'whole'> {
    const { kv, reads, totals, clock, log } = this.#deps;
    let halves = await readHalves(reads, id);
    // A put may have come between the two.
    if (halves.row === undefined || halves.bytes === undefined) halves = await readHalves(reads, id);
    const verdict = judge(halves, { isProven: false });
    if (verdict.kind !== 'damaged') return verdict.kind;
    const { row, bytes } = halves;
    const [isAside] = await this.has([id]);
    const counted = countedOf(halves);
    totals.count(-counted.chunks, -counted.bytes);
    const kept = bytes === undefined || bytes === 'lost' ? undefined : Uint8Array.from(bytes);
    const facts = row === undefined || row === 'lost' ? {} : { sizeBytes: row.sizeBytes, crc32: row.crc32 };
    const record = { ...facts, asideAtMs: clock.wallMs(), hasBytes: kept !== undefined };
    const rows: KvPut[] = [
      { column: 'index', key: indexKey(id), value: null },
      { column: 'data', key: dataKey(id), value: null },
      { column: 'index', key: asideKey(id), value: asideCodec.encode(record) },
      totals.row(),
    ];
    if (kept !== undefined) rows.push({ column: 'data', key: asideDataKey(id), value: kept });
    await kv.commit(rows).catch((error: unknown) => {
      // Nothing of it is written: it is found again.
      totals.count(counted.chunks, counted.bytes);
      throw error;
    });
    if (isAside !== true) this.#count++;
    this.#deps.onDamaged();
    log.error({ ...id, why: verdict.why }, 'chunk-damaged');
    return 'aside';
  }

  /** Where it cannot be read it may be: its home is told so, and has it dropped once others are proven. */
  async has(ids: readonly ChunkId[]): Promise<boolean[]> {
    return (await this.#look(ids)).map((found) => found !== 'none');
  }

  async #look(ids: readonly ChunkId[]): Promise<('there' | 'none' | 'lost')[]> {
    if (this.#count === 0) return ids.map(() => 'none');
    const rows = await orLost(() => this.#deps.kv.getMany('index', ids.map(asideKey)), ids.length);
    if (ids.length > 1 && rows[0] === 'lost')
      return (await Promise.all(ids.map((id) => this.#look([id])))).flat();
    return rows.map((row) => (row === undefined ? 'none' : row === 'lost' ? 'lost' : 'there'));
  }

  /** What a commit takes that drops them; to be followed by `dropped`. */
  async rowsToDrop(ids: readonly ChunkId[]): Promise<{ rows: KvPut[]; dropped(): void }> {
    const found = await this.#look(ids);
    return {
      rows: ids.flatMap((id, at) =>
        found[at] === 'none'
          ? []
          : [
              { column: 'index', key: asideKey(id), value: null },
              { column: 'data', key: asideDataKey(id), value: null },
            ],
      ),
      dropped: () => {
        this.#count -= found.filter((one) => one === 'there').length;
      },
    };
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

/** As far as it is known what was counted in. */
function countedOf({ row, bytes }: ChunkHalves): { chunks: number; bytes: number } {
  if (row === undefined) return { chunks: 0, bytes: 0 };
  if (row !== 'lost') return { chunks: 1, bytes: row.sizeBytes };
  return { chunks: 1, bytes: bytes === undefined || bytes === 'lost' ? 0 : bytes.length };
}
