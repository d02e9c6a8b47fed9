// Looks at a page of what is in a bucket and finds what is due. Only heads of versions are decoded, unless a rule asks for
// tags; only what begins with a prefix of some rule is read. It decides nothing: the commit does (step-lifecycle.ts).
import { must } from '../../base/assert.ts';
import { afterPrefix, compareBytes, concatBytes, equalBytes, utf8 } from '../../base/bytes/bytes.ts';
import type { Row, RowAddress, RowCursor, StateReader } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BucketId, NULL_VERSION, type ObjectKey, type UploadId } from '../../types/names.ts';
import type {
  LifecycleAction,
  LifecyclePlace,
  LifecycleStage,
  NewerVersion,
} from '../../types/records/lifecycle-record.ts';
import { uploadCodec } from '../../types/records/rows.ts';
import { type StoredHead, storedHead, storedVersionId } from '../../types/records/version-record.ts';
import { objectKeyOf } from '../buckets/rows-of-buckets.ts';
import { escapeBytes } from '../schema/key-parts.ts';
import {
  bucketUploads,
  currentRow,
  markerRow,
  objectsKey,
  REGION,
  type Region,
  regionRange,
  TABLES,
  versionRange,
} from '../schema/keyspace.ts';
import type { Judged, LifecycleJudge } from './judge.ts';

/** Something that is due, with the row in which it was found. */
export interface FoundItem {
  action: LifecycleAction;
  /** Absent: its retention has ended. */
  ruleId?: string;
  key: ObjectKey;
  /** Of the version. */
  order?: number;
  newer?: { order: number; modifiedAtMs: number; isLatest: boolean };
  uploadId?: UploadId;
  /** Of a version that goes for good. */
  sizeBytes: number;
  value: Uint8Array;
}

export interface ExaminedPage {
  found: FoundItem[];
  examinedCount: number;
  keptCount: number;
  /** Infinity: never. */
  laterMs: number;
  next?: LifecyclePlace;
}

export interface PageBounds {
  rowsMax: number;
  itemsMax: number;
  /** Is told of what is due and kept. Of that a page may have any number of bytes, so it keeps none of it. */
  onKept?(item: FoundItem): void;
}

/** Read on another thread at once, and judged between two turns of the process: less of them where there are many rules. */
const CHUNK_ROWS = 250;
const CHUNK_COMPARISONS = 400_000;
/** Versions whose whole rows are read for their heads. */
const HEADS_AT_ONCE = 32;
/** Of an order, at the end of the row key of a noncurrent version. */
const ORDER_BYTES = 6;
/** Rows of items, which the commit reads again. */
const ITEMS_BYTES_MAX = LIMITS.deleteBytesMax;

const REGION_OF = { noncurrent: REGION.version, current: REGION.current, markers: REGION.marker } as const;

/** From `from` on, within one stage; without it from the first stage on. */
export async function examinePage(
  state: StateReader,
  judge: LifecycleJudge,
  from: LifecyclePlace | undefined,
  bounds: PageBounds,
): Promise<ExaminedPage & { from?: LifecyclePlace }> {
  const stages = judge.stages();
  const at = from === undefined ? 0 : stages.findIndex(({ stage }) => stage === from.stage);
  const under = stages[at];
  if (under === undefined) return { found: [], examinedCount: 0, keptCount: 0, laterMs: Infinity };
  const { stage, prefixes } = under;
  const place = from ?? { stage };
  const walk = new PageWalk(state, judge, stage, bounds);
  const last = await walk.run(place, prefixes);
  const next = stages[at + 1];
  return { ...walk.page, from: place, ...(last ? { next: last } : next && { next: { stage: next.stage } }) };
}

interface Range {
  gte: Uint8Array;
  lt: Uint8Array;
}

class PageWalk {
  readonly page: ExaminedPage = { found: [], examinedCount: 0, keptCount: 0, laterMs: Infinity };
  readonly #state: StateReader;
  readonly #whole: LifecycleJudge;
  /** For the keys of one prefix. */
  #judge: LifecycleJudge;
  readonly #stage: LifecycleStage;
  readonly #bounds: PageBounds;
  readonly #bucketId: BucketId;
  readonly #chunkRows: number;
  /** Of the first chunk: where all of it is due, no more is read than the page has room for. */
  readonly #firstRows: number;
  #foundBytes = 0;
  /** The key of the row that was examined last. */
  #examined: Uint8Array | undefined;
  /** Of noncurrent versions: the row before this one, where that may be of the same key. */
  #before: { key: Uint8Array; newer: NewerVersion } | undefined;

