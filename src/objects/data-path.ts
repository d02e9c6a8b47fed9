// What the stories of this room share: ports, keys, memory and settings. Built once, by create-object-store.ts.
import type { ChunkId, ChunkPort, Fence } from '../ports/chunks.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { CodecPoolPort } from '../ports/codec-pool.ts';
import type { Logger } from '../ports/telemetry.ts';
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
  readonly settings: ObjectSettings;
  /** Told of chunks that a reader has found lost, where there is no other copy. */
  noteLost?(id: ChunkId, kind: 'missing' | 'damaged'): void;
  /** In whose name an abandoned body's chunks are dropped (R21). */
  fenceOf(shard: number): Fence;
}

export interface ObjectSettings {
  /** Bodies up to it travel and live with their metadata. */
  readonly inlineBodyBytesMax: number;
  /** Plaintext of a chunk. */
  readonly chunkSizeBytes: number;
}
