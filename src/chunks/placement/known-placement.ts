// The newest placement map that this process knows, and the wait for a newer one. Where maps come from (a watch, a read
// when a node has told of a newer version) is the caller's.

import type { PlacementMap, PlacementPort } from '../../ports/placement.ts';
import { AppError } from '../../types/errors.ts';

export interface KnownPlacement extends PlacementPort {
  /** Takes a map from wherever it came; older ones change nothing. */
  learn(map: PlacementMap): void;
}

interface Waiter {
  version: number;
  resolve(map: PlacementMap): void;
}

/** `onHeard`: told of a version above all known maps, once each; to fetch it. */
export function createKnownPlacement(
  first: PlacementMap,
  onHeard: (version: number) => void = () => {},
): KnownPlacement {
  let known = first;
  let heard = first.version;
  const waiters = new Set<Waiter>();
  return {
    current: () => known,
    heardVersion: () => heard,
    hear(version) {
      if (version <= heard) return;
      heard = version;
      onHeard(version);
    },
    learn(map) {
      if (map.version <= known.version) return;
      known = map;
      heard = Math.max(heard, map.version);
      for (const waiter of waiters) {
        if (waiter.version > map.version) continue;
        waiters.delete(waiter);
        waiter.resolve(map);
      }
    },
    atLeast(version, signal) {
      if (version <= known.version) return Promise.resolve(known);
      return new Promise((resolve, reject) => {
        const waiter: Waiter = {
          version,
          resolve(map) {
            signal.removeEventListener('abort', abort);
            resolve(map);
          },
        };
        const abort = () => {
          waiters.delete(waiter);
          const cause = new Error(`placement ${version} is not known, ${known.version} is`);
          reject(new AppError('ServiceUnavailable', { cause }));
        };
        if (signal.aborted) return abort();
        waiters.add(waiter);
        signal.addEventListener('abort', abort, { once: true });
      });
    },
  };
}
