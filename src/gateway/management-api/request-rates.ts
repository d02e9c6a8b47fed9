// How many requests a key may send in a minute, by method (extensions 1.1). Each gateway counts its own, in memory.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';

/** Requests in a minute. */
export interface RequestRateLimits {
  readonly GET: number;
  readonly PUT: number;
  readonly POST: number;
  readonly DELETE: number;
}

export interface RequestRates {
  /** Counts a request. Throws SlowDown with status 429 and Retry-After where there are too many in this minute. */
  take(keyId: string, method: string): void;
}

const MINUTE_MS = 60_000;
/** Keys and methods that are counted at a time: those that were seen longest ago begin anew. */
const COUNTED_MAX = 20_000;

interface Window {
  readonly minute: number;
  count: number;
}

export function createRequestRates(deps: {
  clock: Pick<ClockPort, 'monotonicMs'>;
  limits: RequestRateLimits;
}): RequestRates {
  const { clock, limits } = deps;
  const windows = new BoundedMap<string, Window>(COUNTED_MAX);
  return {
    take(keyId, method) {
      const counted = method in limits ? (method as keyof RequestRateLimits) : 'GET';
      const nowMs = clock.monotonicMs();
      const minute = Math.floor(nowMs / MINUTE_MS);
      const name = `${counted} ${keyId}`;
      let window = windows.get(name);
      if (window?.minute !== minute) {
        window = { minute, count: 0 };
        windows.set(name, window);
      }
      if (window.count < limits[counted]) {
        window.count += 1;
        return;
      }
      const seconds = Math.max(1, Math.ceil(((minute + 1) * MINUTE_MS - nowMs) / 1000));
      throw new AppError('SlowDown', {
        status: 429,
        message: `This key may send ${limits[counted]} ${counted} requests in a minute. Try again in ${seconds} s.`,
        headers: { 'Retry-After': String(seconds) },
      });
    },
  };
}
