// The two databases of the embedded form, each with a committer thread of its own: metadata and chunks do not wait for
// one another's syncs. Wiring only.
import { join } from 'node:path';
import type { CommitGroup } from '../src/adapters/commit-queue.ts';
import { openRocksdbKv } from '../src/adapters/rocksdb-kv.ts';
import type { KvPort } from '../src/ports/kv.ts';
import type { TelemetryPort } from '../src/ports/telemetry.ts';

const MiB = 1024 * 1024;

export const METADATA_FOLDER = 'metadata';
const CHUNKS_FOLDER = 'chunks';

const METADATA_COLUMNS = {
  rows: { reads: 'sync', content: 'rows', cacheBytes: 64 * MiB },
  bodies: { reads: 'sync', content: 'ciphertext', cacheBytes: 64 * MiB },
} as const;
/** `usage` tells of the first column, so the one that holds the bytes is first (rocksdb-kv.ts). */
const CHUNK_COLUMNS = {
  data: { reads: 'async', content: 'ciphertext' },
  index: { reads: 'sync', content: 'rows' },
} as const;

export async function openDatabases(options: {
  folder: string;
  telemetry: TelemetryPort;
  closing: AsyncDisposableStack;
  /** A database has failed for good (R20). */
  onFatal(error: Error): void;
  /** Takes back the memory of chunks that are written. */
  onReleased(buffer: ArrayBuffer): void;
}): Promise<{ metadataKv: KvPort; chunkKv: KvPort }> {
  const { folder, telemetry, closing, onFatal, onReleased } = options;
  const measure = (store: string) => (group: CommitGroup) => {
    telemetry.observe('holdfast_kv_commit_group_size', group.commitCount, { store });
    telemetry.observe('holdfast_kv_commit_duration_seconds', group.durationMs / 1000, { store });
    telemetry.count('holdfast_kv_commit_bytes_total', { store }, group.sizeBytes);
  };
  const open = async (database: Parameters<typeof openRocksdbKv>[0]) => {
    const kv = await openRocksdbKv(database);
    closing.defer(() => kv.close());
    kv.failed.then(onFatal);
    return kv;
  };
  // One after the other: a second open that fails must not outrun the first one's closing.
  const metadataKv = await open({
    folder: join(folder, METADATA_FOLDER),
    columns: METADATA_COLUMNS,
    onGroup: measure('metadata'),
  });
  const chunkKv = await open({
    folder: join(folder, CHUNKS_FOLDER),
    columns: CHUNK_COLUMNS,
    onGroup: measure('chunks'),
    onReleased,
  });
  return { metadataKv, chunkKv };
}
