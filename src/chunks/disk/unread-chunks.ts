// Chunks of a disk that could not be read, though nothing says that their bytes are lost: the drive does not answer, or
// fails with an error that may pass. A chunk that stays unreadable is reported to its home, which has it rewritten from
// another copy (R39, R40); such chunks are remembered over a restart. This is never a reason to drop anything.

import { readPage } from '../../base/read-page.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName, compareChunkIds, homeShardOf } from '../../types/names.ts';
import { parseIndexKey, unreadBounds, unreadKey } from './keyspace.ts';

export interface UnreadDeps {
  kv: KvPort;
  clock: ClockPort;
  log: Logger;
  /** Called each time that a chunk could not be read. */
  onUnread?: () => void;
}

interface Unread {
  id: ChunkId;
  /** Monotonic; undefined: not tried since the start. */
  triedAtMs: number | undefined;
  /** It failed twice, with time in between. */
  isSure: boolean;
}

const codec = defineRecord<{ unreadAtMs: number }>({ name: 'unread', version: 1 });

export class UnreadChunks {
  readonly #deps: UnreadDeps;
  /** Bounded; chunks beyond the bound are found again by the next pass of the scrub. */
  readonly #chunks = new Map<string, Unread>();

  private constructor(deps: UnreadDeps) {
    this.#deps = deps;
  }

  static async open(deps: UnreadDeps): Promise<UnreadChunks> {
    const unread = new UnreadChunks(deps);
    const range = { column: 'index', ...unreadBounds(), limit: LIMITS.unreadChunksMax, keysOnly: true };
    for (const { key } of (await readPage(deps.kv, range)).rows) {
      const id = parseIndexKey(key);
      unread.#chunks.set(chunkName(id), { id, triedAtMs: undefined, isSure: true });
    }
    return unread;
  }

  /** The number of chunks of which `has` is true. */
  get count(): number {
    return this.#chunks.size === 0 ? 0 : [...this.#chunks.values()].filter(({ isSure }) => isSure).length;
  }

  note(id: ChunkId, error: unknown): void {
    const { clock, log, onUnread } = this.#deps;
    onUnread?.();
    const name = chunkName(id);
    const known = this.#chunks.get(name);
    const triedAtMs = clock.monotonicMs();
    if (known === undefined) {
      if (this.#chunks.size >= LIMITS.unreadChunksMax) return;
      this.#chunks.set(name, { id, triedAtMs, isSure: false });
      log.warn({ ...id, err: error }, 'chunk-unread');
      return;
    }
    if (!this.#isDue(known)) return;
    known.triedAtMs = triedAtMs;
    if (known.isSure) return;
    known.isSure = true;
    this.#keep(id, codec.encode({ unreadAtMs: clock.wallMs() }));
    log.error({ ...id, err: error }, 'chunk-unread-again');
  }

  /** The chunk was read, rewritten or dropped. */
  forget(id: ChunkId): void {
    const name = chunkName(id);
    const known = this.#chunks.get(name);
    if (known === undefined) return;
    this.#chunks.delete(name);
    if (known.isSure) this.#keep(id, null);
  }

  /** Whether its home shard must learn that it cannot be read. */
  has(id: ChunkId): boolean {
    return this.#chunks.size > 0 && this.#chunks.get(chunkName(id))?.isSure === true;
  }

  /** Whether the last attempt to read it failed. */
  isKnown(id: ChunkId): boolean {
    return this.#chunks.size > 0 && this.#chunks.has(chunkName(id));
  }

  /** Chunks of these homes of which `has` is true, in id order. */
  list(options: { homes: readonly number[]; after?: ChunkId; limit: number }): ChunkId[] {
    const homes = new Set(options.homes);
    const { after } = options;
    return [...this.#chunks.values()]
      .filter(({ id, isSure }) => isSure && homes.has(homeShardOf(id.blobId)))
      .map(({ id }) => id)
      .filter((id) => after === undefined || compareChunkIds(id, after) > 0)
      .sort(compareChunkIds)
      .slice(0, options.limit);
  }

  /** Chunks that have not been tried for a while. */
  due(): ChunkId[] {
    return [...this.#chunks.values()].filter((one) => this.#isDue(one)).map(({ id }) => id);
  }

  #isDue({ triedAtMs }: Unread): boolean {
    if (triedAtMs === undefined) return true;
    return this.#deps.clock.monotonicMs() - triedAtMs >= LIMITS.unreadChunkAgainMs;
  }

  /** Written in the background, because the drive may hang; the store itself reports its failure. */
  #keep(id: ChunkId, value: Uint8Array | null): void {
    const row = { column: 'index', key: unreadKey(id), value };
    this.#deps.kv.commit([row], { sync: false, isPatient: true }).catch(() => {});
  }
}

/** Merges two lists in id order, with each id once: a chunk may be both quarantined and unreadable. */
export function mergeIds(first: readonly ChunkId[], second: readonly ChunkId[]): ChunkId[] {
  return [...byName([...first, ...second]).values()].sort(compareChunkIds);
}

/** By name, each once. */
export function byName(ids: readonly ChunkId[]): Map<string, ChunkId> {
  return new Map(ids.map((id) => [chunkName(id), id]));
}
