// The witness in memory: for tests and simulation. What is written is kept by a medium, which outlives the processes
// that open it and knows what was synced.

import type { ClockPort } from '../../ports/clock.ts';
import type { WitnessedPosition, WitnessPort } from '../../ports/witness.ts';
import { LIMITS } from '../../types/limits.ts';

type Stored = WitnessedPosition | 'damaged' | undefined;

export class WitnessMedium {
  #written = new Map<number, Stored>();
  #synced = new Map<number, Stored>();

  get(shard: number): Stored {
    return this.#written.get(shard);
  }

  set(shard: number, stored: Stored): void {
    this.#written.set(shard, stored);
  }

  sync(): void {
    this.#synced = new Map(this.#written);
  }

  /** As a loss of power: what was not synced is gone. */
  losePower(): void {
    this.#written = new Map(this.#synced);
  }

  /** As a lost disk. */
  wipe(): void {
    this.#written.clear();
    this.#synced.clear();
  }

  /** As bit rot in a record. */
  damage(shard: number): void {
    this.#written.set(shard, 'damaged');
    this.#synced.set(shard, 'damaged');
  }
}

/** A process' view of the medium; `fail` is as a failed sync. */
export interface MemoryWitness extends WitnessPort {
  fail(error: Error): void;
}

export function openMemoryWitness(medium: WitnessMedium, clock: ClockPort): MemoryWitness {
  const failed = Promise.withResolvers<Error>();
  const closing = new AbortController();
  let failure: Error | undefined;

  const put = (shard: number, position: WitnessedPosition | undefined) => {
    if (failure !== undefined) throw failure;
    medium.set(shard, position === undefined ? undefined : { ...position });
  };
  const syncEachSecond = async () => {
    while (failure === undefined) {
      await clock.sleep(LIMITS.witnessSyncMs, closing.signal);
      if (failure === undefined) medium.sync();
    }
  };
  syncEachSecond();

  return {
    failed: failed.promise,
    read: (shard) => medium.get(shard),
    write: put,
    async lower(shard, position) {
      put(shard, position);
      medium.sync();
    },
    async close() {
      if (failure !== undefined) return;
      medium.sync();
      failure = new Error('the witness is closed');
      closing.abort();
    },
    fail(error) {
      if (failure !== undefined) return;
      failure = error;
      failed.resolve(error);
      closing.abort();
    },
  };
}
