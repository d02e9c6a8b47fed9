// The database and the witness in the folder of a metadata node, and what they and its files say of the cluster: for the
// role, and for commands that read the folder of a node that does not run. Wiring only.
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openDataDir } from '../../src/adapters/data-dir-lock.ts';
import { writeDurableFile } from '../../src/adapters/durable-file.ts';
import { openRocksdbKv, type RocksdbKvOptions } from '../../src/adapters/rocksdb-kv.ts';
import { systemClock } from '../../src/adapters/system-clock.ts';
import { openWitnessFile } from '../../src/adapters/witness-file.ts';
import { Refusal } from '../../src/lib/refusal.ts';
import type { ClusterIdentity } from '../../src/ports/cluster-identity.ts';
import type { KvPort } from '../../src/ports/kv.ts';
import type { NodeRecords } from '../../src/ports/node-records.ts';
import type { PlacementDocument, PlacementMapPort } from '../../src/ports/placement-map.ts';
import type { Logger } from '../../src/ports/telemetry.ts';
import type { WitnessPort } from '../../src/ports/witness.ts';
import { LOG_COLUMN } from '../../src/shard/row-keys.ts';
import { readStoredReplicas } from '../../src/shard/stored-replicas.ts';
import { METADATA_COLUMNS } from '../open-databases.ts';
import { readDatabaseId, readNodeFile } from './node-folder.ts';

const COLUMNS = {
  ...METADATA_COLUMNS,
  [LOG_COLUMN]: { reads: 'sync', content: 'ciphertext', cacheBytes: 0, isPrefixFree: true },
} as const;

const DATABASE = 'metadata';
/** The last placement map that the node has heard of: etcd may lose it (R23). */
const PLACEMENT_FILE = 'placement.json';

export function openMetadataKv(
  folder: string,
  options: Pick<RocksdbKvOptions, 'onGroup'> = {},
): ReturnType<typeof openRocksdbKv> {
  return openRocksdbKv({ folder: join(folder, DATABASE), columns: COLUMNS, ...options });
}

export const witnessPath = (folder: string) => join(folder, 'witness');

/** Keeps a copy of each map that is heard of. One that cannot be written is no reason to stop. */
export function keepPlacement(
  folder: string,
  { placementMap, log, stopping }: { placementMap: PlacementMapPort; log: Logger; stopping: AbortSignal },
): void {
  let writing: Promise<void> = Promise.resolve();
  let version = 0;
  placementMap.watch(({ document }) => {
    if (document.version <= version) return;
    version = document.version;
    const write = () => writeDurableFile(join(folder, PLACEMENT_FILE), `${JSON.stringify(document)}\n`);
    writing = writing.then(write).catch((error: unknown) => log.warn({ err: error }, 'placement-not-kept'));
  }, stopping);
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
    ...{ nodeId, replicaId, cluster, isAtRest },
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

/** Of a node that does not run. Throws {@link Refusal} when one does, or the folder is none of a metadata node. */
export async function readFolderRecords(path: string): Promise<NodeRecords> {
  const stored = await readNodeFile(path);
  if (stored?.role !== 'metadata') throw new Refusal(`${path} is not the folder of a metadata node`);
  const { nodeId, cluster } = stored;
  if (cluster === undefined) throw new Refusal(`${path} is of a node that has never joined a cluster`);
  await using closing = new AsyncDisposableStack();
  const dataDir = await openDataDir({ path, shards: cluster.shardCount });
  closing.defer(() => dataDir.close());
  await access(join(dataDir.path, DATABASE)).catch(() => {
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
