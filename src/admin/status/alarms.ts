// What is wrong, in sentences: one table of rules over what is known of a cluster, and one over what a single node knows of
// itself. Pure. To add an alarm, add a row. Alerts for Prometheus that say the same are in deploy/prometheus/alerts.yaml.

import { areEnough, neededCopies, nodeCountOf } from '../../chunks/copies/write-needs.ts';
import { chunkRoomOf, isFull, type Room } from '../../chunks/disk/disk-reserve.ts';
import { countOwnerNodes, isMissed } from '../../chunks/placement/disk-states.ts';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatId,
  formatPlace,
  formatTime,
} from '../../cli/format.ts';
import { countUnsettled } from '../../coordination/unsettled-shards.ts';
import type { NodeId } from '../../ports/replication.ts';
import { LIMITS } from '../../types/limits.ts';
import type { NamedDamage, UnnamedDamage } from '../../types/named-damage.ts';
import { type ClusterFacts, type DiskStatus, unservedDisks } from './cluster-status.ts';
import type { ServerFacts } from './server-status.ts';

/** Entries behind that are worth a word. */
export const LAG_SHOWN_MIN = 1000;
/** A change of owners that takes longer does not go on, or its disks are too slow. */
export const PENDING_LONG_MS = 6 * 3600 * 1000;

export interface AlarmRule<Facts> {
  /** For people who read the table. */
  readonly name: string;
  /** One sentence for each thing that is wrong. */
  readonly find: (facts: Facts) => readonly string[];
}

/** In the order of the rules. Empty: nothing is wrong. */
export function alarmsOf<Facts>(rules: readonly AlarmRule<Facts>[], facts: Facts): string[] {
  return rules.flatMap(({ find }) => find(facts));
}

// ---- of a cluster ----

export const CLUSTER_ALARMS: readonly AlarmRule<ClusterFacts>[] = [
  {
    name: 'etcd does not answer',
    find: ({ whyAway, knownAtMs = 0 }) =>
      whyAway === undefined
        ? []
        : [`${whyAway}: members and voters are shown as they were at ${formatTime(knownAtMs)}`],
  },
  {
    // It may be this machine that is wrong: its secret, its certificate, its network.
    name: 'no metadata node is reached',
    find: ({ replicas, unreached }) =>
      replicas.size > 0 ? [] : unreached.map((why) => `no metadata node is reached from here: ${why}`),
  },
  {
    // A gateway that is stopped leaves the list; one that is killed, or cut off, is missed.
    name: 'gateways are missed',
    find: ({ missingGateways }) =>
      missingGateways.map(
        ({ nodeId, instance = '' }) =>
          `gateway ${formatId(nodeId)} (${instance}) does not run, and was not stopped: start it again, or \`holdfast cluster remove ${formatId(nodeId)}\` it`,
      ),
  },
  { name: 'shards lack nodes or voters, change them, or have two in one zone', find: findUnsettled },
  { name: 'a shard is not open, or its replicas differ, are not live or lack entries', find: findInShards },
  { name: 'metadata nodes do not answer', find: findSilentNodes },
  {
    name: 'clocks differ',
    find: ({ replicas }) =>
      [...replicas]
        .filter(([, statuses]) => statuses.some(({ isTimeBelieved }) => !isTimeBelieved))
        .map(([nodeId]) => `the clock of ${formatId(nodeId)} differs from a majority`),
  },
  { name: 'metadata nodes cannot leave', find: findLeaving },
  { name: 'chunks lack copies', find: findLackingCopies },
  { name: 'a change of owners is not carried out', find: findPendingChange },
  { name: 'disks are missed', find: whileEtcdAnswers(findMissedDisks) },
  { name: 'new chunks are refused', find: whileEtcdAnswers(findRefusedWrites) },
  { name: 'a node does not serve its disks', find: whileEtcdAnswers(findUnserved) },
  { name: 'a disk is full or has damaged chunks', find: ({ disks }) => disks.flatMap(alarmsOfUse) },
  { name: 'etcd is behind, or histories were given up', find: findAfterDisasters },
  {
    name: 'a recovered shard is not confirmed',
    find: ({ unconfirmed, identity: { shardCount } }) =>
      [...unconfirmed].map(
        ([shard, { assertedBy }]) =>
          `shard ${shard} was recovered and frees nothing: ${assertedBy.length} of ${shardCount} shards have reported what they hold of it${assertedBy.length === shardCount ? ', `holdfast shard confirm` ends this' : ''}`,
      ),
  },
];

