// Coordination of a cluster through etcd: what every role opens once, for its whole life.
import type { Coordination } from '../ports/coordination.ts';
import { type CoordinationOptions, createCoordination } from './coordination/coordination.ts';
import { createEtcdStore, type EtcdAddress } from './coordination/etcd-store.ts';

export interface EtcdCoordinator extends Coordination {
  /** Abort what watches, announces and waits first: it would go on trying. */
  close(): void;
}

/** Connects when it is first asked; reads and changes reject within LIMITS.coordinatorCallMaxMs (L6). */
export function createEtcdCoordinator(address: EtcdAddress, options: CoordinationOptions): EtcdCoordinator {
  const store = createEtcdStore(address, options);
  return { ...createCoordination(store, options), close: () => store.close() };
}
