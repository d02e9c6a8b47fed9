// A cache with a bound: what was used longest ago goes first. No expiry; entries say themselves how old they are. Entries are
// counted, and weighed where they differ much.

export interface Weighing<V> {
  /** Of all entries together. */
  weightMax: number;
  /** Does not change while the entry is kept. */
  weightOf(value: V): number;
}

export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #sizeMax: number;
  readonly #weighing: Weighing<V> | undefined;
  #weight = 0;

  constructor(sizeMax: number, weighing?: Weighing<V>) {
    this.#sizeMax = sizeMax;
    this.#weighing = weighing;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined || !this.#isHalfFull()) return value;
    // Order of use matters only when the end is in sight.
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#weight += this.#weightOf(value);
    for (const oldest of this.#entries.keys()) {
      if (!this.#isTooFull()) return;
      this.delete(oldest);
    }
  }

  delete(key: K): void {
    const value = this.#entries.get(key);
    if (value !== undefined) this.#weight -= this.#weightOf(value);
    this.#entries.delete(key);
  }

  /** Looks at every entry. */
  deleteWhere(isToGo: (value: V) => boolean): void {
    for (const [key, value] of this.#entries) if (isToGo(value)) this.delete(key);
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