/** Which nodes are there only etcd knows. */
function whileEtcdAnswers(find: AlarmRule<ClusterFacts>['find']): AlarmRule<ClusterFacts>['find'] {
  return (facts) => (facts.whyAway === undefined ? find(facts) : []);
}

function findUnsettled({ shards, identity, zones, ...facts }: ClusterFacts): string[] {
  const { replicaCount } = identity;
  const staying = stayingNodes(facts);
  const { nodeless, fewVoters, changing, crowded } = countUnsettled(shards, { ...identity, zones, staying });
  return [
    ...(fewVoters > 0 ? [`${fewVoters} shards have fewer than ${replicaCount} voters`] : []),
    ...(nodeless > 0 ? [`${nodeless} shards have no nodes yet`] : []),
    ...(changing > 0 ? [`${changing} shards change their voters: those of before are still needed`] : []),
    ...(crowded > 0
      ? [
          `${crowded} shards have two voters in one zone though another zone has none: a voter moves once all of the shard are there`,
        ]
      : []),
  ];
}

/** The metadata nodes that may hold shards. */
function stayingNodes({ members, leavingNodes }: Pick<ClusterFacts, 'members' | 'leavingNodes'>): NodeId[] {
  const leaving = new Set(leavingNodes.map(({ nodeId }) => nodeId));
  return members.flatMap(({ role, nodeId }) => (role === 'metadata' && !leaving.has(nodeId) ? [nodeId] : []));
}

function findInShards({ shards, replicas }: ClusterFacts): string[] {
  const alarms: string[] = [];
  for (const { shard, isOpen, voters, verification } of shards) {
    if (!isOpen) alarms.push(`shard ${shard} is not open`);
    const mismatchAtMs = verification?.mismatchAtMs ?? null;
    if (mismatchAtMs !== null)
      alarms.push(
        `shard ${shard}: its replicas were found to differ at ${formatTime(mismatchAtMs)}: the log of its primary has \`state-differs\``,
      );
    for (const { nodeId, state, lag = 0 } of voters) {
      if (!replicas.has(nodeId)) continue;
      if (state !== 'live') alarms.push(`shard ${shard}: the replica of ${formatId(nodeId)} is ${state}`);
      else if (lag > LAG_SHOWN_MIN) alarms.push(`shard ${shard}: ${formatId(nodeId)} lacks ${lag} entries`);
    }
  }
  return alarms;
}

/** One line for a node, however many shards it has. That a removed one does not answer is no news. */
function findSilentNodes({ shards, replicas, leavingNodes }: ClusterFacts): string[] {
  const gone = new Set(leavingNodes.flatMap(({ nodeId, leave }) => (leave === 'gone' ? [nodeId] : [])));
  const counts = new Map<NodeId, number>();
  for (const { nodeId } of shards.flatMap(({ voters }) => voters))
    if (!replicas.has(nodeId) && !gone.has(nodeId)) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  return [...counts].map(
    ([nodeId, count]) => `metadata node ${formatId(nodeId)} does not answer: a voter of ${count} shards`,
  );
}

/** Shards that wait for another voter, and nobody who could be one. */
function findLeaving({ leavingNodes, members, identity: { replicaCount } }: ClusterFacts): string[] {
  const gone = leavingNodes.filter(({ leave, voterCount }) => leave === 'gone' && voterCount > 0);
  const alarms = gone.map(
    ({ nodeId, voterCount }) =>
      `metadata node ${formatId(nodeId)} is removed: ${voterCount} shards wait for another voter`,
  );
  const stayingCount = stayingNodes({ members, leavingNodes }).length;
  if (stayingCount < replicaCount && leavingNodes.some(({ voterCount }) => voterCount > 0))
    alarms.push(
      `shards cannot leave metadata nodes that are drained or removed: ${stayingCount} others are there, and ${replicaCount} are needed`,
    );
  return alarms;
}

function findLackingCopies({ repair, damage, identity: { chunkCopies } }: ClusterFacts): string[] {
  return repair.debts.flatMap(({ copies, blobCount, chunkCount }) => {
    const what = `${formatCount(chunkCount)} chunks of ${formatCount(blobCount)} blobs`;
    if (copies === 0) return [`of ${what} no intact copy is found: ${describeDamage(damage)}`];
    return copies === 1 && chunkCopies > 1 ? [`of ${what} one copy may be left, and no more`] : [];
  });
}

