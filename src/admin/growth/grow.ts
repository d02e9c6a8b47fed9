// holdfast cluster grow: turns the data folder of a stopped single node into the first metadata node, the first storage node
// and the gateway's keys of a new cluster. No object is copied. A run that was interrupted is repeated, and skips what is done:
// 1. write the plan into the folder; 2. remove format.json, without which the single node does not start; 3. write the records
// of the cluster into etcd, its identity last; 4. write the identity of each new node into its database; 5. rename the folders.
import { join, resolve } from 'node:path';
import { Refusal } from '../../base/refusal.ts';
import { hostPortText } from '../../base/text/host-port.ts';
import { makePlacement } from '../../chunks/placement/placement.ts';
import { documentOf, placementOf } from '../../chunks/placement/placement-document.ts';
import type { Config } from '../../config/schema.ts';
import {
  lockDataDir,
  readDataDirShards,
  removeFormatFile,
  writeFormatFile,
} from '../../platform/disk/data-dir-lock.ts';
import { MASTER_KEYS_FILE, openFileKeyring } from '../../platform/keyring/file-keyring.ts';
import { systemClock, systemRandom } from '../../platform/system-clock.ts';
import type { Coordination } from '../../ports/coordination.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import { answer, CLUSTER_FORMAT, connect } from '../join-cluster.ts';
import { readNodeFile } from '../node-folder.ts';
import { SILENT } from '../operator-tools.ts';
import { readRootCredentials } from '../root-credentials.ts';
import { adoptDatabases, newId, takeStock } from './grow-databases.ts';
import { moveToRoles, type RoleFolders, roleFolders } from './grow-folder.ts';
import { type GrowPlan, newPlan, readPlan, removePlan, writePlan } from './grow-plan.ts';

export interface GrowOptions {
  folder: string;
  replicaCount: number;
  chunkCopies: number;
  /** Called after each step that may be the last before a crash: for tests, which throw. */
  onStep?(step: string): void;
}

export interface GrownCluster {
  clusterId: string;
  folders: RoleFolders;
  /** It was done before. */
  wasDone: boolean;
}

/**
 * Throws {@link Refusal} and changes nothing when a server holds the folder, it is not a complete one of a single node, or
 * etcd has a cluster. Any other rejection means that it was cut short and must be repeated.
 */
export async function growCluster(config: Config, options: GrowOptions): Promise<GrownCluster> {
  const folder = resolve(options.folder);
  await refuseOthers(folder);
  const { onStep = () => {} } = options;
  const lock = await lockDataDir(folder);
  const coordination = connect({ config, clock: systemClock, log: SILENT }, 'grow');
  try {
    const { plan, isNew } = await findPlan(config, { ...options, folder, coordination });
    const { clusterId } = plan.identity;
    const folders = roleFolders(folder);
    if (plan.isDone) return { clusterId, folders, wasDone: true };
    onStep('planned');
    await removeFormatFile(folder);
    onStep('locked out');
    await register(coordination, plan).catch(async (error: unknown) => {
      // Etcd has another cluster, and nothing was changed here: the single node may start again.
      if (isNew && error instanceof OtherCluster) await giveUp(folder, plan);
      throw error;
    });
    onStep('registered');
    await adoptDatabases(folder, plan);
    onStep('adopted');
    await moveToRoles(folder, plan, onStep);
    await writePlan(folder, { ...plan, isDone: true });
    return { clusterId, folders, wasDone: false };
  } finally {
    coordination.close();
    lock.close();
  }
}

/** Before anything is made in it. */
async function refuseOthers(folder: string): Promise<void> {
  const shardCount = await readDataDirShards(folder);
  const node = await readNodeFile(folder);
  if (node !== undefined) throw new Refusal(`${folder} is the folder of a ${node.role} node of a cluster`);
  if (shardCount === undefined && (await readPlan(folder)) === undefined)
    throw new Refusal(`${folder} is not the data folder of a single node: it has no format.json`);
}

