// Builds the data path: the operations that the gateway uses, each in a file of its own.
import { createFairTurns } from '../base/async/fair-turns.ts';
import type { ChunkPort, Fence } from '../ports/chunks.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { CodecPoolPort } from '../ports/codec-pool.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import type { Logger, TelemetryPort } from '../ports/telemetry.ts';
import { appendObject, createRecentAppends } from './append-object.ts';
import { createBodyBudget } from './body-budget.ts';
import type { ChunkBuffers } from './chunk-buffers.ts';
import { collectBody, withMemory } from './collect-body.ts';
import { createPieceCompactor } from './compact-pieces.ts';
import { composeObject } from './compose-object.ts';
import { copyObject, copyPart } from './copy-object.ts';
import type { DataPath, ObjectSettings } from './data-path.ts';
import { createObjectKeys } from './object-keys.ts';
import type { ObjectStore } from './object-store.ts';
import { openObject, partRange } from './read-object.ts';
import type { ShardTimes } from './shard-times.ts';
import { createUpload, putObject, putPart } from './write-object.ts';

export interface ObjectStoreDeps {
  chunks: ChunkPort;
  codecs: CodecPoolPort;
  keyring: KeyringPort;
  clock: ClockPort;
  random: RandomPort;
  log: Logger;
  telemetry: TelemetryPort;
  /** Buffers of `settings.chunkSizeBytes`; the chunk store returns them here. */
  buffers: ChunkBuffers;
  settings: ObjectSettings;
  /** Memory for the bodies of all requests together. */
  bodyBufferBytes: number;
  /** As in types/thread-share.ts; `bodyBufferBytes` is the share itself. */
  threads?: number;
  /** Learns from the metadata port that requests use. */
  times: ShardTimes;
  /** As DataPath.noteLost. */
  noteLost?: NonNullable<DataPath['noteLost']>;
  /** As DataPath.fenceOf. */
  fenceOf(shard: number): Fence;
}

/** Of the memory for bodies, what a piece of work may count: beyond it a crowd would leave nothing for the next tenant. */
const PASSING_SHARE_MAX = 1 / 8;

export function createObjectStore(deps: ObjectStoreDeps): ObjectStore {
  const { clock, telemetry, bodyBufferBytes, threads } = deps;
  const path: DataPath = {
    ...deps,
    keys: createObjectKeys(deps),
    turns: createFairTurns(),
    budget: createBodyBudget({ limitBytes: bodyBufferBytes, clock, telemetry, threads }),
  };
  const compactor = createPieceCompactor(path);
  const recent = createRecentAppends();
  return {
    collectBody: (body, tenant, use) => collectBody(path, { body, tenant }, use),
    withMemory({ sizeBytes, isWithin = false, ...needs }, work) {
      const countedBytes = Math.min(sizeBytes, bodyBufferBytes * PASSING_SHARE_MAX);
      return withMemory(path, { ...needs, sizeBytes: countedBytes, isWithin }, work);
    },
    putObject: (input) => putObject(path, input),
    copyObject: (input) => copyObject(path, input),
    composeObject: (input) => composeObject(path, input),
    appendObject: (input) => appendObject(path, { compactor, recent }, input),
    compactionIdle: () => compactor.settled(),
    stopCompaction: () => compactor.stop(),
    createUpload: (input) => createUpload(path, input),
    putPart: (input) => putPart(path, input),
    copyPart: (input) => copyPart(path, input),
    judgeKey: ({ kek }, customerKey) => path.keys.judgeKey(kek, customerKey),
    headersOf: (version, customerKey) => path.keys.openHeaders(version, customerKey),
    openObject: (input) => openObject(path, compactor, input),
    partRange,
  };
}