const WHY_UNNAMED: Record<UnnamedDamage['why'], string> = {
  'looked-for': 'its objects are looked for',
  'not-used': 'no object was found that uses it',
  'shard-silent': 'a shard that may use it does not answer',
};

/** As fsck writes it: keys may hold anything. */
function describeDamage({ objects, unnamed, blobCount }: NamedDamage): string {
  const named = objects.map(({ blob: _blob, ...place }) => formatPlace(place));
  const others = unnamed.map(({ blob, why }) => `blob=${JSON.stringify(blob)} (${WHY_UNNAMED[why]})`);
  const moreCount = blobCount - new Set([...objects, ...unnamed].map(({ blob }) => blob)).size;
  const all = [...named, ...others];
  if (all.length === 0) return `their objects are looked for, \`holdfast fsck --read-data\` names all`;
  const more = moreCount > 0 ? `, and ${formatCount(moreCount)} more blobs` : '';
  return `${all.join(', ')}${more}: \`holdfast fsck --read-data\` names all`;
}

function findPendingChange({ placement, nowMs, identity: { shardCount } }: ClusterFacts): string[] {
  if (placement === undefined) return [];
  const { pendingCount, audits, auditFrom } = placement;
  const { beganAtMs, doneCount, unansweredCount } = audits;
  if (pendingCount === 0) {
    // A disk that has joined the owners has replaced nobody: that it lacks everything is known by the audit alone.
    const leftCount = shardCount - doneCount - unansweredCount;
    if (leftCount <= 0) return [];
    return [
      `${leftCount} of ${shardCount} shards have not looked yet whether chunks have the copies that placement map ${auditFrom} wants`,
    ];
  }
  if (beganAtMs === undefined || nowMs - beganAtMs < PENDING_LONG_MS) return [];
  const hours = Math.floor((nowMs - beganAtMs) / 3_600_000);
  return [
    `the placement map of version ${auditFrom} is not carried out after ${hours} h: ${formatCount(pendingCount)} partitions still have former owners`,
  ];
}

/** Disks that chunks are placed on, and that nobody serves. */
function findMissedDisks({ disks, identity: { chunkCopies } }: ClusterFacts): string[] {
  const nodeCount = countOwnerNodes(disks);
  const few =
    nodeCount > 0 && nodeCount < chunkCopies
      ? [`chunks lie on ${nodeCount} storage nodes, and not on ${chunkCopies}`]
      : [];
  return [
    ...few,
    ...disks.flatMap((disk) => {
      const { state, leave, reason } = disk;
      const name = nameOf(disk);
      if (!isMissed(disk)) return [];
      if (state === 'silent') return [`${name} does not answer`];
      if (state !== 'away') return [];
      const why = reason === undefined ? '' : ` (${reason})`;
      return [`${name} is away${why}${leave === 'absent' ? ': its data is being copied to others' : ''}`];
    }),
  ];
}

/** Too few disks, or nodes, that take new chunks for any to be acknowledged (R35). */
function findRefusedWrites({ disks, placement }: ClusterFacts): string[] {
  if (placement === undefined) return [];
  const placed = disks.filter(({ state }) => state !== 'new' && state !== 'removed');
  if (placed.length === 0) return ['new chunks are refused: there is no disk to place them on'];
  const needed = neededCopies(placed, placement.copies);
  const taking = placed.filter((disk) => whyNotWritten(disk) === undefined);
  if (areEnough(taking, needed)) return [];
  const nodeCount = nodeCountOf(taking);
  const lack =
    nodeCount < needed.nodes
      ? `of ${needed.nodes} storage nodes that they need ${nodeCount} takes them`
      : `of ${needed.copies} disks that they need ${taking.length} takes them`;
  const reasonsOf = new Map<NodeId, Set<string>>();
  for (const disk of placed) {
    const why = whyNotWritten(disk);
    if (why !== undefined) reasonsOf.set(disk.nodeId, (reasonsOf.get(disk.nodeId) ?? new Set()).add(why));
  }
  const reasons = [...reasonsOf].map(([nodeId, whys]) => `${formatId(nodeId)} ${[...whys].join(' and ')}`);
  return [`new chunks are refused: ${lack} (${reasons.join(', ')})`];
}

/** Why a disk of the map takes no new chunks. */
function whyNotWritten({ state, usage }: DiskStatus): string | undefined {
  if (state === 'away') return 'is away';
  if (usage === undefined) return 'does not answer';
  return isFull(usage) ? 'is full' : undefined;
}

