// The blobs that shards have committed, as their logs show, and what must hold of them: created while young enough (R25),
// never again once marked for deletion (I10), and on two nodes when they are created (R35, I11).
import { toHex } from '../../src/base/bytes/bytes.ts';
import { keyOfRow } from '../../src/metadata/engine/row-keys.ts';
import { TABLES } from '../../src/metadata/schema/keyspace.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import { type BlobId, idTimeMs } from '../../src/types/names.ts';
import { type BlobRecord, blobCodec } from '../../src/types/records/rows.ts';
import { chunkCount } from '../../src/types/version.ts';
import { SimulationFailure } from './scheduler.ts';
import type { ShardHistory } from './shard-history.ts';

/** What the protocol says, whatever the product's own limits are. */
const NODES_MIN = 2;
const ID_AGE_MAX_MS = 24 * 60 * 60_000;
const ID_AHEAD_MAX_MS = 60 * 60_000;

export class LiveBlobs {
  readonly #nodesOf: (id: ChunkId) => number;
  /** Copies that faults have taken from it, and nobody has replaced yet. */
  readonly #lostOf: (id: ChunkId) => number;
  readonly #seenSeq = new Map<number, number>();
  readonly #live = new Map<BlobId, BlobRecord>();
  readonly #gone = new Set<BlobId>();
  readonly #debts = new Set<BlobId>();
  /** How often a repair entry was made. */
  repairsEver = 0;
  /** Blobs marked for deletion whose rows are gone. */
  erasedCount = 0;

  /** `nodesOf`: how many have an intact copy. */
  constructor(options: { nodesOf(id: ChunkId): number; lostOf(id: ChunkId): number }) {
    this.#nodesOf = options.nodesOf;
    this.#lostOf = options.lostOf;
  }

  /** Takes in what a shard has committed since the last time. */
  follow(history: ShardHistory): void {
    const { shard, lastSeq } = history;
    for (let seq = (this.#seenSeq.get(shard) ?? 0) + 1; seq <= lastSeq; seq++) {
      const entry = history.entry(seq);
      for (const { column, key, value } of entry?.rows ?? []) {
        if (column !== 'rows') continue;
        if (key[2] === TABLES.debts.id) this.#recordRepair(toHex(keyOfRow(key)) as BlobId, value !== null);
        if (key[2] === TABLES.blobs.id)
          this.#note(toHex(keyOfRow(key)) as BlobId, value && blobCodec.decode(value), entry?.timeMs ?? 0);
      }
    }
    this.#seenSeq.set(shard, lastSeq);
  }

  /** Blobs of which not all copies are where they should be (R36). */
  get repairCount(): number {
    return this.#debts.size;
  }

  /** Of some of its chunks not all copies are where they should be, and its home knows. */
  isIncomplete(blobId: BlobId): boolean {
    return this.#debts.has(blobId);
  }

  /** It lived, and never will again. */
  isGone(blobId: BlobId): boolean {
    return this.#gone.has(blobId);
  }

  #recordRepair(blobId: BlobId, isIncomplete: boolean): void {
    if (isIncomplete) this.repairsEver++;
    if (isIncomplete) this.#debts.add(blobId);
    else this.#debts.delete(blobId);
  }

  /** Chunks of all that lives. */
  chunks(): ChunkId[] {
    return [...this.#live].flatMap(([blobId, blob]) =>
      blob.kind === 'data' && blob.storage === 'chunks'
        ? Array.from({ length: chunkCount(blob) }, (_, index) => ({ blobId, index }))
        : [],
    );
  }

  /** Every blob that lives has what it needs. */
  check(): void {
    for (const [blobId, blob] of this.#live) this.#checkCopies(blobId, blob);
  }

  #note(blobId: BlobId, blob: BlobRecord | null, timeMs: number): void {
    if (blob === null || blob.condemnedAtMs !== undefined) {
      if (blob === null) this.erasedCount++;
      this.#live.delete(blobId);
      this.#gone.add(blobId);
      return;
    }
    if (this.#gone.has(blobId))
      throw new SimulationFailure(`I10: blob ${blobId} lives again, and was condemned before`);
    if (!this.#live.has(blobId)) {
      const ageMs = timeMs - idTimeMs(blobId);
      if (ageMs > ID_AGE_MAX_MS || ageMs < -ID_AHEAD_MAX_MS)
        throw new SimulationFailure(`I9: blob ${blobId} is born ${ageMs} ms after its id was made (R25)`);
      this.#live.set(blobId, blob);
      this.#checkCopies(blobId, blob);
    }
    this.#live.set(blobId, blob);
  }

  /** One of its copies has gone. */
  checkChunk(id: ChunkId): void {
    if (!this.#live.has(id.blobId)) return;
    const count = this.#nodesOf(id);
    const wanted = NODES_MIN - this.#lostOf(id);
    if (count < wanted)
      throw new SimulationFailure(
        `I11: ${count} nodes have chunk ${id.index} of ${id.blobId}, ${wanted} wanted`,
      );
  }

  #checkCopies(blobId: BlobId, blob: BlobRecord): void {
    if (blob.kind !== 'data' || blob.storage !== 'chunks') return;
    for (let index = 0; index < chunkCount(blob); index++) this.checkChunk({ blobId, index });
  }
}
