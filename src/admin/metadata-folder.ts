// The database and the witness in the folder of a metadata node, and what they and its other files record about the
// cluster: for the role, and for commands that read the folder of a stopped node. Wiring only.
import { access, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Corruption } from '../base/corruption.ts';
import { Refusal } from '../base/refusal.ts';
import { cacheRows } from '../metadata/engine/cached-rows.ts';
import { LOG_COLUMN } from '../metadata/engine/row-keys.ts';
import { readStoredReplicas } from '../metadata/replication/stored-replicas.ts';
import { openDataDir } from '../platform/disk/data-dir-lock.ts';
import { syncFolder, writeDurableFile } from '../platform/disk/durable-file.ts';
import { openWitnessFile } from '../platform/disk/witness-file.ts';
import { KvOpenError, openRocksdbKv, type RocksdbKvOptions } from '../platform/rocksdb/rocksdb-kv.ts';
import { systemClock } from '../platform/system-clock.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { KvPort } from '../ports/kv.ts';
import type { NodeRecords } from '../ports/node-records.ts';
import type { PlacementDocument, PlacementMapPort } from '../ports/placement-map.ts';
import type { ReplicaId } from '../ports/replication.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { WitnessPort } from '../ports/witness.ts';
import { databaseId, readDatabaseId, readNodeFile } from './node-folder.ts';
import { METADATA_COLUMNS, METADATA_FOLDER } from './open-databases.ts';

const COLUMNS = {
  ...METADATA_COLUMNS,
  [LOG_COLUMN]: { reads: 'sync', content: 'ciphertext', cacheBytes: 0, isPrefixFree: true },
} as const;

/** The newest placement map that the node knows: etcd may lose it (R23). */
const PLACEMENT_FILE = 'placement.json';

/** Marks the database for quarantine at the next start. */
const MARK_FILE = 'unreadable.json';
const QUARANTINE_SUFFIX = '.unreadable';

type DatabaseWatch = Pick<RocksdbKvOptions, 'onGroup' | 'hangs'>;

export async function openMetadataKv(folder: string, options: DatabaseWatch = {}): Promise<KvPort> {
  return cacheRows(await openMetadataDatabase(join(folder, METADATA_FOLDER), options), 'rows');
}

/** `path`: of the database itself. */
export function openMetadataDatabase(
  path: string,
  options: DatabaseWatch = {},
): ReturnType<typeof openRocksdbKv> {
  return openRocksdbKv({ folder: path, columns: COLUMNS, ...options });
}

const WITNESS = 'witness';
export const witnessPath = (folder: string) => join(folder, WITNESS);

export interface OwnDatabase {
  kv: KvPort;
  replicaId: ReplicaId;
}

/**
 * The database of a running node. An unreadable one is quarantined, and an empty one takes its place: it is another
 * replica, with a witness of its own (R1, R17).
 */
export async function openOwnDatabase(
  folder: string,
  { log, random, ...options }: { log: Logger; random: RandomPort } & DatabaseWatch,
): Promise<OwnDatabase> {
  if (!(await isMarkedUnreadable(folder))) {
    const opened = await tryOpen(folder, { random, ...options });
    if (!(opened instanceof Error)) return opened;
    await markUnreadable(folder, opened);
  }
  log.error({ folder, databases: [METADATA_FOLDER, WITNESS] }, 'database-quarantined');
  await quarantineFiles(folder, [METADATA_FOLDER, WITNESS]);
  const kv = await openMetadataKv(folder, options);
  return { kv, replicaId: await databaseId(kv, random) };
}

/** The error if the database cannot be read, or has another identity. */
async function tryOpen(
  folder: string,
  { random, ...options }: { random: RandomPort } & DatabaseWatch,
): Promise<OwnDatabase | Error> {
  let kv: KvPort | undefined;
  try {
    kv = await openMetadataKv(folder, options);
    return { kv, replicaId: await databaseId(kv, random) };
  } catch (error) {
    const isLost = error instanceof Corruption || (error instanceof KvOpenError && error.code === 'CORRUPT');
    await kv?.close();
    if (!isLost) throw error;
    return error;
  }
}

/**
 * Stores each newer map, and returns the one that was stored before: etcd may have been set back. A failure to write it is
 * only logged.
 */