/** Disks that their nodes are to serve and do not, unless that is said already. */
function findUnserved({ members, disks }: ClusterFacts): string[] {
  const reported = new Set(
    disks.filter((disk) => disk.state === 'away' && isMissed(disk)).map(({ diskId }) => diskId),
  );
  return unservedDisks(members)
    .filter(({ diskId }) => diskId === undefined || !reported.has(diskId))
    .map(({ nodeId, name, reason }) => `storage node ${formatId(nodeId)} does not serve ${name}: ${reason}`);
}

function alarmsOfUse(disk: DiskStatus): string[] {
  const { usage } = disk;
  if (usage === undefined) return [];
  const { quarantinedCount = 0, unreadCount = 0 } = usage;
  const alarms = alarmsOfRoom(nameOf(disk), chunkRoomOf(usage));
  if (quarantinedCount > 0)
    alarms.push(
      `${nameOf(disk)} has ${formatCount(quarantinedCount)} damaged copies in quarantine: each goes once two intact ones are verified, that of a deleted object a day after its upload`,
    );
  if (unreadCount > 0) alarms.push(`${nameOf(disk)} cannot read ${formatCount(unreadCount)} of its chunks`);
  return alarms;
}

const nameOf = ({ diskId, nodeId }: DiskStatus) =>
  `disk ${formatId(diskId)} of storage node ${formatId(nodeId)}`;

/** R23: what the operator has to look after before all is as it was. */
function findAfterDisasters({ replicas }: ClusterFacts): string[] {
  const alarms: string[] = [];
  for (const [nodeId, statuses] of replicas) {
    const behind = statuses.filter(({ isRegistryBehind }) => isRegistryBehind).map(({ shard }) => shard);
    if (behind.length > 0)
      alarms.push(
        `etcd is behind what ${formatId(nodeId)} has seen of shards ${behind.join(', ')}: stop the nodes and run \`holdfast cluster rebuild-coordination\``,
      );
    const given = statuses.filter(({ state }) => state === 'superseded').map(({ shard }) => shard);
    if (given.length > 0)
      alarms.push(
        `${formatId(nodeId)} has rows of histories that were given up, of shards ${given.join(', ')}: save what you want of them, then \`holdfast shard discard\``,
      );
  }
  return alarms;
}

// ---- of a single node ----

/** What a single node knows of itself that may be wrong. */
export type ServerState = Pick<ServerFacts, 'clockJumpMs' | 'loopHeldMs'> &
  Pick<NonNullable<ServerFacts['own']>, 'damagedCount' | 'missingCount' | 'damage'> & { room: Room };

export const SERVER_ALARMS: readonly AlarmRule<ServerState>[] = [
  { name: 'the disk is full', find: ({ room }) => alarmsOfRoom('the disk of the data folder', room) },
  {
    name: 'chunks are lost',
    find({ damagedCount, missingCount, damage }) {
      const lost = [
        ...(damagedCount > 0 ? [`${formatCount(damagedCount)} chunks are damaged`] : []),
        ...(missingCount > 0 ? [`${formatCount(missingCount)} chunks are missing`] : []),
      ];
      return lost.length === 0 ? [] : [`${lost.join(', ')}: ${describeDamage(damage)}`];
    },
  },
  {
    name: 'the clock has jumped',
    find: ({ clockJumpMs }) =>
      clockJumpMs === 0
        ? []
        : [
            `the clock has jumped by ${formatDuration(clockJumpMs)}: \`holdfast clock accept\` says that the time is right`,
          ],
  },
  {
    name: 'the event loop stood still',
    find: ({ loopHeldMs }) =>
      loopHeldMs === 0
        ? []
        : [
            `nothing was served for ${formatDuration(loopHeldMs)} within the last ${formatDuration(LIMITS.loopHeldShownMs)}: the machine has too much to do, or one piece of work kept the server (event-loop-held in the log)`,
          ],
  },
];

/** The same sentences for a single node and for the disks of a storage node. */
function alarmsOfRoom(name: string, { state, freeBytes, fullBelowBytes }: Room): string[] {
  if (state === 'full') return [`${name} is full: it has ${formatBytes(freeBytes)} and takes no new chunks`];
  if (state === 'ok') return [];
  return [`${name} is nearly full: ${formatBytes(freeBytes - fullBelowBytes)} are left`];
}
