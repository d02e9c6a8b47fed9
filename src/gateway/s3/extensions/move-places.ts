// How many calls the MOVEs of prefixes and large keys of one account have under way in a gateway: each step moves up to a
// thousand keys, and an account may have hundreds of such jobs over all shards. A place is held for one call, never while a
// client takes its time or another driver is waited for: so each MOVE has its turn, and none keeps another one out.
import { AppError } from '../../../types/errors.ts';

/** Of one account. Few are enough: a shard decides on its steps one after the other. */
const CALLS_MAX = 8;

export interface MovePlaces {
  /**
   * Makes the call once the owner of the bucket has a place for it, in the order in which they came. Throws ServiceUnavailable,
   * and makes none, where the client goes away before.
   */
  within<T>(owner: string, signal: AbortSignal, call: () => Promise<T>): Promise<T>;
}

interface Calls {
  count: number;
  waiting: Set<() => void>;
}

/** For one gateway. */
export function createMovePlaces(): MovePlaces {
  /** Owners with calls under way. */
  const owners = new Map<string, Calls>();

  function leave(owner: string, calls: Calls): void {
    const [next] = calls.waiting;
    if (next !== undefined) {
      // It has the place of the one that has ended.
      calls.waiting.delete(next);
      next();
    } else if (--calls.count === 0) owners.delete(owner);
  }

  function enter(owner: string, signal: AbortSignal): Promise<Calls> {
    const calls = owners.get(owner) ?? { count: 0, waiting: new Set() };
    owners.set(owner, calls);
    if (calls.count < CALLS_MAX) {
      calls.count++;
      return Promise.resolve(calls);
    }
    if (signal.aborted) return Promise.reject(new AppError('ServiceUnavailable'));
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener('abort', giveUp);
        resolve(calls);
      };
      const giveUp = () => {
        if (calls.waiting.delete(begin)) reject(new AppError('ServiceUnavailable'));
      };
      calls.waiting.add(begin);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  return {
    async within(owner, signal, call) {
      const calls = await enter(owner, signal);
      try {
        return await call();
      } finally {
        leave(owner, calls);
      }
    },
  };
}
