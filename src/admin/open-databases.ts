// The two databases of the embedded form, each with a committer thread: metadata and chunks do not wait for each other's
// syncs. Wiring only.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '../base/refusal.ts';
import { CHUNK_PLACES } from '../chunks/disk/keyspace.ts';
import { cacheRows } from '../metadata/engine/cached-rows.ts';
import { openSeparatedKv, type SeparatedDatabase, usesExtents } from '../platform/extents/open-separated.ts';
import type { RecordMemory } from '../platform/extents/record-memory.ts';
import type { CommitGroup } from '../platform/rocksdb/commit-queue.ts';
import { KvOpenError, openRocksdbKv, type RocksdbKvOptions } from '../platform/rocksdb/rocksdb-kv.ts';
import type { KvPort } from '../ports/kv.ts';
import type { Logger, TelemetryPort } from '../ports/telemetry.ts';

const MiB = 1024 * 1024;

/** Names of the databases, in the folder of a single node and in those of the roles. */
export const METADATA_FOLDER = 'metadata';
export const CHUNKS_FOLDER = 'chunks';

// `usage` tells of the first column, so the one that holds the bytes is first (rocksdb-kv.ts). Together the memtables of
// a server that writes bodies of one kind take some 160 MiB: two of 64 MiB for these, and the rows'.
export const METADATA_COLUMNS = {
  bodies: { reads: 'sync', content: 'ciphertext', cacheBytes: 64 * MiB, isPrefixFree: true },
  rows: { reads: 'sync', content: 'rows', cacheBytes: 64 * MiB },
} as const;
export const CHUNK_COLUMNS = {
  data: { reads: 'async', content: 'ciphertext', isPrefixFree: true },
  index: { reads: 'sync', content: 'rows', memtableBytes: MiB },
} as const;

/**
 * Whether no database has been made yet, also where a first start was cut short. Throws {@link Refusal} when metadata is
 * missing beside chunks: to an empty one all of them would be orphans, and be dropped (R32).
 */
export function isWithoutDatabase(folder: string): boolean {
  const isWithout = !isMade(folder, METADATA_FOLDER);
  if (isWithout && isMade(folder, CHUNKS_FOLDER)) throw missing(folder, METADATA_FOLDER);
  return isWithout;
}

/** A file that RocksDB makes last. */
function isMade(folder: string, name: string): boolean {
  return existsSync(join(folder, name, 'CURRENT'));
}

function missing(folder: string, name: string): Refusal {
  return new Refusal(
    `The database ${join(folder, name)} is missing beside the other one: put it back (is its file system mounted?).`,
  );
}

export async function openDatabases(options: {
  folder: string;
  telemetry: TelemetryPort;
  closing: AsyncDisposableStack;
  /** Called when a database has failed for good (R20). */
  onFatal(error: Error): void;
  log: Pick<Logger, 'error' | 'warn'>;
  /** Chunks from this size on go into extents; 0: none does. */
  separateFromBytes: number;
  /** Called before anything lies in extents, at each start. */
  onExtents(): Promise<void>;
  /** Takes back the memory of chunks that are written. */
  onReleased(buffer: ArrayBuffer): void;
  /** Where large chunks may lie already when they are stored. */
  received?: RecordMemory;
}): Promise<{
  metadataKv: KvPort;
  /** Of the metadata database, for other threads of the process. */
  metadataHandle: bigint;
  chunkKv: KvPort;
}> {
  const { folder, telemetry, closing, onFatal, onReleased } = options;
  const open = async <Kv extends KvPort>(database: RocksdbKvOptions, opening: Promise<Kv>) => {
    const kv = await opening.catch((error: unknown) => {
      throw error instanceof KvOpenError ? refusalOf(error, folder, database.folder) : error;
    });
    closing.defer(() => kv.close());
    kv.failed.then(onFatal);
    return kv;
  };
  const metadata = {
    folder: join(folder, METADATA_FOLDER),
    columns: METADATA_COLUMNS,
    onGroup: measureCommits(telemetry, 'metadata'),
  };
  const openingMetadata = open(metadata, openRocksdbKv(metadata));
  if (!isMade(folder, CHUNKS_FOLDER) && (await isUsed(await openingMetadata))) {
    throw missing(folder, CHUNKS_FOLDER);
  }
  const chunks = {
    folder: join(folder, CHUNKS_FOLDER),
    columns: CHUNK_COLUMNS,
    onGroup: measureCommits(telemetry, 'chunks'),
    onReleased,
    ...(options.received && { received: options.received }),
    separated: CHUNK_PLACES,
    separateFromBytes: options.separateFromBytes,
    ...extentEvents(options.log),
  };
  if (usesExtents(chunks)) await options.onExtents();
  const openingChunks = open(chunks, openSeparatedKv(chunks));
  // A database that was opened beside a failed one must be closed.
  await Promise.allSettled([openingMetadata, openingChunks]);
  const metadataKv = await openingMetadata;
  return {
    metadataKv: cacheRows(metadataKv, 'rows'),
    metadataHandle: metadataKv.handle,
    chunkKv: await openingChunks,
  };
}

/** Of a database whose metrics have the label `store`. */
export function measureCommits(telemetry: TelemetryPort, store: string): (group: CommitGroup) => void {
  return (group) => {
    telemetry.observe('holdfast_kv_commit_group_size', group.commitCount, { store });
    // Only a synced group measures the disk: others end in memory.
    if (group.isSynced)
      telemetry.observe('holdfast_kv_commit_duration_seconds', group.durationMs / 1000, { store });
    telemetry.count('holdfast_kv_commit_bytes_total', { store }, group.sizeBytes);
  };
}

/** What is found about extents when a database is opened. */
export function extentEvents(
  log: Pick<Logger, 'error' | 'warn'>,
): Pick<SeparatedDatabase, 'onLostPlaces' | 'onRegained'> {
  return {
    onLostPlaces: () => log.error({}, 'extent-rows-lost'),
    onRegained: (regained) => log.warn({ ...regained }, 'extent-rows-regained'),
  };
}

/** What the operator can do about a database that does not open. */
function refusalOf(error: KvOpenError, folder: string, database: string): Refusal {
  if (error.code === 'LOCKED') return new Refusal(error.message);
  const remedy =
    database === join(folder, CHUNKS_FOLDER)
      ? `\`holdfast salvage --data-dir ${folder}\` shows what of it is lost, and can go on with the rest`
      : 'restore the data folder from a backup (docs/backup.md)';
  return new Refusal(`${error.message}.\nIf the disk is sound and mounted: ${remedy}.`);
}

/** Nothing is written to the metadata before both databases have been made. */
async function isUsed(metadataKv: KvPort): Promise<boolean> {
  const everything = { column: 'rows', gte: Uint8Array.of(0), lt: Uint8Array.of(0xff, 0xff, 0xff) };
  return (await metadataKv.range({ ...everything, limit: 1 })).length > 0;
}
