// holdfast cluster rebuild-coordination: rebuilds the records of etcd from what metadata nodes durably know (R23), after
// etcd was lost or restored and before any node starts.

import { isDeepStrictEqual } from 'node:util';
import { toHex } from '../../base/bytes/bytes.ts';
import { Refusal } from '../../base/refusal.ts';
import { formatId } from '../../cli/format.ts';
import type { Config } from '../../config/schema.ts';
import { planRebuilds, type ShardPlan } from '../../coordination/rebuild-records.ts';
import { systemRandom } from '../../platform/system-clock.ts';
import type { ClusterIdentity } from '../../ports/cluster-identity.ts';
import type { NodeRecords } from '../../ports/node-records.ts';
import type { PlacementDocument } from '../../ports/placement-map.ts';
import type { ReplicaRef } from '../../ports/replication.ts';
import { readNodeFile } from '../node-folder.ts';
import { collectRecords, type OperatorTools, replicasOf, withOperatorTools } from '../operator-tools.ts';

const NONCE_BYTES = 16;

export interface RebuildOptions {
  /** Of stopped nodes. */
  folders: readonly string[];
  /** For an etcd that does not know it, without folders. */
  clusterId: string | undefined;
  /** Otherwise it only shows what it would do. */
  isMeant: boolean;
}

/** Returns the exit code: 0 when all shards are in order, 2 when some could not be rebuilt or it only showed the plan. */
export async function rebuildCoordination(
  { config, print, nowMs }: { config: Config; print(line: string): void; nowMs(): number },
  { folders, clusterId, isMeant }: RebuildOptions,
): Promise<number> {
  const known = clusterId ?? (await clusterOf(folders));
  return withOperatorTools({ config, clusterId: known }, async (tools) => {
    const records = await collectRecords(tools, folders);
    const identity = identityOf(records, tools.identity);
    refuseRunning(records);
    print(`Cluster ${identity.clusterId}: ${identity.shardCount} shards.`);
    for (const { nodeId, replicaId, replicas } of records)
      print(`Node ${formatId(nodeId)}, replica ${formatId(replicaId)}: rows of ${replicas.length} shards.`);
    const plan = await planAll(tools, { records, identity, nowMs: nowMs() });
    if (tools.identity === undefined) print('The identity of the cluster is to be written.');
    if (plan.placement !== undefined)
      print(`The placement map is to be written: version ${plan.placement.document.version}.`);
    for (const [shard, one] of plan.shards.entries()) print(describe(shard, one));
    if (!isMeant) {
      print('Nothing was changed. --yes does what is shown.');
      return 2;
    }
    await write(tools, plan);
    const left = plan.shards.filter(({ kind }) => kind === 'cannot').length;
    print(left === 0 ? 'Done: the nodes may start.' : `Done, but for ${left} shards.`);
    return left === 0 ? 0 : 2;
  });
}

async function clusterOf([folder]: readonly string[]): Promise<string | undefined> {
  return folder === undefined ? undefined : (await readNodeFile(folder))?.cluster?.clusterId;
}

/** Throws {@link Refusal} unless all records are of one cluster. */
function identityOf(records: readonly NodeRecords[], inEtcd: ClusterIdentity | undefined): ClusterIdentity {
  const [first] = records;
  if (first === undefined)
    throw new Refusal(
      'no metadata node answers: start them by `holdfast metadata --maintenance`, or name folders by --from',
    );
  const identity = inEtcd ?? first.cluster;
  for (const { nodeId, cluster } of records)
    if (!isDeepStrictEqual(cluster, identity))
      throw new Refusal(`node ${nodeId} is of cluster ${cluster.clusterId}, others of ${identity.clusterId}`);
  return identity;
}

/** Running nodes would continue with wrong records. */
function refuseRunning(records: readonly NodeRecords[]): void {
  const running = records.find(({ isAtRest }) => !isAtRest);
  if (running !== undefined)
    throw new Refusal(
      `node ${running.nodeId} runs: stop it, or start it by \`holdfast metadata --maintenance\``,
    );
}

interface Plan {
  identity: ClusterIdentity;
  placement: { expected: number; document: PlacementDocument } | undefined;
  shards: ShardPlan[];
}

