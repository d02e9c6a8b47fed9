// Chunks of a disk without other copies that are damaged or missing though data needs them. Only another upload brings them
// back, so they are counted, logged and remembered over restarts until they are whole or gone.

import { readPage } from '../../base/read-page.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BlobId, chunkName, compareChunkIds } from '../../types/names.ts';
import { lostBounds, lostKey, parseIndexKey } from './keyspace.ts';

export type Loss = 'damaged' | 'missing';

export interface LostChunk {
  id: ChunkId;
  kind: Loss;
  /** Wall clock. */
  foundAtMs: number;
}

export interface LostChunksDeps {
  kv: KvPort;
  clock: ClockPort;
  log: Logger;
  telemetry: TelemetryPort;
}

const codec = defineRecord<Omit<LostChunk, 'id'>>({ name: 'lost-chunk', version: 1 });

const METRICS = {
  damaged: 'holdfast_damaged_chunks_found_total',
  missing: 'holdfast_lost_chunks_found_total',
} as const;

export class LostChunks {
  readonly #deps: LostChunksDeps;
  /** The first ones found; those beyond are counted, and found again by the next pass once these are repaired. */
  readonly #chunks = new Map<string, LostChunk>();

  private constructor(deps: LostChunksDeps) {
    this.#deps = deps;
  }

  static async open(deps: LostChunksDeps): Promise<LostChunks> {
    const lost = new LostChunks(deps);
    const range = { column: 'index', ...lostBounds(), limit: LIMITS.lostChunksMax };
    for (const { key, value } of (await readPage(deps.kv, range)).rows) {
      const id = parseIndexKey(key);
      lost.#chunks.set(chunkName(id), { id, ...codec.decode(value) });
    }
    return lost;
  }

  /** Counts and logs it the first time. */
  note(id: ChunkId, kind: Loss): void {
    const { clock, log, telemetry } = this.#deps;
    const name = chunkName(id);
    if (this.#chunks.get(name)?.kind === kind) return;
    telemetry.count(METRICS[kind]);
    if (this.#chunks.size >= LIMITS.lostChunksMax) return;
    const facts = { kind, foundAtMs: clock.wallMs() };
    this.#chunks.set(name, { id, ...facts });
    log.error({ ...id, kind, namedBy: 'holdfast fsck --read-data' }, 'chunk-lost');
    this.#keep(id, codec.encode(facts));
  }

  /** The chunk is whole, rewritten or dropped. */
  forget(id: ChunkId): void {
    if (this.#chunks.size > 0 && this.#chunks.delete(chunkName(id))) this.#keep(id, null);
  }

  has(id: ChunkId): boolean {
    return this.#chunks.size > 0 && this.#chunks.has(chunkName(id));
  }

  count(kind: Loss): number {
    return this.list().filter((one) => one.kind === kind).length;
  }

  /** Whose chunks these are, each once. */
  blobs(): BlobId[] {
    return [...new Set([...this.#chunks.values()].map(({ id }) => id.blobId))];
  }

  /** In the order of ids. */
  list(): LostChunk[] {
    return [...this.#chunks.values()].sort((a, b) => compareChunkIds(a.id, b.id));
  }

  /** Written in the background: a chunk that is not recorded is found again. The store itself reports its failure. */
  #keep(id: ChunkId, value: Uint8Array | null): void {
    const row = { column: 'index', key: lostKey(id), value };
    this.#deps.kv.commit([row], { sync: false, isPatient: true }).catch(() => {});
  }
}
