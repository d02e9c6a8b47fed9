// What etcd keeps, in memory: keys with revisions, leases, watches from a revision on. Everything happens at once and
// in one order; that calls travel, and what becomes of them, is memory-coordinator.ts.
import { BrokenInvariant } from '../../base/assert.ts';
import type { KeyChange, KeyPut, StoredKey } from '../../coordination/store.ts';
import type { ClockPort } from '../../ports/clock.ts';

/** Changes that a watch may still begin with; older ones are compacted. */
const CHANGES_KEPT = 1000;

export interface Watcher {
  /** Of the process that watches. */
  by: string;
  prefix: string;
  onChange(change: KeyChange): void;
  /** Nothing more will come. */
  onEnd(error: Error): void;
}

interface Lease {
  ttlMs: number;
  endsAtMs: number;
}

/** All of the store at one moment, as a backup of etcd has it. */
export interface StoreCopy {
  readonly revision: number;
  readonly rows: readonly StoredKey[];
  readonly leases: readonly { leaseId: string; ttlMs: number }[];
}

export class MemoryStore {
  readonly #clock: ClockPort;
  readonly #watchers = new Set<Watcher>();
  #rows = new Map<string, StoredKey>();
  #leases = new Map<string, Lease>();
  #changes: KeyChange[] = [];
  /** The first revision that `#changes` knows all about. */
  #changesFrom = 2;
  #revision = 1;
  #leaseCount = 0;

  constructor(clock: ClockPort) {
    this.#clock = clock;
  }

  get revision(): number {
    return this.#revision;
  }

  get(key: string): { row: StoredKey | undefined; revision: number } {
    return { row: this.#rows.get(key), revision: this.#revision };
  }

  list(prefix: string): { rows: StoredKey[]; revision: number } {
    const rows = [...this.#rows.values()]
      .filter(({ key }) => key.startsWith(prefix))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
    return { rows, revision: this.#revision };
  }

  put({ key, value, expected, leaseId }: KeyPut): { kind: 'done'; revision: number } | { kind: 'lost' } {
    const before = this.#rows.get(key);
    if (expected !== undefined && (before?.modRevision ?? 0) !== expected) return { kind: 'lost' };
    if (leaseId !== undefined && !this.#leases.has(leaseId)) throw new Error(`there is no lease ${leaseId}`);
    const revision = ++this.#revision;
    const row = {
      key,
      value,
      createRevision: before?.createRevision ?? revision,
      modRevision: revision,
      leaseId,
    };
    this.#rows.set(key, row);
    this.#report({ key, row, revision });
    return { kind: 'done', revision };
  }

  /** As an operator does by hand. */
  remove(keys: readonly string[]): void {
    const present = keys.filter((key) => this.#rows.delete(key));
    if (present.length === 0) return;
    const revision = ++this.#revision;
    for (const key of present) this.#report({ key, row: undefined, revision });
  }

  grantLease(ttlMs: number): string {
    const leaseId = String(++this.#leaseCount);
    this.#startLease(leaseId, ttlMs);
    return leaseId;
  }

  keepLease(leaseId: string): boolean {
    const lease = this.#leases.get(leaseId);
    if (lease === undefined) return false;
    lease.endsAtMs = this.#clock.monotonicMs() + lease.ttlMs;
    return true;
  }

  revokeLease(leaseId: string): void {
    if (!this.#leases.delete(leaseId)) return;
    this.remove([...this.#rows.values()].filter((row) => row.leaseId === leaseId).map(({ key }) => key));
  }

  /** Reports changes from `fromRevision` on, past ones first. Returns the function that ends it. */
  watch(watcher: Watcher, fromRevision: number): () => void {
    if (fromRevision < this.#changesFrom) throw new Error(`revision ${fromRevision} has been compacted`);
    for (const change of this.#changes) {
      if (change.revision >= fromRevision && change.key.startsWith(watcher.prefix)) watcher.onChange(change);
    }
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** As a restart of the server does; `by`: those of one process only. */
  endWatches(error: Error, by?: string): void {
    for (const watcher of [...this.#watchers]) {
      if (by !== undefined && watcher.by !== by) continue;
      this.#watchers.delete(watcher);
      watcher.onEnd(error);
    }
  }

  copy(): StoreCopy {
    return {
      revision: this.#revision,
      rows: [...this.#rows.values()],
      leases: [...this.#leases].map(([leaseId, { ttlMs }]) => ({ leaseId, ttlMs })),
    };
  }

  /** As a server that comes back with an older data folder: revisions go back, leases have their full time again. */
  restore(copy: StoreCopy): void {
    this.#revision = copy.revision;
    this.#rows = new Map(copy.rows.map((row) => [row.key, row]));
    this.#leases = new Map();
    this.#changes = [];
    this.#changesFrom = copy.revision + 1;
    for (const { leaseId, ttlMs } of copy.leases) this.#startLease(leaseId, ttlMs);
    this.endWatches(new Error('the store was set back'));
  }

  #report(change: KeyChange): void {
    this.#changes.push(change);
    if (this.#changes.length > 2 * CHANGES_KEPT) {
      const dropped = this.#changes.splice(0, CHANGES_KEPT);
      const last = dropped.at(-1);
      if (last === undefined) throw new BrokenInvariant('nothing was dropped');
      this.#changesFrom = last.revision + 1;
    }
    for (const watcher of [...this.#watchers]) {
      if (change.key.startsWith(watcher.prefix)) watcher.onChange(change);
    }
  }

  #startLease(leaseId: string, ttlMs: number): void {
    const lease = { ttlMs, endsAtMs: this.#clock.monotonicMs() + ttlMs };
    this.#leases.set(leaseId, lease);
    void this.#expire(leaseId, lease);
  }

  async #expire(leaseId: string, lease: Lease): Promise<void> {
    // Another lease of the same id: the store was set back meanwhile.
    while (this.#leases.get(leaseId) === lease) {
      const leftMs = lease.endsAtMs - this.#clock.monotonicMs();
      if (leftMs <= 0) this.revokeLease(leaseId);
      else await this.#clock.sleep(leftMs);
    }
  }
}
