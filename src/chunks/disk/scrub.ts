// Reads all chunks of a disk again and again, at a bounded rate, so that damage is found while other copies are whole
// (R40). The store quarantines what does not verify; what cannot be read is tried again later. Progress outlives a restart.
// On its way it has large chunks that were written into the database moved to where such ones are written now.
// The scrub walks the index; where a part of the index is lost it finds the chunks by the keys of their bytes.

import { readPage } from '../../base/read-page.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import type { ChunkStore } from './chunk-store.ts';
import {
  dataBounds,
  decodeIndexRow,
  indexBounds,
  indexKey,
  indexPosition,
  keyBehind,
  parseDataKey,
  parseIndexKey,
  SCRUB_KEY,
} from './keyspace.ts';

export interface ScrubDeps {
  kv: KvPort;
  store: Pick<ChunkStore, 'verify' | 'separate' | 'usage' | 'unreadToTry' | 'isLost'>;
  clock: ClockPort;
  log: Logger;
  /** Least rate during a pass; higher on a disk that would not be read within a period. */
  bytesPerSecond: number;
  /** Time from the beginning of one pass to that of the next. */
  periodMs: number;
}

export interface ScrubProgress {
  /** Share of the chunks of this pass that is done, 0 to 1; 1 between passes. */
  share: number;
  /** Damaged copies of the pass under way, or of the last one. */
  foundCount: number;
  /** Wall clock at the end of the last pass; absent before it. */
  endedAtMs?: number;
}

export interface Scrub extends Worker {
  progress(): ScrubProgress;
}

interface ScrubRecord {
  startedAtMs: number;
  /** Index key from which on to read; absent between passes. */
  next?: Uint8Array;
  checkedCount: number;
  checkedBytes: number;
  foundCount: number;
  /** Chunks that were moved; absent in records from before. */
  movedCount?: number;
  /** Totals when the pass began. */
  wantedBytes: number;
  endedAtMs?: number;
}

const codec = defineRecord<ScrubRecord>({ name: 'scrub', version: 1 });

const PAGE_ROWS = 64;
/** Bytes that one unit of work reads. */
const UNIT_BYTES = 4 * 1024 * 1024;
/** Least cost of a chunk in bytes: a disk seeks for it. */
const CHUNK_COST_BYTES = 16 * 1024;
/** Share of a period in which a paced pass ends. */
const PASS_SHARE = 0.9;
/** Retries of unreadable chunks for each unit of work: each may take its time. */
const RETRIES_MAX = 4;
const LOOK_EVERY_MS = 60_000;

export function createScrub(deps: ScrubDeps): Scrub {
  return new DiskScrub(deps);
}

class DiskScrub implements Scrub {
  readonly name = 'scrub-chunks';
  readonly #deps: ScrubDeps;
  #record: ScrubRecord | undefined;

  constructor(deps: ScrubDeps) {
    this.#deps = deps;
  }

  progress(): ScrubProgress {
    const record = this.#record;
    if (record === undefined) return { share: 0, foundCount: 0 };
    const { next, checkedBytes, wantedBytes, foundCount, endedAtMs } = record;
    const share = next === undefined || wantedBytes === 0 ? 1 : Math.min(1, checkedBytes / wantedBytes);
    return { share, foundCount, ...(endedAtMs !== undefined && { endedAtMs }) };
  }

  async work(signal: AbortSignal): Promise<{ state: 'idle'; idleMs: number }> {
    const record = this.#record ?? (await this.#load());
    this.#record = record;
    await this.#tryAgain(signal);
    if (record.next === undefined) {
      const waitMs = this.#waitMs(record);
      if (waitMs > 0) return { state: 'idle', idleMs: Math.min(waitMs, LOOK_EVERY_MS) };
      await this.#begin(record);
    }
    const costBytes = await this.#readOn(record, signal);
    if (record.next === undefined) this.#end(record);
    await this.#keep(record);
    return { state: 'idle', idleMs: (costBytes / this.#rate(record)) * 1000 };
  }

  /** Unreadable chunks are tried again between passes, too: then they are readable, or reported to their home. */
  async #tryAgain(signal: AbortSignal): Promise<void> {
    for (const id of this.#deps.store.unreadToTry().slice(0, RETRIES_MAX)) {
      if (signal.aborted) return;
      await this.#deps.store.verify(id);
    }
  }

  async #load(): Promise<ScrubRecord> {
    const [row] = await this.#deps.kv.getMany('index', [SCRUB_KEY]);
    if (row !== undefined) return codec.decode(row);
    const startedAtMs = Number.NEGATIVE_INFINITY;
    return { startedAtMs, checkedCount: 0, checkedBytes: 0, foundCount: 0, wantedBytes: 0 };
  }

