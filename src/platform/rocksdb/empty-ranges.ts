// Remembers which ranges of a store were empty, until the store is written to. Background workers look into the queues of all
// shards each second, and these are empty most of the time: an idle server spent two thirds of its CPU time on that.
import type { KvRange } from '../../ports/kv.ts';

/** A few queues of each shard; beyond, all are forgotten. */
const RANGES_MAX = 2000;

/** One look at a range. */
export interface RangeLook {
  /** It was empty, and nothing has been written since. */
  readonly isEmpty: boolean;
  /** To be called when the store was read and had no row there. */
  wasEmpty(): void;
}

export class EmptyRanges {
  #known = new Set<string>();
  /** Writes that have begun. */
  #begunCount = 0;
  #underWayCount = 0;

  /** Undefined while something is being written: the store may show it at any moment. */
  look(range: KvRange): RangeLook | undefined {
    if (this.#underWayCount > 0) return undefined;
    const name = nameOf(range);
    const begunCount = this.#begunCount;
    return {
      isEmpty: this.#known.has(name),
      wasEmpty: () => {
        if (this.#begunCount !== begunCount) return;
        if (this.#known.size >= RANGES_MAX) this.#known.clear();
        this.#known.add(name);
      },
    };
  }

  /** Nothing is known to be empty until `written` has ended, and nothing of before it behind it. Returns `written`. */
  during(written: Promise<void>): Promise<void> {
    this.#begunCount++;
    this.#underWayCount++;
    if (this.#known.size > 0) this.#known.clear();
    const ended = () => void this.#underWayCount--;
    written.then(ended, ended);
    return written;
  }
}

function nameOf({ column, gte, lt }: KvRange): string {
  const text = (bytes: Uint8Array) =>
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  return `${column} ${gte.length} ${text(gte)} ${text(lt)}`;
}
