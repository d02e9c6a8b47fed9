// A cache with a bound: what was used longest ago goes first. No expiry; entries say themselves how old they are.

export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #sizeMax: number;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined || this.#entries.size < this.#sizeMax / 2) return value;
    // Order of use matters only when the end is in sight.
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#sizeMax) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  /** Looks at every entry. */
  deleteWhere(isToGo: (value: V) => boolean): void {
    for (const [key, value] of this.#entries) if (isToGo(value)) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
