// Coordination of a cluster through etcd: what every role opens once, for its whole life.

import { type CoordinationOptions, createCoordination } from '../../coordination/coordination.ts';
import { measureSilence } from '../../coordination/store-silence.ts';
import type { Coordination } from '../../ports/coordination.ts';
import { createEtcdStore, type EtcdAddress } from './etcd-store.ts';

export interface EtcdCoordinator extends Coordination {
  /** Abort what watches, announces and waits first: it would go on trying. */
  close(): void;
  /** For how long etcd has not answered this process, which asks every few seconds while it is a member. */
  silentMs(): number;
}

/** Connects when it is first asked; reads and changes reject within LIMITS.coordinatorCallMaxMs (L6). */
export function createEtcdCoordinator(address: EtcdAddress, options: CoordinationOptions): EtcdCoordinator {
  const etcd = createEtcdStore(address, options);
  const { store, silentMs } = measureSilence(etcd, options.clock);
  return { ...createCoordination(store, options), silentMs, close: () => etcd.close() };
}
