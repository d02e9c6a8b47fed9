// What a load was promised, key by key: the digest of the last acknowledged value, and what requests without a definite
// answer may have left. What is read is checked against it. It knows nothing of requests.
import { createHash } from 'node:crypto';

/** SHA-256 of a value; null: there is no object. */
export type Digest = string | null;

export const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

interface Entry {
  /** The last that was acknowledged, or seen for good. */
  settled: Digest;
  /** Of requests whose outcome is unknown: each may have happened, or happen yet. */
  possible: Digest[];
}

export class Ledger {
  readonly #entries = new Map<string, Entry>();
  #acknowledgedCount = 0;
  #touched = new Set<string>();

  /** Writes that were acknowledged. */
  get acknowledgedCount(): number {
    return this.#acknowledgedCount;
  }

  get paths(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /** Paths that were written to since this was asked last. */
  takeTouched(): readonly string[] {
    const touched = [...this.#touched];
    this.#touched = new Set();
    return touched;
  }

  acknowledge(path: string, digest: Digest): void {
    this.#acknowledgedCount++;
    this.#touched.add(path);
    this.#entries.set(path, { settled: digest, possible: [] });
  }

  /** A request ended without telling what became of it. */
  leaveOpen(path: string, digest: Digest): void {
    this.#touched.add(path);
    const entry = this.#entries.get(path) ?? { settled: null, possible: [] };
    entry.possible.push(digest);
    this.#entries.set(path, entry);
  }

  /** Its value is known, and nothing is under way: it may be written to. */
  isSettled(path: string): boolean {
    return (this.#entries.get(path)?.possible.length ?? 0) === 0;
  }

  /** undefined when `found` is right. Of several possible ones that is then the one: nobody goes back behind it. */
  check(path: string, found: Digest): string | undefined {
    const entry = this.#entries.get(path) ?? { settled: null, possible: [] };
    if (found === entry.settled) return undefined;
    if (!entry.possible.includes(found))
      return `${path} is ${found}, and should be ${[entry.settled, ...entry.possible].join(' or ')}`;
    entry.settled = found;
    entry.possible = entry.possible.filter((digest) => digest !== found);
    this.#entries.set(path, entry);
    return undefined;
  }

  /** Keys under `prefix` and behind `after` that must be listed, and those that may be. */
  listed(prefix: string, after: string): { certain: Set<string>; possible: Set<string> } {
    const certain = new Set<string>();
    const possible = new Set<string>();
    for (const [path, entry] of this.#entries) {
      if (path <= after || !path.startsWith(prefix)) continue;
      const isThere = [entry.settled, ...entry.possible].map((digest) => digest !== null);
      if (isThere.every(Boolean)) certain.add(path);
      else if (isThere.some(Boolean)) possible.add(path);
    }
    return { certain, possible };
  }
}
