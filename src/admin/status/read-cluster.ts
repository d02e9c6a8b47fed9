// Reads what is known of a cluster: members and shards from etcd, what their nodes say of themselves, and disks from the nodes
// that have them. Once, and without waiting for what does not answer.

import { Refusal } from '../../base/refusal.ts';
import { readDiskStates } from '../../chunks/placement/disk-states.ts';
import { placementOf } from '../../chunks/placement/placement-document.ts';
import { formatId } from '../../cli/format.ts';
import type { Config } from '../../config/schema.ts';
import { knownZones } from '../../coordination/place-shards.ts';
import { createChunkClient } from '../../platform/chunk-http/client.ts';
import type { EtcdCoordinator } from '../../platform/etcd/etcd-coordinator.ts';
import { openRpcCredentials } from '../../platform/rpc/credentials.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { Member } from '../../ports/members.ts';
import type { PlacementMap } from '../../ports/placement.ts';
import type { ReplicaStatus, ShardCallPort } from '../../ports/shard-calls.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import { answer, connect, NoAnswer, securityOf } from '../join-cluster.ts';
import { chunkCredentials } from '../open-chunks.ts';
import { askNode, openCalls, SILENT } from '../operator-tools.ts';
import { alarmsOf, CLUSTER_ALARMS } from './alarms.ts';
import { type AskPrimary, createAskPrimary } from './ask-primary.ts';
import {
  type ClusterFacts,
  type ClusterStatus,
  type DiskStatus,
  damageOf,
  describeAudits,
  describeLeaving,
  describeShard,
  placementStatus,
  presentRecord,
  type RepairStatus,
  type ReportedReplicas,
  sumRepairs,
  unservedDisks,
  withRate,
} from './cluster-status.ts';
import { type KnownCluster, keepKnown, readKnown } from './last-known.ts';

const ANSWER_MAX_MS = 3000;
/** Between the two counts by which the rate of repair is known. */
const RATE_OVER_MS = 2000;

/** What `holdfast cluster status` shows. Throws {@link Refusal} as readCluster. */
export async function readClusterStatus(options: {
  config: Config;
  lastKnown?: string;
}): Promise<ClusterStatus> {
  const facts = await readCluster(options);
  const { clusterId, knownAtMs, members, shards, leavingNodes, placement, repair, damage, disks } = facts;
  return {
    clusterId,
    ...(knownAtMs !== undefined && { knownAtMs }),
    members,
    shards,
    leavingNodes,
    ...(placement && { placement }),
    repair,
    damage,
    disks,
    alarms: alarmsOf(CLUSTER_ALARMS, facts),
  };
}

/**
 * `lastKnown`: a file for what etcd answers, used when it does not answer. Throws {@link Refusal} when there is no cluster,
 * or etcd does not answer and nothing is cached.
 */
export async function readCluster({
  config,
  lastKnown,
}: {
  config: Config;
  lastKnown?: string;
}): Promise<ClusterFacts> {
  const { known, whyAway } = await findCluster(config, lastKnown);
  const { identity, members } = known;
  const { clusterId, shardCount } = identity;
  const records = known.records.map((record) => record ?? undefined);
  await using closing = new AsyncDisposableStack();
  const unreached = new Set<string>();
  const onDown = (reason: string) => void unreached.add(reason);
  const calls = await openCalls(closing, { config, clusterId, members, onDown });
  const replicas = await askNodes(calls, members);
  const present = records.map((record, shard) =>
    record === undefined || whyAway === undefined ? record : presentRecord(shard, record, replicas),
  );
  const ask = createAskPrimary(calls, present);
  const map = known.placement ? placementOf(known.placement) : undefined;
  const [unconfirmed, chunks] = await Promise.all([
    askHistories(ask, present),
    readChunks({ config, clusterId, shardCount, members, ask, map }),
  ]);
  return {
    clusterId,
    identity,
    members,
    zones: knownZones(records, members),
    replicas,
    unconfirmed,
    nowMs: systemClock.wallMs(),
    ...(whyAway !== undefined && { whyAway, knownAtMs: known.atMs }),
    shards: present.flatMap((record, shard) =>
      record === undefined ? [] : [describeShard(shard, record, replicas)],
    ),
    leavingNodes: describeLeaving(known.leavingNodes ?? [], { members, records: present }),
    missingGateways: known.missingGateways ?? [],
    unreached: [...unreached],
    ...chunks,
    damage: damageOf(replicas, chunks.repair),
  };
}

/** Nodes that run say again that they are there, whatever else of their cluster etcd has lost. */
export function describeNoCluster(members: readonly Member[]): string {
  if (members.length === 0)
    return (
      'there is no cluster: `holdfast cluster init` makes one. If there was one, etcd has lost its records: ' +
      'run `holdfast cluster rebuild-coordination` instead, before any node starts (docs/disasters.md)'
    );
  const nodes = members.map(({ role, nodeId }) => `${role} ${formatId(nodeId)}`).join(', ');
  return (
    `etcd has lost its records of this cluster, and nodes run (${nodes}): they serve on, and nobody can take over or join. ` +
    'Nothing is lost. Do not run `holdfast cluster init`: stop the nodes, run `holdfast cluster rebuild-coordination`, and ' +
    'start them again (docs/disasters.md)'
  );
}

