// One full comparison under way: how it asks, how it rests, what it has found so far. What is compared with what is in
// the other files of this room. It changes nothing, and asks only through the ports, so shards and chunks may be anywhere.

import type { ChunkId, ChunkPort } from '../ports/chunks.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { CheckedTable } from '../ports/metadata/checks.ts';
import type { MetadataPort, QueryName, QueryOf, Reply, ResultOf } from '../ports/metadata/port.ts';
import type { Finding, FindingKind, FindingPlace, Pending } from '../types/findings.ts';
import type { BlobId } from '../types/names.ts';

/** Rows of one query: a millisecond or two of the thread that serves clients. */
const PAGE_ROWS = 50;
/** Rest after work, as a multiple of the time that it took: clients have the machine most of the time. */
const REST_SHARE = 4;
/** Shorter rests are put together, because a timer takes its time, too. */
const REST_MIN_MS = 5;
/** Work at full speed, in one go. */
const TURN_MS = 5;
/** Findings kept whole; the others are counted. */
export const FINDINGS_MAX = 10_000;
const UNLINKED_BATCH = 1000;
/** Small bodies come whole. */
const LOOK_AGAIN_BATCH = 100;

/** What means that bytes of the data cannot be had. */
const LOST_DATA: ReadonlySet<FindingKind> = new Set<FindingKind>([
  ...(['chunk-missing', 'chunk-damaged', 'chunk-size', 'body-missing', 'body-size'] as const),
]);

export interface FsckDeps {
  /** The master keys that there are now. */
  keyIds(): readonly string[];
  metadata: MetadataPort;
  chunks: ChunkPort;
  clock: ClockPort;
  /** Called for lost chunks, where there are no other copies. */
  noteLost?(id: ChunkId, kind: 'missing' | 'damaged'): void;
}

export interface FsckOptions {
  /** Reads every chunk and every small body as well. */
  readData: boolean;
  /** Takes turns with clients, and no rests. Otherwise clients have the machine most of the time. */
  fullSpeed: boolean;
}

export interface FsckProgress {
  /** What is being compared, for people. */
  stage: string;
  rowCount: number;
  chunkCount: number;
  bodyCount: number;
  /** Of chunks that were read. */
  readBytes: number;
}

/** The shard's reply was no answer: the comparison cannot go on. */
export class NoAnswer extends Error {}

export class FsckRun {
  readonly deps: FsckDeps;
  readonly options: FsckOptions;
  readonly signal: AbortSignal;
  readonly progress: FsckProgress = { stage: '', rowCount: 0, chunkCount: 0, bodyCount: 0, readBytes: 0 };
  readonly findings: Finding[] = [];
  readonly counts = new Map<FindingKind, number>();
  readonly pending = new Map<Pending['kind'], Pending>();
  /** Data of which bytes cannot be had: as many as findings are kept. */
  readonly lostBlobs = new Set<BlobId>();
  readonly #unreadable = new Set<string>();
  readonly #firstKeyIds: readonly string[];
  /** Since the last rest. */
  #workedMs = 0;

  constructor(deps: FsckDeps, options: FsckOptions, signal: AbortSignal) {
    this.deps = deps;
    this.#firstKeyIds = [...deps.keyIds()];
    this.options = options;
    this.signal = signal;
  }

  get shards(): number[] {
    return Array.from({ length: this.deps.metadata.shardCount }, (_, shard) => shard);
  }

