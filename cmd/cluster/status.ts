// holdfast cluster status: members, shards and alarms, from the registry and from what metadata nodes say themselves.
import type { EtcdCoordinator } from '../../src/adapters/etcd-coordinator.ts';
import { systemClock } from '../../src/adapters/system-clock.ts';
import { formatTable } from '../../src/cli/format.ts';
import { placementOf } from '../../src/cluster/placement-document.ts';
import type { Config } from '../../src/config/schema.ts';
import { Refusal } from '../../src/lib/refusal.ts';
import type { HistoryRecord } from '../../src/model/records/rows.ts';
import type { ClusterIdentity } from '../../src/ports/cluster-identity.ts';
import type { Member } from '../../src/ports/members.ts';
import type { ResultOf } from '../../src/ports/metadata.ts';
import type { PlacedDisk } from '../../src/ports/placement.ts';
import type { NodeId, ReplicaRef } from '../../src/ports/replication.ts';
import type { ReplicaStatus, ShardCallPort, VerificationStatus } from '../../src/ports/shard-calls.ts';
import type { ShardRecord } from '../../src/ports/shard-registry.ts';
import { answer, connect, NoAnswer } from './join.ts';
import { type KnownCluster, keepKnown, readKnown } from './last-known.ts';
import { askNode, openCalls, SILENT, short } from './operator-tools.ts';

const ANSWER_MAX_MS = 3000;
/** Entries behind that are worth a word. */
const LAG_SHOWN_MIN = 1000;

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
  learners: NodeId[];
  /** As its primary tells; absent while there is none. */
  verification?: VerificationStatus;
}

export interface ClusterStatus {
  clusterId: string;
  /** Set while etcd does not answer: members and voters are those of that time, wall clock ms. */
  knownAtMs?: number;
  members: Member[];
  shards: ShardStatus[];
  alarms: string[];
}

/** R23: of shards that have gone on with one replica, and whose operator has not confirmed it. */
type Doubts = ReadonlyMap<number, HistoryRecord>;

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
  const { identity, members, disks } = known;
  const { clusterId, shardCount } = identity;
  const records = known.records.map((record) => record ?? undefined);
  const { said, doubts } = await askNodes(config, { clusterId, members, records });
  const shards = records.flatMap((record, shard) => {
    if (record === undefined) return [];
    return [describe(shard, whyAway === undefined ? record : presentRecord(shard, record, said), said)];
  });
  const away =
    whyAway === undefined
      ? []
      : [`${whyAway}: members and voters are shown as they were at ${timeText(known.atMs)}`];
  return {
    clusterId,
    ...(whyAway !== undefined && { knownAtMs: known.atMs }),
    members,
    shards,
    alarms: [
      ...away,
      ...alarmsOfShards(shards, said, identity),
      // Which nodes are there only etcd knows.
      ...(whyAway === undefined ? alarmsOfDisks(disks, members, identity) : []),
      ...alarmsOfDisasters({ said, doubts, shardCount }),
    ],
  };
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
  if (identity === undefined) throw new Refusal('there is no cluster');
  const members = [...(await coordinator.members.current())];
  const numbers = Array.from({ length: identity.shardCount }, (_, shard) => shard);
  const found = await Promise.all(numbers.map((shard) => coordinator.registry.read(shard)));
  const placement = await coordinator.placementMap.read();
  return {
    atMs: systemClock.wallMs(),
    ...{ identity, members },
    records: found.map((registered) => registered?.record ?? null),
    disks: placement === undefined ? [] : [...placementOf(placement.document).disks],
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

type Said = ReadonlyMap<NodeId, readonly ReplicaStatus[]>;

/** What each metadata node that answers says of its replicas, and primaries of histories that are not the first. */
async function askNodes(
  config: Config,
  {
    clusterId,
    members,
    records,
  }: { clusterId: string; members: readonly Member[]; records: readonly (ShardRecord | undefined)[] },
): Promise<{ said: Said; doubts: Doubts }> {
  await using closing = new AsyncDisposableStack();
  const calls = await openCalls(closing, { config, clusterId, members });
  const nodes = members.filter(({ role }) => role === 'metadata');
  const question = { kind: 'status', withinMs: ANSWER_MAX_MS } as const;
  const replies = await Promise.all(nodes.map(({ nodeId }) => askNode(calls, nodeId, question)));
  const said = new Map(
    nodes.flatMap(({ nodeId }, at) => {
      const reply = replies[at];
      return reply?.kind === 'done' ? [[nodeId, reply.value as ReplicaStatus[]] as const] : [];
    }),
  );
  const histories = await Promise.all(
    records.map((record, shard) => (record === undefined ? undefined : askHistory(calls, shard, record))),
  );
  return { said, doubts: new Map(histories.filter((history) => history !== undefined)) };
}

/** undefined: it is the first one, or confirmed, or nobody says. */
async function askHistory(
  calls: ShardCallPort,
  shard: number,
  { incarnation, primary }: ShardRecord,
): Promise<[number, HistoryRecord] | undefined> {
  if (incarnation === 1 || primary === null) return undefined;
  const question = { kind: 'query', envelope: { shard }, name: 'get-history', body: {} } as const;
  const signal = AbortSignal.timeout(ANSWER_MAX_MS);
  const reply = await calls
    .call(primary.nodeId, { ...question, budgetMs: ANSWER_MAX_MS }, signal)
    .catch(() => undefined);
  if (reply?.kind !== 'done') return undefined;
  const { history } = reply.value as ResultOf<'get-history'>;
  return history === null || history.confirmedAtMs !== undefined ? undefined : [shard, history];
}

function describe(shard: number, record: ShardRecord, said: Said): ShardStatus {
  const { incarnation, epoch, primary, voters, learners } = record;
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
    learners: learners.map(({ nodeId }) => nodeId),
    ...(leading?.verification && { verification: leading.verification }),
  };
}

