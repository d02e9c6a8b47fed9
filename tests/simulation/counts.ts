// How often things happened in a seed, and in how many seeds: what never happens proves nothing.

export class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  entries(): [string, number][] {
    return [...this.#counts].sort(([one], [other]) => (one < other ? -1 : 1));
  }
}