  found(kind: FindingKind, place: FindingPlace): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    if (this.findings.length < FINDINGS_MAX) this.findings.push({ kind, ...place });
    if (LOST_DATA.has(kind) && place.blob !== undefined && this.lostBlobs.size < FINDINGS_MAX)
      this.lostBlobs.add(place.blob as BlobId);
  }

  foundAll(findings: readonly Finding[]): void {
    for (const { kind, ...place } of findings) this.found(kind, place);
  }

  addPending({ kind, count, oldestAtMs }: Pending): void {
    const known = this.pending.get(kind);
    const sum = { kind, count: count + (known?.count ?? 0), oldestAtMs };
    this.pending.set(
      kind,
      known === undefined ? sum : { ...sum, oldestAtMs: Math.min(known.oldestAtMs, oldestAtMs) },
    );
  }

  /** Does one unit of work, resting first for what earlier ones took. Throws when the run is cancelled. */
  async paced<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.deps;
    if (this.#workedMs >= (this.options.fullSpeed ? TURN_MS : REST_MIN_MS / REST_SHARE)) {
      // At full speed, too, others have their turn: what is asked of this process's own shards is answered within it.
      const restMs = this.options.fullSpeed ? 0 : REST_SHARE * this.#workedMs;
      this.#workedMs = 0;
      await clock.sleep(restMs, this.signal);
    }
    this.signal.throwIfAborted();
    const startedAtMs = clock.monotonicMs();
    try {
      return await work();
    } finally {
      this.#workedMs += clock.monotonicMs() - startedAtMs;
    }
  }

  async ask<N extends QueryName>(shard: number, name: N, query: QueryOf<N>): Promise<ResultOf<N>> {
    return (await this.askReply(shard, name, query)).value;
  }

  /** With the shard's time. */
  async askReply<N extends QueryName>(
    shard: number,
    name: N,
    query: QueryOf<N>,
  ): Promise<Extract<Reply<ResultOf<N>>, { kind: 'done' }>> {
    const reply = await this.paced(() => this.deps.metadata.query({ shard }, name, query));
    if (reply.kind !== 'done') throw new NoAnswer(`shard ${shard} does not answer (${reply.kind})`);
    return reply;
  }

  /** The pages of a table. One that cannot be read is a finding, and ends the table. */
  async *pages(shard: number, table: CheckedTable): AsyncGenerator<ResultOf<'check-rows'>> {
    let after: Uint8Array | undefined;
    do {
      // One that has been removed since the beginning may have been there when the row was.
      const keyIds = [...this.#firstKeyIds, ...this.deps.keyIds()];
      const query = { table, ...(after && { after }), limit: PAGE_ROWS, keyIds };
      let page: ResultOf<'check-rows'>;
      try {
        page = await this.ask(shard, 'check-rows', query);
      } catch (error) {
        if (this.signal.aborted || error instanceof NoAnswer) throw error;
        this.#unreadable.add(`${shard} ${table}`);
        this.found('unreadable-rows', { shard, table, note: error instanceof Error ? error.message : '' });
        return;
      }
      this.progress.rowCount += page.rowCount;
      yield { ...page, findings: page.findings.filter((finding) => !this.#isNewKey(finding)) };
      after = page.next;
    } while (after !== undefined);
  }

  /** A rotation may have added it while the page was read. */
  #isNewKey({ kind, note = '' }: Finding): boolean {
    return kind === 'key-unknown' && this.deps.keyIds().includes(note);
  }

  isUnreadable(shard: number, table: CheckedTable): boolean {
    return this.#unreadable.has(`${shard} ${table}`);
  }

  /** Blobs that no link holds: whether that is damage, or an ended link waits to be looked at. */
  async checkUnlinked(shard: number, blobIds: readonly BlobId[]): Promise<void> {
    for (let from = 0; from < blobIds.length; from += UNLINKED_BATCH) {
      const some = { blobIds: blobIds.slice(from, from + UNLINKED_BATCH) };
      const left = (await this.ask(shard, 'check-unlinked', some)).blobIds;
      for (const blob of left) this.found('blob-unlinked', { shard, blob });
    }
  }
}

/** Gathers items, and hands them on in batches: what looks wrong is looked at again, in bounded memory. */
export function createBatch<T>(
  flush: (items: T[]) => Promise<void>,
  size = LOOK_AGAIN_BATCH,
): {
  add(item: T): Promise<void> | undefined;
  end(): Promise<void>;
} {
  let items: T[] = [];
  const hand = () => {
    const batch = items;
    items = [];
    return flush(batch);
  };
  return {
    add(item) {
      items.push(item);
      return items.length >= size ? hand() : undefined;
    },
    end: async () => (items.length === 0 ? undefined : hand()),
  };
}
