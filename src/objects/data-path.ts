// What the operations of this room share: ports, keys, memory and settings. Built once, by create-object-store.ts.
import type { FairTurns } from '../base/async/fair-turns.ts';
import type { ChunkId, ChunkPort, Fence } from '../ports/chunks.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { CodecPoolPort } from '../ports/codec-pool.ts';
import type { Logger } from '../ports/telemetry.ts';
import { LIMITS } from '../types/limits.ts';
import type { BodyBudget } from './body-budget.ts';
import type { ChunkBuffers } from './chunk-buffers.ts';
import type { ObjectKeys } from './object-keys.ts';
import type { ShardTimes } from './shard-times.ts';

export interface DataPath {
  readonly chunks: ChunkPort;
  readonly codecs: CodecPoolPort;
  readonly clock: ClockPort;
  readonly random: RandomPort;
  readonly log: Logger;
  readonly keys: ObjectKeys;
  readonly budget: BodyBudget;
  readonly buffers: ChunkBuffers;
  readonly times: ShardTimes;
  /** Digests that this thread takes, in turns by account. */
  readonly turns: FairTurns;
  readonly settings: ObjectSettings;
  /** Called for a lost chunk that a reader found, where there is no other copy. */
  noteLost?(id: ChunkId, kind: 'missing' | 'damaged'): void;
  /** The fence for dropping chunks of an abandoned body (R21). */
  fenceOf(shard: number): Fence;
}

export interface ObjectSettings {
  /** Bodies up to this size are sent and stored with their metadata. */
  readonly inlineBodyBytesMax: number;
  /** Plaintext bytes per chunk. */
  readonly chunkSizeBytes: number;
  /** The same of bodies that are known to have LIMITS.largeBodyBytesMin or more; default as of all others. */
  readonly largeChunkSizeBytes?: number;
}

/** Plaintext bytes per chunk of a new body. `sizeBytes` undefined: its size is not known. */
export function chunkSizeOf(settings: ObjectSettings, sizeBytes: number | undefined): number {
  const { chunkSizeBytes, largeChunkSizeBytes = chunkSizeBytes } = settings;
  return (sizeBytes ?? 0) < LIMITS.largeBodyBytesMin ? chunkSizeBytes : largeChunkSizeBytes;
}