async function planAll(
  { coordination }: OperatorTools,
  { records, identity, nowMs }: { records: readonly NodeRecords[]; identity: ClusterIdentity; nowMs: number },
): Promise<Plan> {
  const numbers = Array.from({ length: identity.shardCount }, (_, shard) => shard);
  const registered = await Promise.all(numbers.map((shard) => coordination.registry.read(shard)));
  const seenMs = records.flatMap(({ replicas }) => replicas.map(({ seen }) => seen?.rebuiltAtMs ?? 0));
  const known = registered.map((found) => found?.record.rebuiltAtMs ?? 0);
  // Later than any other rebuild, whatever this machine's clock says.
  const rebuiltAtMs = [...seenMs, ...known].reduce((latest, ms) => Math.max(latest, ms + 1), nowMs);
  const shards = planRebuilds(
    numbers.map((shard) => ({ found: replicasOf(records, shard), registered: registered[shard] })),
    () => ({ rebuiltAtMs, nonce: toHex(systemRandom.bytes(NONCE_BYTES)) }),
  );
  return { identity, placement: await planPlacement(coordination, records), shards };
}

/** The newest map that a node knows, if etcd has an older one or none. */
async function planPlacement(
  { placementMap }: OperatorTools['coordination'],
  records: readonly NodeRecords[],
): Promise<Plan['placement']> {
  const stored = await placementMap.read();
  let newest: PlacementDocument | undefined;
  for (const { placement } of records)
    if (placement !== null && placement.version > (newest?.version ?? 0)) newest = placement;
  if (newest === undefined || newest.version <= (stored?.document.version ?? 0)) return undefined;
  return { expected: stored?.revision ?? 0, document: newest };
}

function describe(shard: number, plan: ShardPlan): string {
  if (plan.kind === 'as-it-is') return `Shard ${shard}: etcd is not behind.`;
  if (plan.kind === 'cannot') {
    const { why, missing, rivals } = plan;
    const details = [
      ...(missing.length > 0 ? [`; not found, or not whole: ${namesOf(missing)}`] : []),
      ...(rivals !== undefined ? [`: ${rivals.map(namesOf).join('; and ')}`] : []),
    ];
    return `Shard ${shard}: CANNOT BE REBUILT, ${why}${details.join('')}`;
  }
  const { incarnation, epoch, voters } = plan.record;
  if (plan.kind === 'renew')
    return `Shard ${shard}: etcd is not behind, and is to say so: history ${incarnation}, epoch ${epoch}.`;
  const names = voters.map(({ replicaId }) => formatId(replicaId)).join(', ');
  return `Shard ${shard}: history ${incarnation}, epoch ${epoch}, voters ${names}.`;
}

function namesOf(replicas: readonly ReplicaRef[]): string {
  return replicas
    .map(({ nodeId, replicaId }) => `${formatId(replicaId)} of node ${formatId(nodeId)}`)
    .join(', ');
}

/**
 * The identity last: before it no node joins, and none that runs makes records of its own. One that is there was restored
 * with records that it may lack: it is marked first.
 */
async function write(
  { coordination, ...known }: OperatorTools,
  { identity, placement, shards }: Plan,
): Promise<void> {
  const mark = () => coordination.identity.init(identity, { isRebuilt: true });
  const isWhole = placement === undefined && shards.every(({ kind }) => kind === 'as-it-is');
  if (known.identity !== undefined && !isWhole) await mark();
  const lost = (what: string) =>
    new Refusal(`${what} has changed meanwhile: somebody else writes to etcd; run this again`);
  if (placement !== undefined && (await coordination.placementMap.swap(placement)).kind === 'lost')
    throw lost('the placement map');
  for (const [shard, plan] of shards.entries()) {
    if (plan.kind !== 'rebuild' && plan.kind !== 'renew') continue;
    const { expected, record } = plan;
    const swapped = await coordination.registry.swap(shard, { expected, record });
    if (swapped.kind === 'lost') throw lost(`the record of shard ${shard}`);
  }
  if (known.identity === undefined) await mark();
}
