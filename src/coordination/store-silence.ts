// Measures how long the coordination store has been silent. A process asks it every few seconds, if only to renew its
// lease.
import type { ClockPort } from '../ports/clock.ts';
import type { CoordinationStore } from './store.ts';

export interface MeasuredStore {
  store: CoordinationStore;
  /** Ms since its last answer; before the first one, since it was opened. */
  silentMs(): number;
}

export function measureSilence(
  store: CoordinationStore,
  clock: Pick<ClockPort, 'monotonicMs'>,
): MeasuredStore {
  let answeredAtMs = clock.monotonicMs();
  async function noted<T>(asked: Promise<T>): Promise<T> {
    const answer = await asked;
    answeredAtMs = clock.monotonicMs();
    return answer;
  }
  return {
    silentMs: () => clock.monotonicMs() - answeredAtMs,
    store: {
      get: (key) => noted(store.get(key)),
      list: (prefix) => noted(store.list(prefix)),
      put: (change) => noted(store.put(change)),
      grantLease: (ttlMs) => noted(store.grantLease(ttlMs)),
      keepLease: (leaseId) => noted(store.keepLease(leaseId)),
      revokeLease: (leaseId) => noted(store.revokeLease(leaseId)),
      watch: (options) =>
        store.watch({
          ...options,
          onChange(change) {
            answeredAtMs = clock.monotonicMs();
            options.onChange(change);
          },
        }),
    },
  };
}
