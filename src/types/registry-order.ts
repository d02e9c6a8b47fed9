// Which of two looks at the registry is the later one (R23). Revisions say something only between two rebuildings of it:
// one that came from a backup, or was made anew, counts them anew.

export interface RegistryMoment {
  /** 0: it had never been rebuilt. */
  readonly rebuiltAtMs: number;
  readonly revision: number;
}

/** Negative: `a` is the earlier one. */
export function compareMoments(a: RegistryMoment, b: RegistryMoment): number {
  return a.rebuiltAtMs - b.rebuiltAtMs || a.revision - b.revision;
}

/** Of one shard's records, whose epochs only rise within a history. Negative: `a` is the earlier one. */
export function compareRecords(
  a: RegistryMoment & { readonly epoch: number },
  b: RegistryMoment & { readonly epoch: number },
): number {
  return a.epoch - b.epoch || compareMoments(a, b);
}

type Replicas = readonly { readonly replicaId: string }[];

/** In any order. */
export function areSameReplicas(some: Replicas, others: Replicas): boolean {
  const ids = new Set(others.map(({ replicaId }) => replicaId));
  return some.length === others.length && some.every(({ replicaId }) => ids.has(replicaId));
}
