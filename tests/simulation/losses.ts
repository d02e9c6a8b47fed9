// Losses of what a disk had synced, of which one at a time must be survived (protocol 1.1): whether all copies are there
// again, so that the next one may happen, and what was one is no excuse any more.
import type { ShardHistory } from './shard-history.ts';
import type { MetadataSite } from './sites.ts';

/** After so long a node has looked at its rows, and says what it lacks. */
const JUDGED_MS = 5000;

export interface LossesParts {
  nodes: readonly MetadataSite[];
  shardCount: number;
  nowMs(): number;
  history(shard: number): ShardHistory;
  /** Its voters are those that are wanted: none is another that was lost. */
  isSettled(shard: number): boolean;
  /** Where the voters of a shard are. */
  votersOf(shard: number): readonly { nodeId: string; isLive: boolean; appliedSeq: number }[];
}

export class Losses {
  readonly #parts: LossesParts;
  /** By shard: what was committed at the last one. */
  #lastSeqs: number[] | undefined;

  constructor(parts: LossesParts) {
    this.#parts = parts;
  }

  note(): void {
    const { shardCount, history } = this.#parts;
    this.#lastSeqs = Array.from({ length: shardCount }, (_, shard) => history(shard).lastSeq);
  }

  /** Every voter of every shard has everything, so nobody needs anything of another. Who has just begun may still find so. */
  isLevel(): boolean {
    const { nodes, shardCount, history, votersOf } = this.#parts;
    if (!nodes.every((site) => this.#isJudged(site))) return false;
    return Array.from({ length: shardCount }, (_, shard) => shard).every((shard) =>
      votersOf(shard).every(({ isLive, appliedSeq }) => isLive && appliedSeq === history(shard).lastSeq),
    );
  }

  /** Every voter counts and has what it had when something was lost last; but for what `but` has. */
  isWhole(but?: string): boolean {
    const { nodes, shardCount, isSettled, votersOf } = this.#parts;
    const sites = nodes.filter(({ name }) => name !== but);
    if (sites.some(({ disk }) => disk.hasDamage)) return false;
    if (this.#lastSeqs !== undefined && !sites.every((site) => this.#isJudged(site))) return false;
    return Array.from({ length: shardCount }, (_, shard) => shard).every(
      (shard) =>
        isSettled(shard) &&
        votersOf(shard)
          .filter(({ nodeId }) => nodeId !== but)
          .every(({ isLive, appliedSeq }) => isLive && appliedSeq >= (this.#lastSeqs?.[shard] ?? 0)),
    );
  }

  /** What is missing is known only after a start. */
  #isJudged(site: MetadataSite): boolean {
    return site.node !== undefined && this.#parts.nowMs() - site.startedAtMs > JUDGED_MS;
  }
}
