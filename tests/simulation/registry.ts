// The simulated registry of shards (src/ports/shard-registry.ts), with the faults of etcd: it is away; the answer to a swap is
// lost; a swap is done after its caller was told that it failed; another one writes just before it; a watch falls silent; an
// older state is restored.
import { packPlain, unpackPlain } from '../../src/base/record-codec.ts';
import type { RegisteredShard, ShardRecord, ShardRegistryPort } from '../../src/ports/shard-registry.ts';
import type { Chance } from './chance.ts';
import { Changeable } from './changes.ts';
import { SimulatedHost, type SimulatedProcess } from './clock.ts';
import type { Counts } from './counts.ts';
import type { Network } from './network.ts';
import type { Scheduler } from './scheduler.ts';

/** Its place in the network: cuts and partitions reach it. */
export const REGISTRY_HOST = 'registry';

const DELAY_MIN_MS = 0.5;
const DELAY_MAX_MS = 8;
const AWAY_AFTER_MS = 2000;
const LATE_MAX_MS = 15_000;

export interface RegistryTroubles {
  isAway: boolean;
  /** Of swaps: done, and the answer is lost. */
  ambiguousShare: number;
  /** Of swaps: fails for its caller, and is done later, if it still can be. */
  lateShare: number;
  /** Of swaps: somebody else wrote the record just before, and so it is lost. */
  rivalShare: number;
  /** Swaps are done at once, and answered so much later. */
  swapAnswerMs: number;
  /** Watches tell nothing, and do not end. */
  isSilent: boolean;
}

interface Kept {
  packed: Uint8Array;
  revision: number;
}

interface Watch {
  process: SimulatedProcess;
  onChange(shard: number, registered: RegisteredShard): void;
}

export class SimulatedRegistry {
  readonly troubles = new Changeable<RegistryTroubles>({
    isAway: false,
    ambiguousShare: 0,
    lateShare: 0,
    rivalShare: 0,
    swapAnswerMs: 0,
    isSilent: false,
  });
  readonly #scheduler: Scheduler;
  readonly #network: Network;
  readonly #chance: Chance;
  readonly #counts: Counts;
  readonly #watches = new Set<Watch>();
  #shards = new Map<number, Kept>();
  #revision = 0;
  #snapshot: { shards: Map<number, Kept>; revision: number } | undefined;

  constructor(scheduler: Scheduler, options: { network: Network; chance: Chance; counts: Counts }) {
    this.#scheduler = scheduler;
    this.#network = options.network;
    this.#chance = options.chance;
    this.#counts = options.counts;
  }

  port(process: SimulatedProcess): ShardRegistryPort {
    return {
      read: (shard) => this.#ask(process, 'read', () => this.get(shard)),
      swap: (shard, change) => this.#swap(process, { shard, ...change }),
      watch: (onChange, signal) => {
        const watch = { process, onChange };
        this.#watches.add(watch);
        const end = () => this.#watches.delete(watch);
        signal.addEventListener('abort', end, { once: true });
        process.onEnd(end);
      },
    };
  }

