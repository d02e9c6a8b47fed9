// What a shard has committed, as the checkers have seen it: the first replica that applies an entry makes it history, and
// every other one must agree (I1). From it follows what the state must be after each entry (I5), which request had its
// effect where (I6), and what time it was (I8).
import { latin1Key } from '../../src/base/bytes/bytes.ts';
import type { KvPut } from '../../src/ports/kv.ts';
import type { EntryFact } from './node.ts';
import { SimulationFailure } from './scheduler.ts';

/** By how much shard time may be ahead of true time while a majority of clocks is right (R19). */
const TIME_AHEAD_MAX_MS = 11_000;

interface CommittedEntry extends EntryFact {
  /** True time, ms, when it was first applied. */
  committedAtMs: number;
}

interface RowVersion {
  seq: number;
  value: Uint8Array | null;
}

export class ShardHistory {
  readonly shard: number;
  /** By seq - 1. */
  readonly #entries: CommittedEntry[] = [];
  readonly #rows = new Map<string, RowVersion[]>();
  readonly #seqOfRequest = new Map<string, number>();
  #acknowledgedSeq = 0;

  constructor(shard: number) {
    this.shard = shard;
  }

  get lastSeq(): number {
    return this.#entries.length;
  }

  /** The last entry that was answered to a client. */
  get acknowledgedSeq(): number {
    return this.#acknowledgedSeq;
  }

  get entries(): readonly CommittedEntry[] {
    return this.#entries;
  }

  entry(seq: number): CommittedEntry | undefined {
    return this.#entries[seq - 1];
  }

  seqOf(requestId: string): number | undefined {
    return this.#seqOfRequest.get(requestId);
  }

  acknowledge(seq: number): void {
    this.#acknowledgedSeq = Math.max(this.#acknowledgedSeq, seq);
  }

  /** A replica applies an entry. `trueWallMs`: undefined while no majority of clocks is right. */
  apply(by: string, entry: EntryFact, now: { atMs: number; trueWallMs: number | undefined }): void {
    const known = this.entry(entry.seq);
    if (known !== undefined) {
      if (known.digest !== entry.digest)
        throw new SimulationFailure(
          `I1: shard ${this.shard}: ${by} applies ${show(entry)}, where ${show(known)} was applied before`,
        );
      return;
    }
    const before = this.#entries.at(-1);
    if (entry.seq !== this.lastSeq + 1)
      throw new SimulationFailure(
        `I1: shard ${this.shard}: ${by} applies ${show(entry)} and the last entry was ${this.lastSeq}`,
      );
    if (before !== undefined && entry.timeMs < before.timeMs)
      throw new SimulationFailure(
        `I8: shard ${this.shard}: time of ${show(entry)} is ${entry.timeMs}, of ${show(before)} ${before.timeMs}`,
      );
    if (now.trueWallMs !== undefined && entry.timeMs > now.trueWallMs + TIME_AHEAD_MAX_MS)
      throw new SimulationFailure(
        `I8: shard ${this.shard}: time of ${show(entry)} is ${entry.timeMs - now.trueWallMs} ms ahead`,
      );
    this.#commit(entry, now.atMs);
  }

  /** What the rows that these entries touch must be after the last of them. */
  changes(afterSeq: number, uptoSeq: number): Map<string, KvPut> {
    const changes = new Map<string, KvPut>();
    for (let seq = afterSeq + 1; seq <= uptoSeq; seq++)
      for (const row of this.entry(seq)?.rows ?? []) changes.set(rowName(row), row);
    return changes;
  }

  /** All rows that there must be after entry `seq`. */
  rowsAt(seq: number): Map<string, Uint8Array> {
    const rows = new Map<string, Uint8Array>();
    for (const [name, versions] of this.#rows) {
      const version = versions.findLast((candidate) => candidate.seq <= seq);
      if (version !== undefined && version.value !== null) rows.set(name, version.value);
    }
    return rows;
  }

  /** What a row held last, whether it is there still or not; undefined: it never was. */
  lastOf(row: { column: string; key: Uint8Array }): Uint8Array | undefined {
    return this.#rows.get(rowName(row))?.findLast(({ value }) => value !== null)?.value ?? undefined;
  }

  #commit(entry: EntryFact, committedAtMs: number): void {
    const { seq, requestId } = entry;
    this.#entries.push({ ...entry, committedAtMs });
    for (const row of entry.rows) {
      const name = rowName(row);
      const versions = this.#rows.get(name);
      if (versions === undefined) this.#rows.set(name, [{ seq, value: row.value }]);
      else versions.push({ seq, value: row.value });
    }
    if (requestId === undefined) return;
    const earlier = this.#seqOfRequest.get(requestId);
    if (earlier !== undefined)
      throw new SimulationFailure(
        `I6: shard ${this.shard}: request ${requestId} has effects at ${earlier} and ${seq}`,
      );
    this.#seqOfRequest.set(requestId, seq);
  }
}

export function rowName({ column, key }: { column: string; key: Uint8Array }): string {
  return `${column}/${latin1Key(key)}`;
}

function show({ seq, epoch, digest }: EntryFact): string {
  return `entry ${seq} of epoch ${epoch} (${digest})`;
}
