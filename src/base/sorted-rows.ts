// Rows in the order of their keys, in memory: keys are held as strings of code units 0-255, which compare as bytes do,
// in runs of bounded length, so that a change moves few of them. No limits and no versions; who needs a consistent view
// copies one.
import { latin1Key } from './bytes/bytes.ts';

export interface SortedRow<T> {
  readonly key: Uint8Array;
  value: T;
}

const RUN_MAX = 512;

export class SortedRows<T> {
  readonly #rows = new Map<string, SortedRow<T>>();
  /** Runs of keys, each run and all of them in order; none is empty but the only one. */
  readonly #runs: string[][] = [[]];

  get size(): number {
    return this.#rows.size;
  }

  get(key: Uint8Array): SortedRow<T> | undefined {
    return this.#rows.get(latin1Key(key));
  }

  /** Returns the row that was there before. */
  set(key: Uint8Array, value: T): T | undefined {
    const text = latin1Key(key);
    const row = this.#rows.get(text);
    if (row !== undefined) {
      const before = row.value;
      row.value = value;
      return before;
    }
    this.#rows.set(text, { key, value });
    const at = this.#runOf(text);
    const run = this.#runs[at] as string[];
    run.splice(lowerBound(run, text), 0, text);
    if (run.length > RUN_MAX) this.#runs.splice(at + 1, 0, run.splice(RUN_MAX / 2));
    return undefined;
  }

  /** `isMeant`: of the value that is there; without it any. */
  delete(key: Uint8Array, isMeant?: (value: T) => boolean): void {
    const text = latin1Key(key);
    if (isMeant !== undefined) {
      const row = this.#rows.get(text);
      if (row === undefined || !isMeant(row.value)) return;
    }
    if (!this.#rows.delete(text)) return;
    const at = this.#runOf(text);
    const run = this.#runs[at] as string[];
    run.splice(lowerBound(run, text), 1);
    if (run.length === 0 && this.#runs.length > 1) this.#runs.splice(at, 1);
  }

  /** Rows from `gte` up to, but not with, `lt`, in ascending order. */
  *between(gte: Uint8Array, lt: Uint8Array): Generator<SortedRow<T>> {
    const begin = latin1Key(gte);
    const end = latin1Key(lt);
    for (let at = this.#runOf(begin); at < this.#runs.length; at++) {
      const run = this.#runs[at] as string[];
      for (let index = lowerBound(run, begin); index < run.length; index++) {
        const text = run[index] as string;
        if (text >= end) return;
        yield this.#rows.get(text) as SortedRow<T>;
      }
    }
  }

  /** The first run that ends at `text` or behind it; the last one when none does. */
  #runOf(text: string): number {
    let low = 0;
    let high = this.#runs.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (((this.#runs[middle] as string[]).at(-1) as string) < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function lowerBound(texts: readonly string[], text: string): number {
  let low = 0;
  let high = texts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((texts[middle] as string) < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
