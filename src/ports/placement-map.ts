// Where the placement map is kept (R34): one document, changed by compare-and-swap. What it says is for its readers.
// Contract (tests/contract/placement-map.test.ts): as that of the shard registry (shard-registry.ts).

/** Plain JSON with the map's own version, by which nodes compare maps. At most 1 MiB as text. */
export interface PlacementDocument {
  readonly version: number;
  readonly [field: string]: unknown;
}

export interface StoredPlacement {
  document: PlacementDocument;
  /** What `swap` expects. */
  revision: number;
}

export interface PlacementMapPort {
  /** Linearizable; undefined: never written. Rejects when the coordinator is away. */
  read(): Promise<StoredPlacement | undefined>;
  /** `expected` 0: there is none yet. Rejects when the outcome is not known; is not retried. */
  swap(change: {
    expected: number;
    document: PlacementDocument;
  }): Promise<{ kind: 'done'; revision: number } | { kind: 'lost' }>;
  /** The document at first, if there is one, and after each change. A hint. Ends with `signal`. */
  watch(onChange: (placement: StoredPlacement) => void, signal: AbortSignal): void;
}