  /** Time until the next pass; a clock that was set back begins one. */
  #waitMs({ startedAtMs }: ScrubRecord): number {
    const sinceMs = this.#deps.clock.wallMs() - startedAtMs;
    return sinceMs < 0 ? 0 : this.#deps.periodMs - sinceMs;
  }

  async #begin(record: ScrubRecord): Promise<void> {
    const { liveBytes } = await this.#deps.store.usage();
    record.startedAtMs = this.#deps.clock.wallMs();
    record.next = indexBounds().gte;
    record.wantedBytes = liveBytes;
    record.checkedCount = 0;
    record.checkedBytes = 0;
    record.foundCount = 0;
    record.movedCount = 0;
  }

  #end(record: ScrubRecord): void {
    record.endedAtMs = this.#deps.clock.wallMs();
    const { checkedCount, checkedBytes, foundCount, movedCount = 0 } = record;
    this.#deps.log.info({ checkedCount, checkedBytes, foundCount, movedCount }, 'scrub-ended');
  }

  #rate({ wantedBytes }: ScrubRecord): number {
    const { bytesPerSecond, periodMs } = this.#deps;
    return Math.max(bytesPerSecond, wantedBytes / ((periodMs / 1000) * PASS_SHARE));
  }

  /** Written in the background: after a crash a little is read twice. */
  async #keep(record: ScrubRecord): Promise<void> {
    const row = { column: 'index', key: SCRUB_KEY, value: codec.encode(record) };
    await this.#deps.kv.commit([row], { sync: false, isPatient: true });
  }

  /** Bytes that it has cost. */
  async #readOn(record: ScrubRecord, signal: AbortSignal): Promise<number> {
    const bounds = { gte: record.next ?? indexBounds().gte, lt: indexBounds().lt };
    const page = await readPage(this.#deps.kv, { column: 'index', ...bounds, limit: PAGE_ROWS });
    if (page.lost !== undefined) return this.#readLost(record, page.lost, page.next);
    let costBytes = 0;
    for (const { key, value } of page.rows) {
      if (costBytes >= UNIT_BYTES || signal.aborted) return costBytes;
      const { sizeBytes } = decodeIndexRow(value);
      await this.#check(record, parseIndexKey(key), sizeBytes);
      record.next = keyBehind(key);
      costBytes += Math.max(sizeBytes, CHUNK_COST_BYTES);
    }
    goTo(record, page.next);
    return costBytes;
  }

  /** No index row between the two keys can be read: one page of the chunks that lie there. */
  async #readLost(
    record: ScrubRecord,
    lost: { gte: Uint8Array; lt: Uint8Array },
    behind: Uint8Array | undefined,
  ): Promise<number> {
    const range = { column: 'data', ...dataBounds(lost), limit: PAGE_ROWS, keysOnly: true };
    const page = await readPage(this.#deps.kv, range);
    for (const { key } of page.rows) await this.#check(record, parseDataKey(key), 0);
    const last = page.rows.at(-1);
    if (page.next === undefined) goTo(record, behind);
    else if (last !== undefined) goTo(record, keyBehind(indexKey(parseDataKey(last.key))));
    else goTo(record, indexPosition(page.next));
    return Math.max(page.rows.length, 1) * CHUNK_COST_BYTES;
  }

  async #check(record: ScrubRecord, id: ReturnType<typeof parseIndexKey>, sizeBytes: number): Promise<void> {
    const found = await this.#deps.store.verify(id);
    record.checkedCount++;
    record.checkedBytes += sizeBytes;
    if (found.kind === 'whole' && (await this.#deps.store.separate(id)))
      record.movedCount = (record.movedCount ?? 0) + 1;
    if (found.kind === 'missing' && (found.isQuarantined || this.#deps.store.isLost(id))) record.foundCount++;
  }
}

function goTo(record: ScrubRecord, next: Uint8Array | undefined): void {
  if (next === undefined) delete record.next;
  else record.next = next;
}
