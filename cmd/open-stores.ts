// Opens what is on the disk, in the order in which it depends on one another: data folder, credentials, master keys,
// the two databases, the shards and the chunk store in them. Wiring only.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CommitGroup } from '../src/adapters/commit-queue.ts';
import { openDataDir } from '../src/adapters/data-dir-lock.ts';
import { readDiskSpace } from '../src/adapters/disk-space.ts';
import { MASTER_KEYS_FILE, openFileKeyring } from '../src/adapters/file-keyring.ts';
import { createLocalCoordinator } from '../src/adapters/local-coordinator.ts';
import { createLoopbackMetadata } from '../src/adapters/loopback-metadata.ts';
import { openRocksdbKv } from '../src/adapters/rocksdb-kv.ts';
import type { Config } from '../src/config/schema.ts';
import { must } from '../src/lib/assert.ts';
import { metadataMachine } from '../src/metadata/table.ts';
import type { Fence } from '../src/ports/chunks.ts';
import type { ClockPort, RandomPort } from '../src/ports/clock.ts';
import type { Logger, TelemetryPort } from '../src/ports/telemetry.ts';
import { createShards } from '../src/shard/shards.ts';
import { openChunkStore } from '../src/storage/chunk-store.ts';
import { createDiskReserve } from '../src/storage/disk-reserve.ts';
import { openRootCredentials } from './root-credentials.ts';

const MiB = 1024 * 1024;

/** `usage` tells of the first column, so the one that holds the bytes is first (rocksdb-kv.ts). */
const METADATA_COLUMNS = {
  rows: { reads: 'sync', content: 'rows', cacheBytes: 64 * MiB },
  bodies: { reads: 'sync', content: 'ciphertext', cacheBytes: 64 * MiB },
} as const;
const CHUNK_COLUMNS = {
  data: { reads: 'async', content: 'ciphertext' },
  index: { reads: 'sync', content: 'rows' },
} as const;

export type Stores = Awaited<ReturnType<typeof openStores>>;

export interface StoresOptions {
  config: Config;
  log: Logger;
  telemetry: TelemetryPort;
  clock: ClockPort;
  random: RandomPort;
  /** Takes over what closes the stores, in reverse order. */
  closing: AsyncDisposableStack;
  /** A database has failed for good (R20). */
  onFatal(error: Error): void;
  /** Takes back the memory of chunks that are written. */
  onReleased(buffer: ArrayBuffer): void;
}

export async function openStores(options: StoresOptions) {
  const { config, log, telemetry, clock, random, closing, onFatal } = options;
  const dataDir = await openDataDir({ path: config.dataDir, shards: config.shards });
  closing.defer(() => dataDir.close());
  const folder = dataDir.path;
  const root = await openRootCredentials({ folder, given: config.root, random });
  // A first start that was cut short has a folder, but no database yet.
  const isNew = !existsSync(join(folder, 'metadata'));
  const keyring = await openFileKeyring({ path: join(folder, MASTER_KEYS_FILE), isNew });

  const onGroup = (store: string) => (group: CommitGroup) => {
    telemetry.observe('holdfast_kv_commit_group_size', group.commitCount, { store });
    telemetry.observe('holdfast_kv_commit_duration_seconds', group.durationMs / 1000, { store });
    telemetry.count('holdfast_kv_commit_bytes_total', { store }, group.sizeBytes);
  };
  const [metadataKv, chunkKv] = await Promise.all([
    openRocksdbKv({
      folder: join(folder, 'metadata'),
      columns: METADATA_COLUMNS,
      onGroup: onGroup('metadata'),
    }),
    openRocksdbKv({
      folder: join(folder, 'chunks'),
      columns: CHUNK_COLUMNS,
      onGroup: onGroup('chunks'),
      onReleased: options.onReleased,
    }),
  ]);
  closing.defer(() => chunkKv.close());
  closing.defer(() => metadataKv.close());
  chunkKv.failed.then(onFatal);

  const shards = await createShards({
    kv: metadataKv,
    machine: metadataMachine,
    shardCount: dataDir.shards,
    clock,
    random,
    coordinator: createLocalCoordinator(metadataKv),
    onFatal,
  });
  closing.defer(() => shards.close());
  const reserve = createDiskReserve({ readSpace: () => readDiskSpace(folder), clock });
  const chunks = await openChunkStore({ kv: chunkKv, reserve, clock, log });
  const metadata = config.metadata.forceLoopback
    ? createLoopbackMetadata({ metadata: shards, random })
    : shards;
  const fences = shards.status().shards;
  const fenceOf = (shard: number): Fence => must(fences[shard], `no shard ${shard}`);
  const engineWorkers = shards.workers;
  return {
    folder,
    isFirstStart: dataDir.isNew,
    root,
    keyring,
    metadata,
    engineWorkers,
    fenceOf,
    chunks,
    reserve,
  };
}
