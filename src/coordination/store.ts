// The operations of etcd that coordination uses, and no others. etcd-store.ts implements them with etcd, memory-store.ts in
// memory. The ports above (shard-registry.ts and its neighbours) are the same code over both, so simulations run what
// clusters run. Keys are full names, values are text.

export interface StoredKey {
  key: string;
  value: string;
  createRevision: number;
  modRevision: number;
  /** Of the lease with which it ends; undefined: it stays. */
  leaseId: string | undefined;
}

export interface KeyChange {
  /** Of the key that was written or removed. */
  key: string;
  /** undefined: removed, by hand or with its lease. */
  row: StoredKey | undefined;
  /** Of the whole store at this change. */
  revision: number;
}

export interface KeyPut {
  key: string;
  value: string;
  /** The revision that the key must have, 0 for none yet; absent: any. */
  expected?: number;
  leaseId?: string;
}

export interface CoordinationStore {
  /** Linearizable. May try several servers; rejects when none answers in time. */
  get(key: string): Promise<{ row: StoredKey | undefined; revision: number }>;
  /** Like `get`, for all keys that begin with `prefix`, in order. */
  list(prefix: string): Promise<{ rows: StoredKey[]; revision: number }>;
  /** One try, at one server: a rejected put may have been done, or may be done later (L6). */
  put(change: KeyPut): Promise<{ kind: 'done'; revision: number } | { kind: 'lost' }>;
  /**
   * Reports changes of keys that begin with `prefix`, from `fromRevision` on, in order. Resolves when `signal` aborts;
   * rejects for any other end. It is not restarted (L8).
   */
  watch(options: {
    prefix: string;
    fromRevision: number;
    onChange(change: KeyChange): void;
    signal: AbortSignal;
  }): Promise<void>;
  /** A lease of whole seconds; the store may give a longer one. */
  grantLease(ttlMs: number): Promise<string>;
  /** One renewal. False: the lease does not exist any more. */
  keepLease(leaseId: string): Promise<boolean>;
  /** Its keys are removed at once. A lease that is gone counts as revoked. */
  revokeLease(leaseId: string): Promise<void>;
}
