// A cache with a bound: what was used longest ago goes first. No expiry; entries say themselves how old they are. Entries are
// counted, and weighed where they differ much. Keys that are texts have memory of their own (own-text.ts).
import { ownText } from './text/own-text.ts';

export interface Weighing<V> {
  /** Of all entries together. */
  weightMax: number;
  /** Does not change while the entry is kept. */
  weightOf(value: V): number;
}

interface Entry<K, V> {
  readonly key: K;
  readonly value: V;
}

export class BoundedMap<K, V> {
  readonly #entries = new Map<K, Entry<K, V>>();
  readonly #sizeMax: number;
  readonly #weighing: Weighing<V> | undefined;
  #weight = 0;

  constructor(sizeMax: number, weighing?: Weighing<V>) {
    this.#sizeMax = sizeMax;
    this.#weighing = weighing;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || !this.#isHalfFull()) return entry?.value;
    // Order of use matters only when the end is in sight.
    this.#entries.delete(key);
    this.#entries.set(entry.key, entry);
    return entry.value;
  }

  set(key: K, value: V): void {
    this.delete(key);
    const kept = typeof key === 'string' ? (ownText(key) as string & K) : key;
    this.#entries.set(kept, { key: kept, value });
    this.#weight += this.#weightOf(value);
    for (const oldest of this.#entries.keys()) {
      if (!this.#isTooFull()) return;
      this.delete(oldest);
    }
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#weight -= this.#weightOf(entry.value);
    this.#entries.delete(key);
  }

  /** Looks at every entry. */
  deleteWhere(isToGo: (value: V) => boolean): void {
    for (const { key, value } of this.#entries.values()) if (isToGo(value)) this.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#weight = 0;
  }

  #weightOf(value: V): number {
    return this.#weighing?.weightOf(value) ?? 0;
  }

  #isHalfFull(): boolean {
    const { weightMax = Number.POSITIVE_INFINITY } = this.#weighing ?? {};
    return this.#entries.size >= this.#sizeMax / 2 || this.#weight >= weightMax / 2;
  }

  #isTooFull(): boolean {
    const { weightMax = Number.POSITIVE_INFINITY } = this.#weighing ?? {};
    return this.#entries.size > this.#sizeMax || this.#weight > weightMax;
  }
}