  constructor(state: StateReader, judge: LifecycleJudge, stage: LifecycleStage, bounds: PageBounds) {
    this.#state = state;
    this.#whole = judge;
    this.#judge = judge;
    this.#stage = stage;
    this.#bounds = bounds;
    this.#bucketId = judge.bucket.bucketId;
    this.#chunkRows = Math.min(CHUNK_ROWS, Math.ceil(CHUNK_COMPARISONS / judge.comparisonsMax));
    this.#firstRows = Math.min(this.#chunkRows, bounds.itemsMax);
  }

  /** Where the stage goes on; undefined: it is over. */
  async run(place: LifecyclePlace, prefixes: readonly string[]): Promise<LifecyclePlace | undefined> {
    const { after, newer } = place;
    if (after !== undefined && newer !== undefined) this.#before = { key: after, newer };
    const ranges = prefixes.map((prefix) => ({ prefix, ...rangeOf(this.#stage, this.#bucketId, prefix) }));
    const [first] = ranges;
    const end = ranges.at(-1);
    if (first === undefined || end === undefined) return undefined;
    const table = this.#stage === 'uploads' ? TABLES.uploads : TABLES.objects;
    const bytesMax = LIMITS.queryPageBytesMax;
    // It begins behind what earlier pages have examined: it would crawl over the traces of what they have taken (B11).
    const begin = after === undefined ? first.gte : concatBytes(after, Uint8Array.of(0));
    // So that each chunk has a turn, however few rows are in it.
    const rowCost = Math.ceil(CHUNK_ROWS / this.#chunkRows);
    const cursor = this.#state.cursor({ table, gte: begin, lt: end.lt, bytesMax, rowCost });
    try {
      for (const range of ranges) {
        if (after !== undefined && compareBytes(range.lt, after) <= 0) continue;
        const isInside = after !== undefined && compareBytes(range.gte, after) <= 0;
        cursor.seek(isInside ? begin : range.gte);
        this.#judge = this.#whole.within(this.#stage, range.prefix);
        const last = await this.#walkRange(cursor, range.lt);
        if (last !== undefined) return this.#placeAfter(last);
      }
      return undefined;
    } finally {
      cursor.close();
    }
  }

  #placeAfter(after: Uint8Array): LifecyclePlace {
    const newer = this.#before?.newer;
    return { stage: this.#stage, after, ...(newer && { newer }) };
  }

  /** The key of the last row that was examined, where the page ends before the range. */
  async #walkRange(cursor: RowCursor, lt: Uint8Array): Promise<Uint8Array | undefined> {
    let reading = this.#readOn(cursor);
    for (;;) {
      const rows = await reading;
      const end = rows.at(-1);
      const isInside = end === undefined || compareBytes(end.key, lt) < 0;
      const inside = isInside ? rows : rows.filter(({ key }) => compareBytes(key, lt) < 0);
      const isLast = rows.length === 0 || inside.length < rows.length;
      const ahead = !isLast && this.#willGoOn(inside.length) ? cursor.next(this.#chunkRows) : undefined;
      // Whoever awaits it hears of its failure; where the page ends before, nobody needs it.
      ahead?.catch(() => undefined);
      if (this.#endsBefore(inside[0])) return this.#examined;
      const judge = await this.#judgeOf(inside);
      for (const row of inside) {
        if (this.#endsBefore(row)) return this.#examined;
        judge(row);
        this.page.examinedCount++;
        this.#examined = row.key;
      }
      if (this.#isFull() && this.#stage !== 'noncurrent') return this.#examined;
      if (isLast) return undefined;
      reading = ahead ?? this.#readOn(cursor);
    }
  }

  #readOn(cursor: RowCursor): Promise<Row[]> {
    // One row more may go with the last one.
    if (this.#isFull()) return cursor.next(1);
    return cursor.next(this.page.examinedCount === 0 ? this.#firstRows : this.#chunkRows);
  }

  #endsBefore(row: Row | undefined): boolean {
    return this.#isFull() && (row === undefined || !this.#goesWithBefore(row));
  }

  /**
   * A noncurrent null version goes in the step of the version that has replaced it: a later step would not find when that was
   * (step-lifecycle.ts).
   */
  #goesWithBefore({ key, value }: Row): boolean {
    const before = this.#before;
    if (this.#stage !== 'noncurrent' || before === undefined || !areOfOneKey(before.key, key)) return false;
    return storedVersionId(value) === NULL_VERSION;
  }

  /** Whether the page has room behind so many rows even where all of them are due: the next are read while these are judged. */
  #willGoOn(rowCount: number): boolean {
    const { found, examinedCount } = this.page;
    const { itemsMax, rowsMax } = this.#bounds;
    return (
      found.length + rowCount < itemsMax ||
      (found.length === 0 && examinedCount > 0 && examinedCount + rowCount < rowsMax)
    );
  }

  #isFull(): boolean {
    const { found, examinedCount } = this.page;
    const { itemsMax, rowsMax } = this.#bounds;
    return found.length >= itemsMax || examinedCount >= rowsMax || this.#foundBytes >= ITEMS_BYTES_MAX;
  }

  /** How each of these rows is judged, in their order; what has to be read besides them has been. */
  async #judgeOf(rows: readonly Row[]): Promise<(row: Row) => void> {
    switch (this.#stage) {
      case 'uploads':
        return (row) => this.#judgeUpload(row);
      case 'current':
        return (row) => this.#judgeCurrent(row);
      case 'markers': {
        const alone = await this.#aloneOf(rows);
        return (row) => this.#judgeMarker(row, alone.has(row));
      }
      case 'noncurrent': {
        const latest = await this.#latestOf(rows);
        return (row) => this.#judgeNoncurrent(row, latest.get(row));
      }
    }
  }

  #judgeUpload({ value }: Row): void {
    const { key, uploadId, initiatedAtMs } = uploadCodec.decode(value);
    const judged = this.#judge.upload({ key, initiatedAtMs });
    this.#note(judged, (action) => ({ action, key, uploadId, sizeBytes: 0, value }));
  }

  #judgeCurrent({ key: rowKey, value }: Row): void {
    const head = storedHead(value);
    if (this.#isNothing(this.#judge.currentNotBeforeMs(head.modifiedAtMs))) return;
    const key = objectKeyOf(rowKey);
    const judged = this.#judge.current({ key, head, value });
    this.#note(judged, (action) => {
      const sizeBytes = action === 'make-marker' ? 0 : head.sizeBytes;
      return { action, key, sizeBytes, value };
    });
  }

  #judgeMarker({ key: rowKey, value }: Row, isAlone: boolean): void {
    const key = objectKeyOf(rowKey);
    const judged = this.#judge.marker({ key, head: storedHead(value) });
    if (judged.action !== undefined && !isAlone) return;
    this.#note(judged, (action) => ({ action, key, sizeBytes: 0, value }));
  }

