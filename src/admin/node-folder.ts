// The data folder of a metadata or storage node: its identity, and the lock against a second process. Wiring only.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { toHex, utf8 } from '../base/bytes/bytes.ts';
import { Refusal } from '../base/refusal.ts';
import { type DataDir, FORMAT_FILE, openDataDir } from '../platform/disk/data-dir-lock.ts';
import { writeDurableFile } from '../platform/disk/durable-file.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { KvPort, KvPut } from '../ports/kv.ts';
import type { MemberRole } from '../ports/members.ts';
import type { NodeId, ReplicaId } from '../ports/replication.ts';
import type { ProcessContext } from './process-context.ts';

export const NODE_FILE = 'node.json';
const ID_BYTES = 16;
/** Above all shards' rows. */
const DATABASE_ID_KEY = Buffer.concat([Buffer.of(0xff, 0xff), utf8('database')]);

export interface NodeFile {
  nodeId: NodeId;
  role: MemberRole;
  /** The cluster that it has joined, stored because etcd may lose it (R23); absent before the first time. */
  cluster?: ClusterIdentity;
}

export interface NodeFolder extends Pick<DataDir, 'raiseFormat'> {
  folder: string;
}

/** Made at the first start. Throws {@link Refusal} when the folder is another role's. */
export async function openNodeFolder(
  { config, random, closing }: ProcessContext,
  role: MemberRole,
): Promise<NodeFile & NodeFolder> {
  const dataDir = await openDataDir({ path: config.dataDir, shards: config.shards });
  closing.defer(() => dataDir.close());
  const folder = dataDir.path;
  const raiseFormat = (format: number) => dataDir.raiseFormat(format);
  const stored = await readNodeFile(folder);
  if (stored === undefined) {
    if (!dataDir.isNew)
      throw new Refusal(`${folder} is not the folder of a cluster's node: it has no ${NODE_FILE}`);
    const nodeId = toHex(random.bytes(ID_BYTES));
    await writeNodeFile(folder, { nodeId, role });
    return { folder, raiseFormat, nodeId, role };
  }
  if (stored.role !== role) throw new Refusal(`${folder} is the folder of a ${stored.role} node`);
  return { ...stored, folder, raiseFormat };
}

/** Throws {@link Refusal} for a folder of a cluster: a single node must not use it. */
export async function refuseNodeFolder(folder: string): Promise<void> {
  const node = await readNodeFile(folder);
  if (node !== undefined)
    throw new Refusal(
      `${folder} is the folder of a ${node.role} node of a cluster: start it by \`holdfast ${node.role}\``,
    );
}

/**
 * Throws {@link Refusal} for the folder of a metadata node or of a single node, where chunks do not belong. A disk of
 * another storage node is accepted: a disk has its own identity.
 */
export async function refuseStrangeDisk(disk: string): Promise<void> {
  // A broken disk does not affect the others.
  const textOf = (name: string) => readFile(join(disk, name), 'utf8').catch(() => undefined);
  const [node, format] = await Promise.all([textOf(NODE_FILE), textOf(FORMAT_FILE)]);
  if (node !== undefined ? roleIn(node) === 'metadata' : format !== undefined)
    throw new Refusal(
      `the disk ${disk} is the data folder of a ${node === undefined ? 'single' : 'metadata'} node: give chunks a folder of their own`,
    );
}

function roleIn(text: string): unknown {
  try {
    return (JSON.parse(text) as Partial<NodeFile>).role;
  } catch {
    return undefined;
  }
}

/** Stores the cluster's identity. Throws {@link Refusal} when the folder belongs to another cluster. */
export async function keepCluster(
  { folder, nodeId, role, cluster: known }: NodeFile & { folder: string },
  cluster: ClusterIdentity,
): Promise<void> {
  if (known !== undefined && known.clusterId !== cluster.clusterId)
    throw new Refusal(`${folder} belongs to cluster ${known.clusterId}, and etcd has ${cluster.clusterId}`);
  if (!isDeepStrictEqual(known, cluster)) await writeNodeFile(folder, { nodeId, role, cluster });
}

export function writeNodeFile(folder: string, node: NodeFile): Promise<void> {
  return writeDurableFile(join(folder, NODE_FILE), `${JSON.stringify(node)}\n`);
}

/** undefined: there is none. */
export async function readNodeFile(folder: string): Promise<NodeFile | undefined> {
  const path = join(folder, NODE_FILE);
  try {
    return JSON.parse(await readFile(path, 'utf8')) as NodeFile;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Refusal(`${path} cannot be read: ${(error as Error).message}`);
  }
}

export async function readDatabaseId(kv: KvPort): Promise<ReplicaId | undefined> {
  const [stored] = await kv.getMany('rows', [DATABASE_ID_KEY]);
  return stored && toHex(stored);
}

/** For a database that is given one with other rows. */
export function databaseIdRow(replicaId: ReplicaId): KvPut {
  return { column: 'rows', key: DATABASE_ID_KEY, value: Uint8Array.from(Buffer.from(replicaId, 'hex')) };
}

/** R1: made with the database and stored in it, so that another database is another replica. */
export async function databaseId(kv: KvPort, random: RandomPort): Promise<ReplicaId> {
  const stored = await readDatabaseId(kv);
  if (stored !== undefined) return stored;
  const value = random.bytes(ID_BYTES);
  await kv.commit([{ column: 'rows', key: DATABASE_ID_KEY, value: Uint8Array.from(value) }]);
  return toHex(value);
}