/** The plan of an earlier run, or a new one that is written first. */
async function findPlan(
  config: Config,
  options: GrowOptions & { coordination: Coordination },
): Promise<{ plan: GrowPlan; isNew: boolean }> {
  const { folder, coordination } = options;
  const shardCount = await readDataDirShards(folder);
  const begun = shardCount === undefined ? await readPlan(folder) : undefined;
  const found = await answer(coordination.identity.read());
  // While the format file exists the single node may have run since: the plan may be outdated.
  if (begun !== undefined) {
    if (found === undefined && begun.isDone)
      throw new Refusal(
        `${folder} has become cluster ${begun.identity.clusterId}, of which etcd knows nothing: see \`holdfast cluster rebuild-coordination\``,
      );
    refuseOtherCluster(found?.clusterId, begun);
    return { plan: begun, isNew: false };
  }
  refuseOtherCluster(found?.clusterId, undefined);
  const plan = await makePlan(config, { ...options, shardCount: shardCount ?? 0 });
  await refuseLeftovers(coordination);
  await writePlan(folder, plan);
  return { plan, isNew: true };
}

class OtherCluster extends Refusal {}

function refuseOtherCluster(clusterId: string | undefined, plan: GrowPlan | undefined): void {
  if (clusterId !== undefined && clusterId !== plan?.identity.clusterId)
    throw new OtherCluster(`etcd has a cluster already: ${clusterId}`);
}

async function makePlan(
  config: Config,
  { folder, shardCount, replicaCount, chunkCopies }: GrowOptions & { shardCount: number },
): Promise<GrowPlan> {
  const keyring = await openFileKeyring({ path: join(folder, MASTER_KEYS_FILE), isNew: false });
  await readRootCredentials({ folder, given: config.root });
  const { shards, capacityBytes } = await takeStock(folder, { shardCount, clock: systemClock });
  const nodeId = newId(systemRandom);
  const { node } = config;
  return newPlan({
    identity: {
      clusterId: newId(systemRandom),
      shardCount,
      replicaCount,
      chunkCopies,
      masterKeyId: keyring.activeKeyId,
      formatVersion: CLUSTER_FORMAT,
    },
    voter: { nodeId: newId(systemRandom), replicaId: newId(systemRandom) },
    shards,
    disk: {
      id: newId(systemRandom),
      nodeId,
      zone: node.zone ?? nodeId,
      capacityBytes,
      // Until the node announces its address.
      address: hostPortText(node.advertise ?? node.listen),
    },
  });
}

/** Records without a cluster: from an interrupted growth of another folder. */
async function refuseLeftovers(coordination: Coordination): Promise<void> {
  const shard = await answer(coordination.registry.read(0));
  const placement = await answer(coordination.placementMap.read());
  if (shard !== undefined || placement !== undefined)
    throw new OtherCluster(
      'etcd has records of a cluster that was being made of another folder: finish that, or remove them (etcdctl del --prefix holdfast/)',
    );
}

/** The identity last: before it no node joins, and so no node makes other records. */
async function register(coordination: Coordination, plan: GrowPlan): Promise<void> {
  const { identity } = plan;
  refuseOtherCluster((await answer(coordination.identity.read()))?.clusterId, plan);
  await answer(registerDisk(coordination, plan));
  for (const shard of plan.shards.keys()) await answer(registerShard(coordination, { shard, plan }));
  try {
    await answer(coordination.identity.init(identity));
  } catch (error) {
    refuseOtherCluster((await answer(coordination.identity.read()))?.clusterId, plan);
    throw error;
  }
}

async function registerDisk({ placementMap }: Coordination, { disk, identity }: GrowPlan): Promise<void> {
  const stored = await placementMap.read();
  if (stored === undefined) {
    const map = makePlacement({ disks: [disk], copies: identity.chunkCopies });
    await placementMap.swap({ expected: 0, document: documentOf(map) });
    return;
  }
  if (!placementOf(stored.document).disks.some(({ id }) => id === disk.id))
    throw new OtherCluster('etcd has a placement map of another cluster');
}

async function registerShard(
  { registry }: Coordination,
  { shard, plan }: { shard: number; plan: GrowPlan },
): Promise<void> {
  const { voter, shards } = plan;
  const registered = await registry.read(shard);
  if (registered !== undefined) {
    const { voters } = registered.record;
    if (voters.some(({ replicaId }) => replicaId === voter.replicaId)) return;
    throw new OtherCluster(`etcd has a record of shard ${shard} of another cluster`);
  }
  const { incarnation = 1, epoch = 0 } = shards[shard] ?? {};
  const record: ShardRecord = {
    incarnation,
    epoch,
    primary: voter,
    voters: [voter],
    prevVoters: null,
    learners: [],
    nonce: '',
  };
  await registry.swap(shard, { expected: 0, record });
}

async function giveUp(folder: string, { identity }: GrowPlan): Promise<void> {
  await writeFormatFile(folder, identity.shardCount);
  await removePlan(folder);
}
