// holdfast cluster status: members, shards and alarms, from the registry and from what metadata nodes say themselves.

import { Refusal } from '../base/refusal.ts';
import { placementOf } from '../chunks/placement/placement-document.ts';
import type { Config } from '../config/schema.ts';
import type { EtcdCoordinator } from '../platform/etcd/etcd-coordinator.ts';
import { systemClock } from '../platform/system-clock.ts';
import type { Member } from '../ports/members.ts';
import type { NodeId, ReplicaRef } from '../ports/replication.ts';
import type { ReplicaStatus, ShardCallPort, VerificationStatus } from '../ports/shard-calls.ts';
import type { ShardRecord } from '../ports/shard-registry.ts';
import { type AskPrimary, createAskPrimary } from './ask-primary.ts';
import { alarmsOfChunks } from './chunk-alarms.ts';
import { type ChunkStatus, readChunkStatus } from './chunk-status.ts';
import { answer, connect, NoAnswer } from './join-cluster.ts';
import { type KnownCluster, keepKnown, readKnown } from './last-known.ts';
import { alarmsOfLeaving, describeLeaving, type LeavingNodeStatus } from './leaving-status.ts';
import { askNode, openCalls, SILENT, short } from './operator-tools.ts';
import { alarmsOfDisasters, alarmsOfShards, type Doubts, type Said, timeText } from './shard-alarms.ts';

const ANSWER_MAX_MS = 3000;

export interface VoterStatus {
  nodeId: NodeId;
  /** `unheard`: its node does not answer. */
  state: ReplicaStatus['state'] | 'unheard';
  appliedSeq?: number;
  /** Entries that the primary says it lacks. */
  lag?: number;
}

export interface ShardStatus {
  shard: number;
  incarnation: number;
  epoch: number;
  /** As the registry says; `isOpen`: it says itself that it serves. */
  primary: NodeId | undefined;
  isOpen: boolean;
  voters: VoterStatus[];
  /** While its voters are being changed: those of before, whose majority counts too (R14). */
  prevVoters: NodeId[];
  learners: NodeId[];
  /** As its primary tells; absent while there is none. */
  verification?: VerificationStatus;
}

export interface ClusterStatus extends ChunkStatus {
  clusterId: string;
  /** Set while etcd does not answer: members and voters are those of that time, wall clock ms. */
  knownAtMs?: number;
  members: Member[];
  shards: ShardStatus[];
  /** Metadata nodes that are to hold no shards, by the operator's word. */
  leavingNodes: LeavingNodeStatus[];
  alarms: string[];
}

/**
 * `lastKnown`: a file for what etcd tells, to go by when it does not answer. Throws {@link Refusal} when there is no
 * cluster, or etcd does not answer and nothing is known of before.
 */
export async function readClusterStatus({
  config,
  lastKnown,
}: {
  config: Config;
  lastKnown?: string;
}): Promise<ClusterStatus> {
  const { known, whyAway } = await findCluster(config, lastKnown);
  const { identity, members } = known;
  const { clusterId, shardCount } = identity;
  const records = known.records.map((record) => record ?? undefined);
  await using closing = new AsyncDisposableStack();
  const reasons = new Set<string>();
  const onDown = (reason: string) => void reasons.add(reason);
  const calls = await openCalls(closing, { config, clusterId, members, onDown });
  const said = await askNodes(calls, members);
  const present = records.map((record, shard) =>
    record === undefined || whyAway === undefined ? record : presentRecord(shard, record, said),
  );
  const ask = createAskPrimary(calls, present);
  const [doubts, chunks] = await Promise.all([
    askHistories(ask, present),
    readChunkStatus({
      ...{ config, clusterId, shardCount, members, ask, answerMaxMs: ANSWER_MAX_MS },
      map: known.placement ? placementOf(known.placement) : undefined,
    }),
  ]);
  const shards = present.flatMap((record, shard) =>
    record === undefined ? [] : [describe(shard, record, said)],
  );
  const leavingNodes = describeLeaving(known.leavingNodes ?? [], { members, records: present });
  const gone = new Set(leavingNodes.flatMap(({ nodeId, leave }) => (leave === 'gone' ? [nodeId] : [])));
  const away =
    whyAway === undefined
      ? []
      : [`${whyAway}: members and voters are shown as they were at ${timeText(known.atMs)}`];
  return {
    clusterId,
    ...(whyAway !== undefined && { knownAtMs: known.atMs }),
    members,
    shards,
    leavingNodes,
    ...chunks,
    alarms: [
      ...away,
      // It may be this machine that is wrong: its secret, its certificate, its network.
      ...(said.size === 0
        ? [...reasons].map((reason) => `no metadata node is reached from here: ${reason}`)
        : []),
      ...alarmsOfGateways(known.missingGateways ?? []),
      ...alarmsOfShards(shards, { said, identity, gone }),
      ...alarmsOfLeaving(leavingNodes, { members, replicaCount: identity.replicaCount }),
      ...alarmsOfChunks(chunks, {
        ...{ identity, nowMs: systemClock.wallMs() },
        // Which nodes are there only etcd knows.
        members: whyAway === undefined ? members : undefined,
      }),
      ...alarmsOfDisasters({ said, doubts, shardCount }),
    ],
  };
}