export async function keepPlacement(
  folder: string,
  { placementMap, log, stopping }: { placementMap: PlacementMapPort; log: Logger; stopping: AbortSignal },
): Promise<PlacementDocument | undefined> {
  const stored = await readPlacement(folder);
  let writing: Promise<void> = Promise.resolve();
  let version = stored?.version ?? 0;
  placementMap.watch(({ document }) => {
    if (document.version <= version) return;
    version = document.version;
    const write = () => writeDurableFile(join(folder, PLACEMENT_FILE), `${JSON.stringify(document)}\n`);
    writing = writing.then(write).catch((error: unknown) => log.warn({ err: error }, 'placement-not-kept'));
  }, stopping);
  return stored ?? undefined;
}

export interface RecordSources {
  folder: string;
  nodeId: string;
  replicaId: string;
  kv: KvPort;
  witness: WitnessPort;
  cluster: ClusterIdentity;
  isAtRest: boolean;
}

export async function readNodeRecords(sources: RecordSources): Promise<NodeRecords> {
  const { folder, nodeId, replicaId, kv, witness, cluster, isAtRest } = sources;
  return {
    nodeId,
    replicaId,
    cluster,
    isAtRest,
    placement: await readPlacement(folder),
    replicas: await readStoredReplicas(kv, witness, cluster.shardCount),
  };
}

async function readPlacement(folder: string): Promise<PlacementDocument | null> {
  try {
    return JSON.parse(await readFile(join(folder, PLACEMENT_FILE), 'utf8')) as PlacementDocument;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Of a stopped node. Throws {@link Refusal} when it runs, or the folder is not that of a metadata node. */
export async function readFolderRecords(path: string): Promise<NodeRecords> {
  const stored = await readNodeFile(path);
  if (stored?.role !== 'metadata') throw new Refusal(`${path} is not the folder of a metadata node`);
  const { nodeId, cluster } = stored;
  if (cluster === undefined) throw new Refusal(`${path} is of a node that has never joined a cluster`);
  await using closing = new AsyncDisposableStack();
  const dataDir = await openDataDir({ path, shards: cluster.shardCount });
  closing.defer(() => dataDir.close());
  await access(join(dataDir.path, METADATA_FOLDER)).catch(() => {
    throw new Refusal(`${path} has no database`);
  });
  const kv = await openMetadataKv(dataDir.path);
  closing.defer(() => kv.close());
  const replicaId = await readDatabaseId(kv);
  if (replicaId === undefined) throw new Refusal(`the database of ${path} is empty`);
  const witness = await openWitnessFile(witnessPath(dataDir.path), systemClock);
  closing.defer(() => witness.close());
  const sources = { folder: dataDir.path, nodeId, replicaId, kv, witness, cluster };
  return await readNodeRecords({ ...sources, isAtRest: true });
}

// ---- a database that cannot be read any more (R17) ----
//
// It is quarantined, for salvage, and the node begins with an empty one. That is another replica (R1), which gets everything
// from the others; they decide which voter must be replaced. A second one is not quarantined beside the first: a disk that
// loses bytes again is to be replaced.

/** The process must end after this, so that the open database can be quarantined. */
export async function markUnreadable(folder: string, error: Error): Promise<void> {
  const mark = { at: new Date().toISOString(), why: error.message };
  await writeDurableFile(join(folder, MARK_FILE), `${JSON.stringify(mark)}\n`);
}

export async function isMarkedUnreadable(folder: string): Promise<boolean> {
  return isThere(join(folder, MARK_FILE));
}

/**
 * Renames each of `names`; done when it resolves, and completed by the next start if it was interrupted. Nothing may have
 * them open. Throws {@link Refusal} while earlier ones are still there.
 */
export async function quarantineFiles(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const from = join(folder, name);
    const to = `${from}${QUARANTINE_SUFFIX}`;
    if (!(await isThere(from))) continue;
    if (await isThere(to))
      throw new Refusal(
        `${from} cannot be read, and ${to} is there from an earlier time: has the disk lost bytes again? When the others have all copies (holdfast cluster status), remove ${to}, or replace the disk, and start the node again.`,
      );
    await rename(from, to);
  }
  await syncFolder(folder);
  await rm(join(folder, MARK_FILE), { force: true });
  await syncFolder(folder);
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
