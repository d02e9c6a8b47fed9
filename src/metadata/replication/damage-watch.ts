// The store of one replica, watched: the first read that finds lost bytes is reported (R17), whatever reads. The read
// itself rejects as ever.
import { Corruption } from '../../base/corruption.ts';
import type { KvPort } from '../../ports/kv.ts';
import { forwardKv } from '../engine/forward-kv.ts';

export interface DamageWatch {
  readonly kv: KvPort;
  /** From now on. Called before the read that met it rejects: nothing is answered in between. */
  setHandler(onDamage: (error: Corruption, column: string) => void): void;
}

export function watchDamage(kv: KvPort): DamageWatch {
  let onDamage: (error: Corruption, column: string) => void = () => undefined;

  async function watched<T>(column: string, reading: Promise<T>): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      if (error instanceof Corruption) onDamage(error, column);
      throw error;
    }
  }

  return {
    kv: forwardKv(kv, {
      getMany: (column, keys) => watched(column, kv.getMany(column, keys)),
      range: (range) => watched(range.column, kv.range(range)),
      cursor(bounds) {
        const cursor = kv.cursor(bounds);
        return {
          seek: (key) => cursor.seek(key),
          next: (count) => watched(bounds.column, cursor.next(count)),
          close: () => cursor.close(),
        };
      },
    }),
    setHandler(handler) {
      onDamage = handler;
    },
  };
}