/** A gateway that is stopped leaves the list; one that is killed, or cut off, is missed. */
export function alarmsOfGateways(missing: readonly Member[]): string[] {
  return missing.map(
    ({ nodeId, instance = '' }) =>
      `gateway ${short(nodeId)} (${instance}) does not run, and was not stopped: start it again, or \`holdfast cluster remove ${short(nodeId)}\` it`,
  );
}

/** Nodes that run say again that they are there, whatever else of their cluster etcd has lost. */
export function describeNoCluster(members: readonly Member[]): string {
  if (members.length === 0)
    return (
      'there is no cluster: `holdfast cluster init` makes one. If there was one, etcd has lost its records: ' +
      'run `holdfast cluster rebuild-coordination` instead, before any node starts (docs/disasters.md)'
    );
  const nodes = members.map(({ role, nodeId }) => `${role} ${short(nodeId)}`).join(', ');
  return (
    `etcd has lost its records of this cluster, and nodes run (${nodes}): they serve on, and nobody can take over or join. ` +
    'Nothing is lost. Do not run `holdfast cluster init`: stop the nodes, run `holdfast cluster rebuild-coordination`, and ' +
    'start them again (docs/disasters.md)'
  );
}

/** As etcd tells, or as it told last. */
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
    ...{ identity, members },
    records: found.map((registered) => registered?.record ?? null),
    placement: placement?.document ?? null,
    missingGateways: await coordinator.members.missingGateways(),
    leavingNodes,
  };
}

/** Who leads by what the nodes say: the record may be of before a takeover. */
function presentRecord(shard: number, record: ShardRecord, said: Said): ShardRecord {
  const { voters } = record;
  let present = record;
  for (const primary of voters)
    for (const { shard: of, role, epoch, incarnation } of said.get(primary.nodeId) ?? [])
      if (of === shard && role === 'primary' && epoch >= present.epoch)
        present = { ...present, incarnation, epoch, primary };
  return present;
}

/** What each metadata node that answers says of its replicas. */
async function askNodes(calls: ShardCallPort, members: readonly Member[]): Promise<Said> {
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
async function askHistories(ask: AskPrimary, records: readonly (ShardRecord | undefined)[]): Promise<Doubts> {
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

function describe(shard: number, record: ShardRecord, said: Said): ShardStatus {
  const { incarnation, epoch, primary, voters, prevVoters, learners } = record;
  const of = ({ nodeId }: ReplicaRef) => said.get(nodeId)?.find((status) => status.shard === shard);
  const leading = primary === null ? undefined : of(primary);
  return {
    ...{ shard, incarnation, epoch },
    primary: primary?.nodeId,
    isOpen: leading?.role === 'primary',
    voters: voters.map((ref) => {
      const status = of(ref);
      const lag = leading?.lags.find(({ replicaId }) => replicaId === ref.replicaId)?.lag;
      return {
        nodeId: ref.nodeId,
        state: status?.state ?? 'unheard',
        ...(status && { appliedSeq: status.appliedSeq }),
        ...(lag !== undefined && { lag }),
      };
    }),
    prevVoters: prevVoters?.map(({ nodeId }) => nodeId) ?? [],
    learners: learners.map(({ nodeId }) => nodeId),
    ...(leading?.verification && { verification: leading.verification }),
  };
}
