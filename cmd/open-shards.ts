// Shards of a single node over its metadata database, in the thread that opens them: all of them in the main thread, or those of
// a metadata thread (threads/metadata-thread.ts). Wiring only.
import type { ProcessContext } from '../src/admin/process-context.ts';
import { createFairTurns } from '../src/base/async/fair-turns.ts';
import { createShards, type ShardStatus } from '../src/metadata/engine/shards.ts';
import { refuseGrowth } from '../src/metadata/refuse-growth.ts';
import { createMeteredMachine } from '../src/metadata/state-machine.ts';
import { createLocalCoordinator } from '../src/platform/local-coordinator.ts';
import type { DiskReservePort } from '../src/ports/disk-reserve.ts';
import type { KvPort } from '../src/ports/kv.ts';
import type { MetadataPort } from '../src/ports/metadata/port.ts';
import type { TimeJumps } from '../src/ports/time-jumps.ts';
import type { Worker } from '../src/ports/worker.ts';

/** Shards that are open, here or in threads. */
export interface OpenedShards {
  /** Commands that grow are refused on a full disk. */
  readonly metadata: MetadataPort;
  /** Background work of the shards themselves. */
  readonly workers: readonly Worker[];
  readonly timeJumps: TimeJumps;
  /** By shard of those that are open here. */
  status(): readonly ShardStatus[];
  /** As KvPort's, of all that the shards have deleted. */
  turnOver(signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

export interface ShardParts {
  readonly kv: KvPort;
  readonly reserve: DiskReservePort;
  readonly shardCount: number;
  /** Default all. */
  readonly own?: readonly number[];
  /** How many threads have shards; default this one alone. */
  readonly threads?: number;
  onFatal(error: Error): void;
}

/** Opens the shards in this thread. */
export async function openShards(
  { config, clock, random }: Pick<ProcessContext, 'config' | 'clock' | 'random'>,
  { kv, reserve, shardCount, own, threads, onFatal }: ShardParts,
): Promise<OpenedShards> {
  const shards = await createShards({
    kv,
    machine: createMeteredMachine(config.metering),
    turns: createFairTurns({ clock }),
    shardCount,
    ...(own && { own }),
    ...(threads !== undefined && { threads }),
    clock,
    random,
    coordinator: createLocalCoordinator(kv),
    onFatal,
  });
  return {
    metadata: refuseGrowth(shards, reserve),
    workers: shards.workers,
    timeJumps: shards.timeJumps,
    status: () => shards.status().shards,
    turnOver: (signal) => kv.turnOver(signal),
    close: () => shards.close(),
  };
}
