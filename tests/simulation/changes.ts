// Settings of the world that faults change for a while: several may be at work at once, and each takes back its own.

export class Changeable<T extends object> {
  readonly #usual: T;
  readonly #changes = new Set<Partial<T>>();
  #now: T;

  constructor(usual: T) {
    this.#usual = usual;
    this.#now = usual;
  }

  get now(): Readonly<T> {
    return this.#now;
  }

  /** The newest change of a setting counts. The returned function ends this one. */
  change(change: Partial<T>): () => void {
    const own = { ...change };
    this.#changes.add(own);
    this.#merge();
    return () => {
      this.#changes.delete(own);
      this.#merge();
    };
  }

  #merge(): void {
    this.#now = Object.assign({ ...this.#usual }, ...this.#changes);
  }
}
