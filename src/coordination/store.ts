// What coordination asks of etcd, and no more: etcd-store.ts does it with etcd, memory-store.ts without. The ports
// above it (shard-registry.ts and its neighbours) are the same code over both, so simulations run what clusters run.
// Keys are full names, values are text.

export interface StoredKey {
  key: string;
  value: string;
  createRevision: number;
  modRevision: number;
  /** Of the lease that it ends with; undefined: stays. */
  leaseId: string | undefined;
}

export interface KeyChange {
  /** Of the key that was put or removed. */
  key: string;
  /** undefined: removed, by hand or with its lease. */
  row: StoredKey | undefined;
  /** Of the whole store when this was told. */
  revision: number;
}

export interface KeyPut {
  key: string;
  value: string;
  /** The revision that the key must have, 0 for none yet; left out: whatever it is. */
  expected?: number;
  leaseId?: string;
}

export interface CoordinationStore {
  /** Linearizable. May be tried at several servers; rejects when none answers in time. */
  get(key: string): Promise<{ row: StoredKey | undefined; revision: number }>;
  /** As `get`, all keys that begin with `prefix`, in their order. */
  list(prefix: string): Promise<{ rows: StoredKey[]; revision: number }>;
  /** One try, at one server: what rejects may have been done, or may be done later (L6). */
  put(change: KeyPut): Promise<{ kind: 'done'; revision: number } | { kind: 'lost' }>;
  /**
   * Tells changes of keys that begin with `prefix`, from `fromRevision` on, in order. Resolves when `signal` aborts;
   * whatever else ends it rejects. It is not begun again (L8).
   */
  watch(options: {
    prefix: string;
    fromRevision: number;
    onChange(change: KeyChange): void;
    signal: AbortSignal;
  }): Promise<void>;
  /** A lease of whole seconds; the store may give a longer one. */
  grantLease(ttlMs: number): Promise<string>;
  /** One renewal. False: there is no such lease any more. */
  keepLease(leaseId: string): Promise<boolean>;
  /** Its keys go at once. One that is gone already counts as done. */
  revokeLease(leaseId: string): Promise<void>;
}
