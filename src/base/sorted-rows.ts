// Rows in the order of their keys, in memory: keys are held as strings of code units 0-255, which compare as bytes do,
// in runs of bounded length, so that a change moves few of them. A key is put into its place when a range is asked for: of the
// rows of a large entry most are gone before that. Where many stay they are put there as they come, so that no range waits for
// all of them. No limits and no versions; who needs a consistent view copies one.
import { latin1Key } from './bytes/bytes.ts';

export interface SortedRow<T> {
  readonly key: Uint8Array;
  value: T;
}

interface PlacedRow<T> extends SortedRow<T> {
  /** Its key is in a run. */
  isPlaced: boolean;
}

const RUN_MAX = 512;
/** Keys without a place: to put so many into theirs takes some 10 ms. */
const UNPLACED_MAX = 8192;
/** Keys that are gone, among those without a place, are forgotten when they are so many and half of them. */
const GONE_MAX = 1024;

export class SortedRows<T> {
  readonly #rows = new Map<string, PlacedRow<T>>();
  /** Runs of keys, each run and all of them in order; none is empty but the only one. */
  #runs: string[][] = [[]];
  /** Keys that are in no run yet, and some that are gone; one that has come again may be there twice. */
  #unplaced: string[] = [];
  #goneCount = 0;

  get size(): number {
    return this.#rows.size;
  }

  get(key: Uint8Array): SortedRow<T> | undefined {
    return this.#rows.get(latin1Key(key));
  }

  /** Keys that are in no place yet: what the next range begins with. */
  get unplacedCount(): number {
    return this.#unplaced.length;
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
    this.#rows.set(text, { key, value, isPlaced: false });
    this.#unplaced.push(text);
    if (this.#unplaced.length > UNPLACED_MAX) this.#placeMany();
    return undefined;
  }

  /** `isMeant`: of the value that is there; without it any. */
  delete(key: Uint8Array, isMeant?: (value: T) => boolean): void {
    const text = latin1Key(key);
    const row = this.#rows.get(text);
    if (row === undefined || isMeant?.(row.value) === false) return;
    this.#rows.delete(text);
    if (!row.isPlaced) {
      this.#goneCount++;
      if (this.#goneCount > GONE_MAX && 2 * this.#goneCount > this.#unplaced.length) this.#forgetGone();
      return;
    }
    const at = this.#runOf(text);
    const run = this.#runs[at] as string[];
    run.splice(lowerBound(run, text), 1);
    if (run.length === 0 && this.#runs.length > 1) this.#runs.splice(at, 1);
  }

  /** Rows from `gte` up to, but not with, `lt`, in ascending order. */
  *between(gte: Uint8Array, lt: Uint8Array): Generator<SortedRow<T>> {
    this.#placeAll();
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

  #forgetGone(): void {
    this.#goneCount = 0;
    if (this.#unplaced.length > 0)
      this.#unplaced = [...new Set(this.#unplaced)].filter(
        (text) => this.#rows.get(text)?.isPlaced === false,
      );
  }

  /** Where half of them are gone there is room for more. */
  #placeMany(): void {
    this.#forgetGone();
    if (2 * this.#unplaced.length > UNPLACED_MAX) this.#placeAll();
  }

  #placeAll(): void {
    if (this.#goneCount > 0) this.#forgetGone();
    const texts = this.#unplaced;
    if (texts.length === 0) return;
    this.#unplaced = [];
    for (const text of texts) (this.#rows.get(text) as PlacedRow<T>).isPlaced = true;
    // Many are sorted together with all others, which costs less than to look for the place of each.
    if (texts.length > RUN_MAX && texts.length > this.size / 8)
      this.#runs = runsOf([...this.#runs.flat(), ...texts].sort());
    else for (const text of texts) this.#place(text);
  }

  #place(text: string): void {
    const at = this.#runOf(text);
    const run = this.#runs[at] as string[];
    run.splice(lowerBound(run, text), 0, text);
    if (run.length > RUN_MAX) this.#runs.splice(at + 1, 0, run.splice(RUN_MAX / 2));
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

function runsOf(texts: readonly string[]): string[][] {
  const runs: string[][] = [];
  for (let from = 0; from < texts.length; from += RUN_MAX / 2)
    runs.push(texts.slice(from, from + RUN_MAX / 2));
  return runs;
}
