// Builds the data path: what the gateway asks of this room, each call told in a file of its own.
import type { ChunkPort, Fence } from '../ports/chunks.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { CodecPoolPort } from '../ports/codec-pool.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import type { Logger, TelemetryPort } from '../ports/telemetry.ts';
import { appendObject, createRecentAppends } from './append-object.ts';
import { createBodyBudget } from './body-budget.ts';
import type { ChunkBuffers } from './chunk-buffers.ts';
import { collectBody } from './collect-body.ts';
import { composeObject } from './compose-object.ts';
import type { DataPath, ObjectSettings } from './data-path.ts';
import { createFoldPieces } from './fold-pieces.ts';
import { copyObject, copyPart } from './link-object.ts';
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
  /** Of `settings.chunkSizeBytes`; the chunks' store gives its buffers back here. */
  buffers: ChunkBuffers;
  settings: ObjectSettings;
  /** Memory for the bodies in flight of all requests together. */
  bodyBufferBytes: number;
  /** Learns from the port that the calls of requests go to. */
  times: ShardTimes;
  /** As DataPath.noteLost. */
  noteLost?: NonNullable<DataPath['noteLost']>;
  /** As DataPath.fenceOf. */
  fenceOf(shard: number): Fence;
}

export function createObjectStore(deps: ObjectStoreDeps): ObjectStore {
  const { clock, telemetry, bodyBufferBytes } = deps;
  const path: DataPath = {
    ...deps,
    keys: createObjectKeys(deps),
    budget: createBodyBudget({ limitBytes: bodyBufferBytes, clock, telemetry }),
  };
  const folding = createFoldPieces(path);
  const recent = createRecentAppends();
  return {
    collectBody: (body, tenant, use) => collectBody(path, { body, tenant }, use),
    putObject: (input) => putObject(path, input),
    copyObject: (input) => copyObject(path, input),
    composeObject: (input) => composeObject(path, input),
    appendObject: (input) => appendObject(path, { folding, recent }, input),
    foldingSettled: () => folding.settled(),
    stopFolding: () => folding.stop(),
    createUpload: (input) => createUpload(path, input),
    putPart: (input) => putPart(path, input),
    copyPart: (input) => copyPart(path, input),
    judgeKey: ({ kek }, customerKey) => path.keys.judgeKey(kek, customerKey),
    headersOf: (version, customerKey) => path.keys.openHeaders(version, customerKey),
    openObject: (input) => openObject(path, folding, input),
    partRange,
  };
}
