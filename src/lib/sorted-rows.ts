// Rows in the order of their keys, in memory, for small sets: keys are held as strings of code units 0-255, which
// compare as bytes do. No limits and no versions; who needs a consistent view copies one.
import { latin1Key } from './bytes.ts';

export interface SortedRow<T> {
  readonly key: Uint8Array;
  value: T;
}

export class SortedRows<T> {
  readonly #rows = new Map<string, SortedRow<T>>();
  readonly #order: string[] = [];

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
    this.#order.splice(this.#lowerBound(text), 0, text);
    return undefined;
  }

  delete(key: Uint8Array): void {
    const text = latin1Key(key);
    if (this.#rows.delete(text)) this.#order.splice(this.#lowerBound(text), 1);
  }

  /** Rows from `gte` up to, but not with, `lt`, in ascending order. */
  *between(gte: Uint8Array, lt: Uint8Array): Generator<SortedRow<T>> {
    const end = latin1Key(lt);
    for (let index = this.#lowerBound(latin1Key(gte)); index < this.#order.length; index++) {
      const text = this.#order[index] as string;
      if (text >= end) return;
      yield this.#rows.get(text) as SortedRow<T>;
    }
  }

  #lowerBound(text: string): number {
    let low = 0;
    let high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#order[middle] as string) < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
