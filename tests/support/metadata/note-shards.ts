// Shards over a memory store on the note machine (tests/scenarios/note-machine.ts), for tests of the engine.

import { createShards, SHARD_COLUMNS, type Shards } from '../../../src/metadata/engine/shards.ts';
import { createLocalCoordinator } from '../../../src/platform/local-coordinator.ts';
import { createMemoryKv, type MemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import type { RandomPort } from '../../../src/ports/clock.ts';
import type { BelievedBucket, Reply } from '../../../src/ports/metadata/port.ts';
import { noteMachine } from '../../scenarios/note-machine.ts';
import { createManualClock, createSeededRandom, type ManualClock } from '../run/simulated.ts';

export interface NoteShards {
  kv: MemoryKv;
  clock: ManualClock;
  shards: Shards;
  /** What `onFatal` was given. */
  fatal: Error[];
  execute(name: string, command: object, envelope?: object): Promise<Reply<unknown>>;
  query(name: string, query: object, envelope?: object): Promise<Reply<unknown>>;
  /** Another process over the same store and clock. */
  reopen(): Promise<NoteShards>;
}

export interface NoteShardsOptions {
  kv?: MemoryKv;
  clock?: ManualClock;
  shardCount?: number;
  random?: RandomPort;
}

export async function openNoteShards(options: NoteShardsOptions = {}): Promise<NoteShards> {
  const {
    kv = createMemoryKv(SHARD_COLUMNS),
    clock = createManualClock(Date.parse('2024-01-01')),
    shardCount = 1,
    random = createSeededRandom(1),
  } = options;
  const fatal: Error[] = [];
  const shards = await createShards({
    kv,
    machine: noteMachine,
    shardCount,
    clock,
    random,
    coordinator: createLocalCoordinator(kv),
    onFatal: (error) => fatal.push(error),
  });
  return {
    kv,
    clock,
    shards,
    fatal,
    execute: (name, command, envelope) =>
      shards.execute({ shard: 0, ...envelope }, name as never, command as never),
    query: (name, query, envelope) => shards.query({ shard: 0, ...envelope }, name as never, query as never),
    reopen: () => openNoteShards({ kv, clock, shardCount, random }),
  };
}

export function believed(bucketId: string, name: string, cfgVersion: number): { bucket: BelievedBucket } {
  return { bucket: { bucketId, name, cfgVersion } as BelievedBucket };
}

/** Lets everything run that waits for neither time nor commits. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Whether the promise has settled by now. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let pending = true;
  const done = () => {
    pending = false;
  };
  promise.then(done, done);
  await settle();
  return pending;
}
