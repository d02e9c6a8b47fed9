// Opens what is on the disk, in the order in which it depends on one another: data folder, credentials, master keys,
// databases, the shards and the chunk store in them. Wiring only.
import { join } from 'node:path';
import { refuseNodeFolder } from '../src/admin/node-folder.ts';
import { isWithoutDatabase, openDatabases } from '../src/admin/open-databases.ts';
import type { ProcessContext } from '../src/admin/process-context.ts';
import { openRootCredentials, type RootCredentials } from '../src/admin/root-credentials.ts';
import { must } from '../src/base/assert.ts';
import { openChunkStore } from '../src/chunks/disk/chunk-store.ts';
import {
  createDiskReserve,
  SHARED_ADMITTED_BYTES,
  shareAdmittedBytes,
} from '../src/chunks/disk/disk-reserve.ts';
import { LostChunks } from '../src/chunks/disk/lost-chunks.ts';
import { createReclaim } from '../src/chunks/disk/reclaim.ts';
import { createScrub, type Scrub } from '../src/chunks/disk/scrub.ts';
import { DamageNames } from '../src/metadata/blobs/name-damage-worker.ts';
import { keepLayout } from '../src/metadata/engine/shards.ts';
import { EXTENTS_FORMAT, openDataDir } from '../src/platform/disk/data-dir-lock.ts';
import { readDiskSpace } from '../src/platform/disk/disk-space.ts';
import type { RecordMemory } from '../src/platform/extents/record-memory.ts';
import { MASTER_KEYS_FILE, openDataKeyring, openMasterKeys } from '../src/platform/keyring/file-keyring.ts';
import { createNeededKeys } from '../src/platform/keyring/needed-keys.ts';
import { createLoopbackMetadata } from '../src/platform/memory/loopback-metadata.ts';
import type { MasterKeys } from '../src/platform/memory/memory-keyring.ts';
import type { ChunkPort, Fence } from '../src/ports/chunks.ts';
import type { ChangeableKeyring } from '../src/ports/keyring.ts';
import type { MetadataPort } from '../src/ports/metadata/port.ts';
import type { TimeJumps } from '../src/ports/time-jumps.ts';
import type { Worker } from '../src/ports/worker.ts';
import { type OpenedShards, openShards, type ShardParts } from './open-shards.ts';
import { warnOfTimeJump } from './warn-of-time-jump.ts';

export interface Stores {
  /** Absolute path of the data folder. */
  folder: string;
  isFirstStart: boolean;
  root: RootCredentials;
  keyring: ChangeableKeyring;
  /** As they were opened. */
  masterKeys: MasterKeys;
  metadata: MetadataPort;
  /** Background work of the stores themselves. */
  storeWorkers: readonly Worker[];
  chunks: ChunkPort;
  /** Chunks that are known to be damaged or missing. */
  lost: LostChunks;
  /** Whose chunks are lost, as far as it is known. */
  damageNames: DamageNames;
  /** Reads all chunks again and again. */
  scrub: Scrub;
  /** Deleted, but still on the disk. */
  pendingReclaimBytes(): Promise<number>;
  /** In whose name chunks of a shard are dropped (R21). */
  fenceOf(shard: number): Fence;
  timeJumps: TimeJumps;
}

export interface StoreEvents {
  onFatal(error: Error): void;
  onReleased(buffer: ArrayBuffer): void;
  /** Where large chunks may lie already when they are stored. */
  received?: RecordMemory;
  /** As openDataKeyring's `onChange`. */
  onKeys?: (next: MasterKeys) => Promise<void>;
  /** Default: in this thread. */
  openShards?: OpenShards;
}

/** Opens all shards of the node. */
export type OpenShards = (
  processContext: ProcessContext,
  parts: ShardParts & {
    /** The data folder. */
    readonly folder: string;
    /** Of the metadata database, for other threads. */
    readonly handle: bigint;
    /** Of shareAdmittedBytes: what counts against the reserve, of all threads. */
    readonly admitted: SharedArrayBuffer;
  },
) => Promise<OpenedShards>;

export async function openStores(processContext: ProcessContext, events: StoreEvents): Promise<Stores> {
  const { config, log, telemetry, clock, random, closing } = processContext;
  const dataDir = await openDataDir({ path: config.dataDir, shards: config.shards });
  closing.defer(() => dataDir.close());
  const folder = dataDir.path;
  await refuseNodeFolder(folder);
  const isNew = isWithoutDatabase(folder);
  const root = await openRootCredentials({ folder, given: config.root, random, isNew });
  const path = join(folder, MASTER_KEYS_FILE);
  const keys = await openMasterKeys({ path, isNew });
  const { metadataKv, metadataHandle, chunkKv } = await openDatabases({
    ...processContext,
    ...events,
    folder,
    separateFromBytes: config.storage.separateFromBytes,
    onExtents: () => dataDir.raiseFormat(EXTENTS_FORMAT),
  });
  const needed = createNeededKeys(metadataKv);
  const keyring = await openDataKeyring({ path, keys, needed, onChange: events.onKeys });
  await keepLayout(metadataKv, dataDir.shards);
  const admitted = new SharedArrayBuffer(SHARED_ADMITTED_BYTES);
  const readSpace = () => readDiskSpace(folder);
  const reserve = createDiskReserve({ readSpace, clock, log, admitted: shareAdmittedBytes(admitted) });
  const shards = await (events.openShards ?? openShards)(processContext, {
    kv: metadataKv,
    handle: metadataHandle,
    admitted,
    folder,
    reserve,
    shardCount: dataDir.shards,
    onFatal: events.onFatal,
  });
  closing.defer(() => shards.close());
  await warnOfTimeJump(log, shards.timeJumps);
  const { metadata } = shards;
  const lost = await LostChunks.open({ kv: chunkKv, clock, log, telemetry });
  const chunks = await openChunkStore({ kv: chunkKv, reserve, clock, log, lost });
  const { scrubRateBytes: bytesPerSecond, scrubPeriodMs: periodMs } = config.storage;
  const scrub = createScrub({ kv: chunkKv, store: chunks, clock, log, bytesPerSecond, periodMs });
  const pendingChunkBytes = async () => (await chunks.usage()).pendingReclaimBytes;
  const pendingBodyBytes = async () => metadataKv.usage().pendingReclaimBytes;
  const { reclaimAfterBytes: afterBytes, reclaimDelayMs: delayMs } = config.storage;
  const how = { reserve, clock, log, afterBytes, delayMs };
  const fences = shards.status();
  return {
    folder,
    isFirstStart: dataDir.isNew,
    root,
    keyring,
    masterKeys: keys,
    metadata: config.metadata.forceLoopback ? createLoopbackMetadata({ metadata, random }) : metadata,
    storeWorkers: [
      ...shards.workers,
      scrub,
      createReclaim({ ...how, name: 'reclaim-chunks', kv: chunkKv, pendingBytes: pendingChunkBytes }),
      createReclaim({ ...how, name: 'reclaim-metadata', kv: shards, pendingBytes: pendingBodyBytes }),
    ],
    chunks,
    lost,
    damageNames: new DamageNames(),
    scrub,
    pendingReclaimBytes: async () => (await pendingChunkBytes()) + (await pendingBodyBytes()),
    fenceOf: (shard) => must(fences[shard], `no shard ${shard}`),
    timeJumps: shards.timeJumps,
  };
}
