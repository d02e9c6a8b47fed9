// Which records are read for the first time in a while. Such a one goes past the page cache (extents.ts): most chunks of a backup
// are read once, and to bring one into the cache costs several times what its read does. What is read again is worth a place there.

/** Of each generation: two are known. */
const KNOWN_MAX = 16 * 1024;

export class FirstReads {
  #known = new Set<number>();
  #older = new Set<number>();

  /** Whether a record is read for the first time, by its sequence. From here on it is known, until so many others were read. */
  isFirst(sequence: number): boolean {
    if (this.#known.has(sequence)) return false;
    const isFirst = !this.#older.has(sequence);
    if (this.#known.size >= KNOWN_MAX) {
      this.#older = this.#known;
      this.#known = new Set();
    }
    this.#known.add(sequence);
    return isFirst;
  }
}
