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
/** Keys without a place: to put so many into theirs takes up to 10 ms, however many have one. */
const UNPLACED_MAX = 4096;
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
    const placed = this.#remove(key, isMeant);
    if (placed !== undefined) this.#takeOut([placed]);
  }

  /** As `delete` of each: of many it costs less. */
  deleteMany(keys: readonly Uint8Array[], isMeant?: (value: T) => boolean): void {
    const placed: string[] = [];
    for (const key of keys) {
      const text = this.#remove(key, isMeant);
      if (text !== undefined) placed.push(text);
    }
    if (placed.length > 0) this.#takeOut(placed.sort());
  }

  /** Its text, which is to be taken out of its run, where it is in one. */
  #remove(key: Uint8Array, isMeant?: (value: T) => boolean): string | undefined {
    const text = latin1Key(key);
    const row = this.#rows.get(text);
    if (row === undefined || isMeant?.(row.value) === false) return undefined;
    this.#rows.delete(text);
    if (row.isPlaced) return text;
    this.#goneCount++;
    if (this.#goneCount > GONE_MAX && 2 * this.#goneCount > this.#unplaced.length) this.#forgetGone();
    return undefined;
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
    this.#place(texts.sort());
  }

  /** In order, none of which is in a run: each run is made anew once, however many come into it. */
  #place(texts: readonly string[]): void {
    for (let next = 0; next < texts.length; ) {
      const at = this.#runOf(texts[next] as string);
      const run = this.#runs[at] as string[];
      const isLast = at === this.#runs.length - 1;
      const end = isLast ? texts.length : endOf(texts, next, run);
      if (end === next + 1) {
        const text = texts[next] as string;
        run.splice(lowerBound(run, text), 0, text);
      } else this.#runs[at] = merged(run, texts.slice(next, end));
      const changed = this.#runs[at] as string[];
      if (changed.length > RUN_MAX) this.#runs.splice(at, 1, ...runsOf(changed));
      next = end;
    }
  }

  /** In order, each of which is in a run. */
  #takeOut(texts: readonly string[]): void {
    for (let next = 0; next < texts.length; ) {
      const at = this.#runOf(texts[next] as string);
      const run = this.#runs[at] as string[];
      const end = endOf(texts, next, run);
      if (end === next + 1) run.splice(lowerBound(run, texts[next] as string), 1);
      else this.#runs[at] = without(run, texts.slice(next, end));
      if (this.#runs[at]?.length === 0 && this.#runs.length > 1) this.#runs.splice(at, 1);
      next = end;
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

/** Where the texts of the run end, of which `next` is the first. */
function endOf(texts: readonly string[], next: number, run: readonly string[]): number {
  const last = run.at(-1) as string;
  let end = next + 1;
  while (end < texts.length && (texts[end] as string) <= last) end++;
  return end;
}

function merged(run: readonly string[], texts: readonly string[]): string[] {
  const all: string[] = [];
  let from = 0;
  for (const text of texts) {
    const to = lowerBound(run, text, from);
    while (from < to) all.push(run[from++] as string);
    all.push(text);
  }
  while (from < run.length) all.push(run[from++] as string);
  return all;
}

function without(run: readonly string[], texts: readonly string[]): string[] {
  const kept: string[] = [];
  let from = 0;
  for (const text of texts) {
    const to = lowerBound(run, text, from);
    while (from < to) kept.push(run[from++] as string);
    from = to + 1;
  }
  while (from < run.length) kept.push(run[from++] as string);
  return kept;
}

function lowerBound(texts: readonly string[], text: string, from = 0): number {
  let low = from;
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
