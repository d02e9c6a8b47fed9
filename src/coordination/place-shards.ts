// The shard placer: the one process that writes which metadata node should hold which shard (R14, R44). It makes the
// records of a new cluster, never those of one whose records etcd has lost (R23), and writes the wanted voters into existing
// ones; primaries carry that out. A second placer that still believes to hold the lock does no harm: records change by
// compare-and-swap, and both want the same.
import { isDeepStrictEqual } from 'node:util';
import type { ClockPort } from '../ports/clock.ts';
import type { ClusterState } from '../ports/cluster-identity.ts';
import type { JobLocksPort, LeavingNode, LeavingNodesPort, NodeLeave } from '../ports/coordination.ts';
import type { Member } from '../ports/members.ts';
import type { NodeId } from '../ports/replication.ts';
import type {
  RegisteredShard,
  ShardRecord,
  ShardRegistryPort,
  WantedShard,
} from '../ports/shard-registry.ts';
import type { Logger } from '../ports/telemetry.ts';
import { type HeldJob, holdJob } from './hold-job.ts';
import { type NodeZones, type PlannedNode, planShards } from './plan-shards.ts';
import { countUnsettled, type UnsettledShards } from './unsettled-shards.ts';

const LOOK_EVERY_MS = 2000;

export interface ShardPlacerDeps {
  shardCount: number;
  replicaCount: number;
  registry: ShardRegistryPort;
  leavingNodes: LeavingNodesPort;
  jobLocks: JobLocksPort;
  clock: ClockPort;
  log: Logger;
  members(): readonly Member[];
  /** What the coordinator says of this cluster. */
  cluster(): Promise<ClusterState>;
  /** By shard, the highest epoch that the replica of this node has promised. */
  promised(): ReadonlyMap<number, number>;
  /** Called after each look with what was found; undefined: another process is the placer now. */
  onLook?(seen: ShardsSeen | undefined): void;
}

export interface ShardsSeen {
  /** Voters that are still on leaving nodes. */
  leavingVoters: Readonly<Record<NodeLeave, number>>;
  unsettled: UnsettledShards;
  /** How many metadata nodes too few remain for the number of voters of each shard. */
  lackingNodeCount: number;
}

const NONE_LEAVING = { draining: 0, gone: 0 };

export interface ShardPlacer {
  /** Runs until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

export function createShardPlacer(deps: ShardPlacerDeps): ShardPlacer {
  let last: ClusterState | undefined;
  const cluster = async () => {
    const found = await deps.cluster();
    if (found === 'unknown' && found !== last) deps.log.error({}, 'cluster-not-in-etcd');
    last = found;
    return found;
  };
  let notBegun: readonly number[] = [];
  const onNotBegun = (shards: readonly number[]) => {
    if (shards.length > 0 && !isDeepStrictEqual(shards, notBegun))
      deps.log.error({ shards }, 'shards-not-begun');
    notBegun = shards;
  };
  const job: HeldJob = {
    name: 'place-shards',
    failedEvent: 'shards-not-placed',
    retryMs: LOOK_EVERY_MS,
    onWaiting: () => deps.onLook?.(undefined),
    begin: () => async () => {
      await place({ ...deps, cluster, onNotBegun });
      return LOOK_EVERY_MS;
    },
  };
  return { run: (signal) => holdJob(deps, job, signal) };
}

interface Placing extends ShardPlacerDeps {
  /** Those without a record that may not begin as new, because etcd has lost records. */
  onNotBegun(shards: readonly number[]): void;
}

