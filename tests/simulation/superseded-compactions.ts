// Folds that help nobody: pieces of a version that is not its key's latest become one, while those above it still have them
// one by one. Each version of an object that grows could be folded so, one after the other, and what is stored would grow
// with their number; so a fold is for the latest version, or for all that have the pieces.

import { keyOfRow } from '../../src/metadata/engine/row-keys.ts';
import { REGION, TABLES } from '../../src/metadata/schema/keyspace.ts';
import type { BlobId } from '../../src/types/names.ts';
import { decodeVersion } from '../../src/types/records/version-record.ts';
import { linksOf } from '../../src/types/version.ts';
import { positionOf } from './committed-versions.ts';
import { rowName, type ShardHistory } from './shard-history.ts';

type Position = ReturnType<typeof positionOf>;
type StoredVersion = { own: Uint8Array; value: Uint8Array };

export interface SupersededCompaction {
  shard: number;
  key: string;
  /** What was folded, and stays in a newer version. */
  pieces: BlobId[];
}

const blobsOf = (value: Uint8Array) => linksOf(decodeVersion(value).manifest).map(({ blobId }) => blobId);

export class SupersededCompactions {
  readonly #seenSeq = new Map<number, number>();
  readonly #versions = new Map<string, StoredVersion>();

  /** Those that a shard has committed since the last time. */
  follow(history: ShardHistory): SupersededCompaction[] {
    const { shard, lastSeq } = history;
    const found: SupersededCompaction[] = [];
    for (let seq = (this.#seenSeq.get(shard) ?? 0) + 1; seq <= lastSeq; seq++) {
      const compacted = (history.entry(seq)?.rows ?? []).flatMap((row) => this.#apply(row) ?? []);
      for (const { position, pieces } of compacted)
        if (this.#isAbove(position, pieces)) found.push({ shard, key: position.key, pieces });
    }
    this.#seenSeq.set(shard, lastSeq);
    return found;
  }

  /** What an older version has no longer, though it stays in its place. */
  #apply(row: { column: string; key: Uint8Array; value: Uint8Array | null }) {
    const { key, value } = row;
    if (row.column !== 'rows' || key[2] !== TABLES.objects.id) return undefined;
    const name = rowName(row);
    const before = this.#versions.get(name);
    if (value === null) this.#versions.delete(name);
    else this.#versions.set(name, { own: keyOfRow(key), value });
    if (before === undefined || value === null || before.own[0] !== REGION.version) return undefined;
    const has = new Set(blobsOf(value));
    const pieces = blobsOf(before.value).filter((blobId) => !has.has(blobId));
    return pieces.length === 0 ? undefined : { position: positionOf(before.own, value), pieces };
  }

  /** Whether a newer version has all of these. */
  #isAbove({ bucketId, key, order }: Position, pieces: readonly BlobId[]): boolean {
    return [...this.#versions.values()].some(({ own, value }) => {
      const other = positionOf(own, value);
      if (other.bucketId !== bucketId || other.key !== key || other.order <= order) return false;
      const has = new Set(blobsOf(value));
      return pieces.every((blobId) => has.has(blobId));
    });
  }
}