/** As etcd answers, or as it answered last. */
async function findCluster(
  config: Config,
  lastKnown: string | undefined,
): Promise<{ known: KnownCluster; whyAway?: string }> {
  const coordinator = connect({ config, clock: systemClock, log: SILENT }, 'status');
  try {
    const known = await answer(askCoordinator(coordinator));
    if (lastKnown !== undefined) await keepKnown(lastKnown, known);
    return { known };
  } catch (error) {
    if (!(error instanceof NoAnswer) || lastKnown === undefined) throw error;
    const known = await readKnown(lastKnown);
    if (known !== undefined) return { known, whyAway: error.message };
    throw new Refusal(`${error.message}, and what it said before is not known to this machine`);
  } finally {
    coordinator.close();
  }
}

async function askCoordinator(coordinator: EtcdCoordinator): Promise<KnownCluster> {
  const identity = await coordinator.identity.read();
  const members = [...(await coordinator.members.current())];
  if (identity === undefined) throw new Refusal(describeNoCluster(members));
  const numbers = Array.from({ length: identity.shardCount }, (_, shard) => shard);
  const found = await Promise.all(numbers.map((shard) => coordinator.registry.read(shard)));
  const placement = await coordinator.placementMap.read();
  const { nodes: leavingNodes } = await coordinator.leavingNodes.read();
  return {
    atMs: systemClock.wallMs(),
    identity,
    members,
    records: found.map((registered) => registered?.record ?? null),
    placement: placement?.document ?? null,
    missingGateways: await coordinator.members.missingGateways(),
    leavingNodes,
  };
}

/** What each metadata node that answers says of its replicas. */
async function askNodes(calls: ShardCallPort, members: readonly Member[]): Promise<ReportedReplicas> {
  const nodes = members.filter(({ role }) => role === 'metadata');
  const question = { kind: 'status', withinMs: ANSWER_MAX_MS } as const;
  const replies = await Promise.all(nodes.map(({ nodeId }) => askNode(calls, nodeId, question)));
  return new Map(
    nodes.flatMap(({ nodeId }, at) => {
      const reply = replies[at];
      return reply?.kind === 'done' ? [[nodeId, reply.value as ReplicaStatus[]] as const] : [];
    }),
  );
}

/** Histories that are not the first, and not confirmed. */
async function askHistories(
  ask: AskPrimary,
  records: readonly (ShardRecord | undefined)[],
): Promise<ClusterFacts['unconfirmed']> {
  const found = await Promise.all(
    records.map(async (record, shard) => {
      if (record === undefined || record.incarnation === 1) return [];
      const answered = await ask(shard, 'get-history', {});
      const history = answered?.history ?? null;
      return history === null || history.confirmedAtMs !== undefined ? [] : [[shard, history] as const];
    }),
  );
  return new Map(found.flat());
}

async function readChunks(parts: {
  config: Config;
  clusterId: string;
  shardCount: number;
  map: PlacementMap | undefined;
  members: readonly Member[];
  ask: AskPrimary;
}): Promise<Pick<ClusterFacts, 'placement' | 'repair' | 'disks'>> {
  const { map, shardCount, ask } = parts;
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const [audits, repair, disks] = await Promise.all([
    Promise.all(shards.map((shard) => ask(shard, 'get-audit', {}))),
    readRepair(shards, ask),
    readDisks(parts),
  ]);
  return {
    ...(map && { placement: placementStatus(map, describeAudits(audits, map.auditFrom)) }),
    repair,
    disks,
  };
}

async function readRepair(shards: readonly number[], ask: AskPrimary): Promise<RepairStatus> {
  const first = await countRepairs(shards, ask);
  if (first.chunkCount === 0) return first;
  const atMs = systemClock.monotonicMs();
  await systemClock.sleep(RATE_OVER_MS);
  const second = await countRepairs(shards, ask);
  const seconds = (systemClock.monotonicMs() - atMs) / 1000;
  // A shard that has answered once alone would count as repaired.
  if (second.unansweredCount !== first.unansweredCount) return second;
  return withRate(second, (first.chunkCount - second.chunkCount) / seconds);
}

async function countRepairs(shards: readonly number[], ask: AskPrimary): Promise<RepairStatus> {
  const answers = await Promise.all(shards.map((shard) => ask(shard, 'count-debts', {})));
  return sumRepairs(answers);
}

async function readDisks(parts: {
  config: Config;
  clusterId: string;
  map: PlacementMap | undefined;
  members: readonly Member[];
}): Promise<DiskStatus[]> {
  const { config, clusterId, map } = parts;
  const reasons = new Map(unservedDisks(parts.members).map(({ diskId, reason }) => [diskId, reason]));
  await using closing = new AsyncDisposableStack();
  const credentials = await openRpcCredentials(securityOf(config), { clock: systemClock, log: SILENT });
  closing.defer(() => credentials.close());
  const client = createChunkClient({
    clusterId,
    clock: systemClock,
    credentials: chunkCredentials(config, { credentials }),
  });
  closing.defer(() => client.close());
  // Awaited here: the client ends with this function.
  return await Promise.all(
    readDiskStates(map, parts.members).map(async ({ disk, state, ...held }): Promise<DiskStatus> => {
      const { id: diskId, nodeId, address, zone, capacityBytes, leave } = disk;
      const isAway = state === 'away';
      const usage = isAway
        ? undefined
        : await Promise.race([
            client.chunksOf(disk).usage(),
            systemClock.sleep(ANSWER_MAX_MS).then(() => undefined),
          ]).catch(() => undefined);
      const reason = isAway ? reasons.get(diskId) : undefined;
      return {
        diskId,
        nodeId,
        address,
        zone,
        capacityBytes,
        state: isAway || usage !== undefined ? state : 'silent',
        ...(reason !== undefined && { reason }),
        ...(leave && { leave }),
        ...held,
        ...(usage && { usage }),
      };
    }),
  );
}