async function place(deps: Placing): Promise<void> {
  const { registry, replicaCount, shardCount } = deps;
  const nodes = nodesOf(deps.members());
  const promised = deps.promised();
  const leavingNodes = await deps.leavingNodes.read();
  const registered: (RegisteredShard | undefined)[] = [];
  for (let shard = 0; shard < shardCount; shard++) registered.push(await registry.read(shard));
  const leaving = new Set(leavingNodes.nodes.map(({ nodeId }) => nodeId));
  const staying = nodes.filter(({ ref }) => !leaving.has(ref.nodeId));
  const records = registered.flatMap((found) => (found === undefined ? [] : [found.record]));
  const zones = knownZones(records, deps.members());
  deps.onLook?.({
    leavingVoters: countLeaving(leavingNodes.nodes, records),
    unsettled: countUnsettled(records, {
      ...{ shardCount, replicaCount, zones },
      staying: staying.map(({ ref }) => ref.nodeId),
    }),
    lackingNodeCount: Math.max(0, replicaCount - staying.length),
  });
  // Read after the records: those that it is without were lost before, or have never been.
  const cluster = await deps.cluster();
  if (cluster === 'unknown') return;
  // Never fewer voters than the cluster was made for: acknowledged data would be on too few disks.
  if (staying.length < replicaCount) return;
  const present = registered.map((found) => found && presentOf(found.record));
  const wishes = planShards(present, { nodes, zones, replicaCount, leaving });
  const mayBegin = cluster === 'as-made' && !areForgotten(promised, registered);
  for (const [shard, wanted] of wishes.entries())
    if (mayBegin || registered[shard] !== undefined)
      await wish(deps, shard, registered[shard], withZones(wanted, zones));
  deps.onNotBegun(mayBegin ? [] : [...registered.keys()].filter((shard) => registered[shard] === undefined));
}

/** Of metadata nodes: those that are away have the zone that they were last in. */
export function knownZones(
  records: readonly (ShardRecord | undefined)[],
  members: readonly Member[],
): NodeZones {
  const earlier = records.flatMap((record) => Object.entries(record?.wanted?.zones ?? {}));
  return new Map([...earlier, ...nodesOf(members).map(({ ref, zone }) => [ref.nodeId, zone] as const)]);
}

function withZones(wanted: WantedShard, zones: NodeZones): WantedShard {
  const known = wanted.voters.flatMap(({ nodeId }) => {
    const zone = zones.get(nodeId);
    return zone === undefined ? [] : [[nodeId, zone] as const];
  });
  return { ...wanted, zones: Object.fromEntries(known) };
}

/** An epoch exists by the registry first (R2): one that does not know it has lost it, and other shards' records, too. */
function areForgotten(
  promised: ReadonlyMap<number, number>,
  registered: readonly (RegisteredShard | undefined)[],
): boolean {
  return [...promised].some(([shard, epoch]) => epoch > (registered[shard]?.record.epoch ?? 0));
}

/** By node, the number of shards that need it, as a present or previous voter (R14). Nodes that are not needed are absent. */
export function voterCounts(records: readonly (ShardRecord | undefined)[]): Map<NodeId, number> {
  const counts = new Map<NodeId, number>();
  for (const record of records) {
    const voters = [...(record?.voters ?? []), ...(record?.prevVoters ?? [])];
    for (const nodeId of new Set(voters.map(({ nodeId }) => nodeId)))
      counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  }
  return counts;
}

function countLeaving(nodes: readonly LeavingNode[], records: readonly ShardRecord[]) {
  const counts = { ...NONE_LEAVING };
  const needing = voterCounts(records);
  for (const { nodeId, leave } of nodes) counts[leave] += needing.get(nodeId) ?? 0;
  return counts;
}

/** A change under way counts as done, so that the plan does not change half-way. */
function presentOf({ voters, wanted, primary }: ShardRecord) {
  return { voters: wanted?.voters ?? voters, primary: wanted?.primary ?? primary?.replicaId };
}

async function wish(
  { registry, log }: ShardPlacerDeps,
  shard: number,
  registered: RegisteredShard | undefined,
  wanted: WantedShard,
): Promise<void> {
  if (registered === undefined) {
    const { voters } = wanted;
    const first = { incarnation: 1, epoch: 0, primary: null, prevVoters: null, learners: [], nonce: '' };
    await registry.swap(shard, { expected: 0, record: { ...first, voters, wanted } });
    return;
  }
  const { record, revision } = registered;
  if (isDeepStrictEqual(record.wanted, wanted)) return;
  log.info({ shard, wanted }, 'shard-wanted');
  await registry.swap(shard, { expected: revision, record: { ...record, wanted } });
}

/** A metadata node announces its database as its one disk. */
function nodesOf(members: readonly Member[]): PlannedNode[] {
  return members.flatMap(({ role, nodeId, zone, disks: [database] }) =>
    role === 'metadata' && database !== undefined
      ? [{ ref: { nodeId, replicaId: database.diskId }, zone }]
      : [],
  );
}
