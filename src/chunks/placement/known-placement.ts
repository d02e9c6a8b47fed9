// The newest placement map that this process knows, and waits for a newer one. The caller supplies maps, from a watch or
// from a read when a node has announced a newer version.

import type { PlacementMap, PlacementPort } from '../../ports/placement.ts';
import { AppError } from '../../types/errors.ts';

export interface KnownPlacement extends PlacementPort {
  /** Takes a map from any source; older ones change nothing. */
  learn(map: PlacementMap): void;
}

interface Waiter {
  version: number;
  resolve(map: PlacementMap): void;
}

/** `onAnnounced`: called once for each version above all known maps, so that the caller fetches it. */
export function createKnownPlacement(
  first: PlacementMap,
  onAnnounced: (version: number) => void = () => {},
): KnownPlacement {
  let known = first;
  let announced = first.version;
  const waiters = new Set<Waiter>();
  return {
    current: () => known,
    announcedVersion: () => announced,
    noteVersion(version) {
      if (version <= announced) return;
      announced = version;
      onAnnounced(version);
    },
    learn(map) {
      if (map.version <= known.version) return;
      known = map;
      announced = Math.max(announced, map.version);
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