function alarmsOfShards(
  shards: readonly ShardStatus[],
  said: Said,
  { shardCount, replicaCount }: ClusterIdentity,
): string[] {
  const alarms: string[] = [];
  const fewCount = shards.filter(({ voters }) => voters.length < replicaCount).length;
  if (fewCount > 0) alarms.push(`${fewCount} shards have fewer than ${replicaCount} voters`);
  if (shards.length < shardCount) alarms.push(`${shardCount - shards.length} shards have no nodes yet`);
  const unheard = new Map<NodeId, number>();
  for (const { shard, isOpen, voters, verification } of shards) {
    if (!isOpen) alarms.push(`shard ${shard} is not open`);
    const mismatchAtMs = verification?.mismatchAtMs ?? null;
    if (mismatchAtMs !== null)
      alarms.push(
        `shard ${shard}: its replicas were found to differ at ${timeText(mismatchAtMs)}: the log of its primary has \`state-differs\``,
      );
    for (const { nodeId, state, lag = 0 } of voters) {
      if (!said.has(nodeId)) unheard.set(nodeId, (unheard.get(nodeId) ?? 0) + 1);
      else if (state !== 'live') alarms.push(`shard ${shard}: the replica of ${short(nodeId)} is ${state}`);
      else if (lag > LAG_SHOWN_MIN) alarms.push(`shard ${shard}: ${short(nodeId)} lacks ${lag} entries`);
    }
  }
  // One line for a node, however many shards it has.
  for (const [nodeId, count] of unheard)
    alarms.push(`metadata node ${short(nodeId)} does not answer: a voter of ${count} shards`);
  for (const [nodeId, statuses] of said)
    if (statuses.some(({ isTimeBelieved }) => !isTimeBelieved))
      alarms.push(`the clock of ${short(nodeId)} differs from a majority`);
  return alarms;
}

/** R23: what the operator has to look after before all is as it was. */
function alarmsOfDisasters({
  said,
  doubts,
  shardCount,
}: {
  said: Said;
  doubts: Doubts;
  shardCount: number;
}): string[] {
  const alarms: string[] = [];
  for (const [nodeId, statuses] of said) {
    const behind = statuses.filter(({ isRegistryBehind }) => isRegistryBehind).map(({ shard }) => shard);
    if (behind.length > 0)
      alarms.push(
        `etcd is behind what ${short(nodeId)} has seen of shards ${behind.join(', ')}: stop the nodes and run \`holdfast cluster rebuild-coordination\``,
      );
    const given = statuses.filter(({ state }) => state === 'superseded').map(({ shard }) => shard);
    if (given.length > 0)
      alarms.push(
        `${short(nodeId)} has rows of histories that were given up, of shards ${given.join(', ')}: save what you want of them, then \`holdfast shard discard\``,
      );
  }
  for (const [shard, { assertedBy }] of doubts)
    alarms.push(
      `shard ${shard} was recovered and frees nothing: ${assertedBy.length} of ${shardCount} shards have told what they hold of it${assertedBy.length === shardCount ? ', `holdfast shard confirm` ends this' : ''}`,
    );
  return alarms;
}

/** Disks that chunks are placed on, and whose nodes are not there. */
function alarmsOfDisks(
  disks: readonly PlacedDisk[],
  members: readonly Member[],
  { chunkCopies }: ClusterIdentity,
): string[] {
  const nodeCount = new Set(disks.map(({ nodeId }) => nodeId)).size;
  const few =
    disks.length > 0 && nodeCount < chunkCopies
      ? [`chunks lie on ${nodeCount} storage nodes, and not on ${chunkCopies}`]
      : [];
  const present = new Set(members.flatMap((member) => member.disks.map(({ diskId }) => diskId)));
  const away = disks
    .filter(({ id }) => !present.has(id))
    .map(({ id, nodeId }) => `disk ${short(id)} of storage node ${short(nodeId)} is away`);
  return [...few, ...away];
}

const timeText = (timeMs: number) => `${new Date(timeMs).toISOString().slice(0, 19)}Z`;

export function printClusterStatus(status: ClusterStatus, print: (line: string) => void): void {
  print(`Cluster ${status.clusterId}`);
  print('');
  const members = status.members.map(({ nodeId, role, address, zone, version }) => [
    ...[short(nodeId), role, address, zone === nodeId ? '' : zone, version],
  ]);
  print(formatTable([['NODE', 'ROLE', 'ADDRESS', 'ZONE', 'VERSION'], ...members]));
  print('');
  const shards = status.shards.map(({ shard, epoch, primary, isOpen, voters, verification }) => [
    String(shard),
    String(epoch),
    primary === undefined ? '' : short(primary),
    isOpen ? 'open' : 'not open',
    voters.map(describeVoter).join(', '),
    describePass(verification),
  ]);
  print(formatTable([['SHARD', 'EPOCH', 'PRIMARY', 'STATE', 'VOTERS', 'COMPARED'], ...shards]));
  print('');
  if (status.alarms.length === 0) print('No alarms.');
  for (const alarm of status.alarms) print(`ALARM ${alarm}`);
}

/** When all of it was last compared. */
function describePass(verification: VerificationStatus | undefined): string {
  const { lastPass = null } = verification ?? {};
  if (lastPass === null) return '';
  return `${timeText(lastPass.endedAtMs)}${lastPass.partialCount > 0 ? ' in part' : ''}`;
}

function describeVoter({ nodeId, state, lag }: VoterStatus): string {
  const words = [short(nodeId), ...(state === 'live' ? [] : [state]), ...(lag ? [`-${lag}`] : [])];
  return words.join(' ');
}