  #judgeNoncurrent({ key: rowKey, value }: Row, latest: NewerVersion | undefined): void {
    const head = storedHead(value);
    const before = this.#before;
    const isFirst = before === undefined || !areOfOneKey(before.key, rowKey);
    const newer = isFirst ? latest : before.newer;
    const count = isFirst ? 0 : before.newer.count;
    this.#before = {
      key: rowKey,
      newer: { order: head.order, modifiedAtMs: head.modifiedAtMs, count: count + 1 },
    };
    // Its key has changed since this chunk was read.
    if (newer === undefined || newer.order <= head.order) {
      this.#later(this.#judge.tomorrowMs);
      return;
    }
    if (this.#isNothing(this.#judge.noncurrentNotBeforeMs(newer.modifiedAtMs))) return;
    const key = objectKeyOf(rowKey);
    const judged = this.#judge.noncurrent({ key, head, value }, newer);
    const sizeBytes = head.isDeleteMarker ? 0 : head.sizeBytes;
    this.#note(judged, (action) => ({
      action,
      key,
      order: head.order,
      newer: { order: newer.order, modifiedAtMs: newer.modifiedAtMs, isLatest: isFirst },
      sizeBytes,
      value,
    }));
  }

  /** Whether what is due then is neither due now nor the next to be: most of what is examined. */
  #isNothing(notBeforeMs: number): boolean {
    return notBeforeMs >= this.page.laterMs && notBeforeMs > this.#judge.nowMs;
  }

  #note(judged: Judged, item: (action: LifecycleAction) => FoundItem): void {
    const { action, isKept, keptFrom, ruleId, laterMs } = judged;
    const itemOf = (named: LifecycleAction) => ({ ...item(named), ...(ruleId !== undefined && { ruleId }) });
    if (isKept) this.page.keptCount++;
    this.#later(laterMs);
    if (keptFrom !== undefined) this.#bounds.onKept?.(itemOf(keptFrom));
    if (action === undefined) return;
    const found = itemOf(action);
    this.page.found.push(found);
    this.#foundBytes += found.value.length;
  }

  #later(laterMs: number): void {
    if (laterMs < this.page.laterMs) this.page.laterMs = laterMs;
  }

  /** Of these markers, those that are due and whose key has no other version. */
  async #aloneOf(rows: readonly Row[]): Promise<Set<Row>> {
    const alone = new Set<Row>();
    const due = rows.filter(({ key, value }) => {
      const marker = { key: objectKeyOf(key), head: storedHead(value) };
      return this.#judge.marker(marker).action !== undefined;
    });
    if (due.length === 0) return alone;
    const { gte, lt } = regionRange({ region: REGION.version, bucketId: this.#bucketId, limit: 1 });
    const cursor = this.#state.cursor({ table: TABLES.objects, gte, lt });
    try {
      for (const row of due) {
        const range = versionRange({ bucketId: this.#bucketId, key: objectKeyOf(row.key), limit: 1 });
        cursor.seek(range.gte);
        const [older] = await cursor.next(1);
        if (older === undefined || compareBytes(older.key, range.lt) >= 0) alone.add(row);
      }
    } finally {
      cursor.close();
    }
    return alone;
  }

  /**
   * Of those of these noncurrent versions that are the newest of their key, the latest version. They are read behind the chunk:
   * a latest version that has only just come is another one's successor, and is left out.
   */
  async #latestOf(rows: readonly Row[]): Promise<Map<Row, NewerVersion>> {
    let before = this.#before?.key;
    const firsts: Row[] = [];
    for (const row of rows) {
      if (before === undefined || !areOfOneKey(before, row.key)) firsts.push(row);
      before = row.key;
    }
    const found = new Map<Row, NewerVersion>();
    if (firsts.length === 0) return found;
    const keys = firsts.map(({ key }) => objectKeyOf(key));
    const current = await this.#headsOf(keys.map((key) => currentRow(this.#bucketId, key)));
    const others = keys.filter((_, at) => current[at] === undefined);
    const markers = await this.#headsOf(others.map((key) => markerRow(this.#bucketId, key)));
    let at = 0;
    for (const [index, row] of firsts.entries()) {
      const latest = current[index] ?? markers[at++];
      if (latest === undefined) continue;
      const { order, modifiedAtMs } = latest;
      if (modifiedAtMs < this.#judge.readAtMs) found.set(row, { order, modifiedAtMs, count: 0 });
    }
    return found;
  }

  /** A few at a time: each may be as large as all rows of a page. */
  async #headsOf(addresses: readonly RowAddress[]): Promise<(StoredHead | undefined)[]> {
    const heads: (StoredHead | undefined)[] = [];
    for (let at = 0; at < addresses.length; at += HEADS_AT_ONCE) {
      const rows = await this.#state.rows(addresses.slice(at, at + HEADS_AT_ONCE));
      for (const row of rows) heads.push(row && storedHead(row));
    }
    return heads;
  }
}

/** Of two row keys of noncurrent versions. */
function areOfOneKey(a: Uint8Array, b: Uint8Array): boolean {
  const size = a.length - ORDER_BYTES;
  return a.length === b.length && equalBytes(a.subarray(0, size), b.subarray(0, size));
}

function rangeOf(stage: LifecycleStage, bucketId: BucketId, prefix: string): Range {
  const bytes = utf8(prefix);
  if (stage === 'uploads') return within(bucketUploads(bucketId, 1).gte, escapeBytes(bytes));
  const region: Region = REGION_OF[stage];
  return within(objectsKey(region, bucketId, region === REGION.version ? escapeBytes(bytes) : bytes));
}

function within(...parts: readonly Uint8Array[]): Range {
  const gte = concatBytes(...parts);
  return { gte, lt: must(afterPrefix(gte), 'a region has something behind it') };
}