  /** As the world sees it. */
  get(shard: number): RegisteredShard | undefined {
    const kept = this.#shards.get(shard);
    if (kept === undefined) return undefined;
    const record = unpackPlain(kept.packed) as ShardRecord;
    return { record, revision: kept.revision, registryRevision: this.#revision };
  }

  get shards(): number[] {
    return [...this.#shards.keys()];
  }

  /** As an operator's tool writes. */
  put(shard: number, record: ShardRecord): void {
    this.#revision++;
    this.#shards.set(shard, { packed: packPlain(record), revision: this.#revision });
    this.#notifyWatches(shard);
  }

  /** A backup is made. */
  backUp(): void {
    this.#snapshot = { shards: new Map(this.#shards), revision: this.#revision };
  }

  /** The backup is restored: records and revisions of then come back. Returns what was there before. */
  setBack(): (() => void) | undefined {
    if (this.#snapshot === undefined || this.#snapshot.revision === this.#revision) return undefined;
    const newest = this.#shards;
    const newestRevision = this.#revision;
    this.#shards = new Map(this.#snapshot.shards);
    this.#revision = this.#snapshot.revision;
    return () => {
      // What the operator does: of each shard the record of the highest epoch that anyone knows of, as one that is newer
      // than all that were written before (R23, src/coordination/rebuild-records.ts).
      this.#revision = Math.max(this.#revision, newestRevision);
      const rebuiltAtMs = Math.floor(SimulatedHost.trueWallMs(this.#scheduler));
      for (const [shard, kept] of newest) {
        const now = this.get(shard)?.record;
        const then = unpackPlain(kept.packed) as ShardRecord;
        const best = now === undefined || now.epoch < then.epoch ? then : now;
        this.put(shard, { ...best, rebuiltAtMs });
      }
    };
  }

  async #swap(
    process: SimulatedProcess,
    change: { shard: number; expected: number; record: ShardRecord },
  ): Promise<{ kind: 'done'; revision: number } | { kind: 'lost' }> {
    const packed = packPlain(change.record);
    const { ambiguousShare, lateShare, rivalShare } = this.troubles.now;
    const hasRival = this.#chance.happens(rivalShare);
    const swap = () => {
      const present = this.get(change.shard);
      if (hasRival && present !== undefined) this.put(change.shard, present.record);
      return this.#swapNow({ ...change, packed });
    };
    if (this.#chance.happens(lateShare)) {
      this.#counts.add('swap late');
      const delayMs = this.#chance.between(10, LATE_MAX_MS);
      this.#scheduler.after(delayMs, { name: `registry: a late swap of ${change.shard}`, run: swap });
      return this.#ask(process, 'swap', () => {
        throw new Error('the registry did not answer');
      });
    }
    const isAmbiguous = this.#chance.happens(ambiguousShare);
    return this.#ask(process, 'swap', () => {
      const outcome = swap();
      if (!isAmbiguous) return outcome;
      this.#counts.add('swap ambiguous');
      throw new Error('the registry did not answer');
    });
  }

  #swapNow(change: {
    shard: number;
    expected: number;
    packed: Uint8Array;
  }): { kind: 'done'; revision: number } | { kind: 'lost' } {
    const { shard, expected, packed } = change;
    if ((this.#shards.get(shard)?.revision ?? 0) !== expected) {
      this.#counts.add('swap lost');
      return { kind: 'lost' };
    }
    this.#revision++;
    this.#shards.set(shard, { packed, revision: this.#revision });
    this.#notifyWatches(shard);
    return { kind: 'done', revision: this.#revision };
  }

  /** There and back; each way may be cut, and then nobody answers. */
  async #ask<T>(process: SimulatedProcess, name: string, answer: () => T): Promise<T> {
    const host = process.host.name;
    const away = () =>
      process.later(AWAY_AFTER_MS, `registry ${name}: no answer`, (): T => {
        throw new Error('the registry is away');
      });
    if (this.troubles.now.isAway || this.#network.isCut(host, REGISTRY_HOST)) return away();
    const outcome = Promise.withResolvers<T>();
    const delayMs = () => this.#chance.between(DELAY_MIN_MS, DELAY_MAX_MS);
    this.#scheduler.after(delayMs(), {
      name: `registry: ${name} of ${process.name}`,
      run: () => {
        let end: () => void;
        try {
          const value = answer();
          end = () => outcome.resolve(value);
        } catch (error) {
          end = () => outcome.reject(error);
        }
        if (this.#network.isCut(REGISTRY_HOST, host)) away().catch((error) => outcome.reject(error));
        else {
          const lateMs = name === 'swap' ? this.troubles.now.swapAnswerMs : 0;
          process.schedule(delayMs() + lateMs, `registry ${name}: answer`, end);
        }
      },
    });
    return outcome.promise;
  }

  #notifyWatches(shard: number): void {
    const registered = this.get(shard);
    if (registered === undefined || this.troubles.now.isSilent || this.troubles.now.isAway) return;
    for (const { process, onChange } of this.#watches) {
      if (this.#network.isCut(REGISTRY_HOST, process.host.name)) continue;
      const own = unpackPlain(packPlain(registered)) as RegisteredShard;
      process.schedule(this.#chance.between(DELAY_MIN_MS, 50), `registry: ${shard} has changed`, () => {
        if ([...this.#watches].some((watch) => watch.onChange === onChange)) onChange(shard, own);
      });
    }
  }
}
