// The gauges that each process reports of itself: one table of rules for each thing that it knows. What the names mean is
// in the catalogue (src/platform/telemetry/prom-telemetry.ts), which docs/metrics.md lists; counters and histograms are
// counted where they happen. To add a gauge, add a row to the catalogue and one here.

import { within } from '../../base/async/within.ts';
import type { ReplicatedChunks } from '../../chunks/copies/replicated-chunks.ts';
import { areEnough, neededCopies, nodeCountOf } from '../../chunks/copies/write-needs.ts';
import { isFull, type Room, roomOf } from '../../chunks/disk/disk-reserve.ts';
import { countOwnerNodes, type DiskState, isMissed } from '../../chunks/placement/disk-states.ts';
import { servedDisks } from '../../chunks/placement/placement.ts';
import type { ShardsSeen } from '../../coordination/place-shards.ts';
import type { MetadataNode } from '../../metadata/replication/metadata-node.ts';
import type { METRICS, PromTelemetry } from '../../platform/telemetry/prom-telemetry.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { DiskReservePort } from '../../ports/disk-reserve.ts';
import type { Member } from '../../ports/members.ts';
import type { ResultOf } from '../../ports/metadata/port.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import type { ReplicaStatus } from '../../ports/shard-calls.ts';
import type { Figure, TelemetryPort } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { JOB_KINDS, JOB_STATES } from '../../types/records/job-record.ts';
import type { AuditRecord, HistoryRecord } from '../../types/records/rows.ts';
import { describeAudits } from './cluster-status.ts';
import type { ServerFacts } from './server-status.ts';

/** undefined: it is not known, and not reported. With labels: all figures of the gauge. */
type GaugeValue = number | undefined | readonly Figure[];

/** The name of a gauge, and what it is by what is known. */
export type MetricRules<Facts> = { readonly [Name in keyof typeof METRICS]?: (facts: Facts) => GaugeValue };

export function report<Facts>(telemetry: TelemetryPort, rules: MetricRules<Facts>, facts: Facts): void {
  for (const [name, figuresOf] of Object.entries(rules)) {
    const value = figuresOf(facts);
    telemetry.gaugeAll(
      name,
      typeof value === 'object' ? value : value === undefined ? [] : [{ value: value }],
    );
  }
}

/** Figures with one label, by its values. */
function labelled(label: string, counts: Readonly<Record<string, number>>): Figure[] {
  return Object.entries(counts).map(([key, value]) => ({ value, labels: { [label]: key } }));
}

function countsOf<Value extends string>(
  values: readonly Value[],
  count: (value: Value) => number,
): Record<string, number> {
  return Object.fromEntries(values.map((value) => [value, count(value)]));
}

// ---- the file system of the data folder of a process ----

/** undefined: it does not answer. */
export const ROOM_METRICS: MetricRules<Room | undefined> = {
  holdfast_disk_free_bytes: (room) => room?.freeBytes,
  holdfast_disk_bytes: (room) => room?.totalBytes,
  holdfast_disk_full_below_bytes: (room) => room?.fullBelowBytes,
  holdfast_disk_scarce_below_bytes: (room) => room?.scarceBelowBytes,
};

/** A drive that hangs must not hold up the other figures. */
const ROOM_ANSWER_MAX_MS = 3000;

/** Of a metadata node. */
export function measureRoom(
  telemetry: PromTelemetry,
  { reserve, clock }: { reserve: Pick<DiskReservePort, 'measure'>; clock: ClockPort },
): void {
  telemetry.onScrape(async () => {
    const space = await within(reserve.measure(), ROOM_ANSWER_MAX_MS, clock).catch(() => undefined);
    report(telemetry, ROOM_METRICS, space && roomOf(space, { holdsChunks: false }));
  });
}

// ---- replicas of a metadata node ----

const ROLES = ['primary', 'follower', 'candidate', 'opening'] as const;
const STATES = ['live', 'installing', 'quarantined', 'removed', 'superseded'] as const;

type Replicas = readonly ReplicaStatus[];
const ledAmong = (replicas: Replicas) => replicas.filter(({ role }) => role === 'primary');
const lagsOf = (replicas: Replicas) => ledAmong(replicas).flatMap(({ lags }) => lags.map(({ lag }) => lag));
const knownLags = (replicas: Replicas) => lagsOf(replicas).filter((lag) => lag !== undefined);
const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

export const REPLICA_METRICS: MetricRules<Replicas> = {
  holdfast_shards(replicas) {
    const live = replicas.filter(({ state }) => state === 'live');
    return labelled(
      'role',
      countsOf(ROLES, (role) => live.filter((replica) => replica.role === role).length),
    );
  },
  holdfast_replicas: (replicas) =>
    labelled(
      'state',
      countsOf(STATES, (state) => replicas.filter((replica) => replica.state === state).length),
    ),
  holdfast_replica_lag_entries: (replicas) => sumOf(knownLags(replicas)),
  holdfast_replica_lag_entries_max: (replicas) =>
    knownLags(replicas).reduce((max, lag) => Math.max(max, lag), 0),
  holdfast_replicas_unheard: (replicas) => lagsOf(replicas).length - knownLags(replicas).length,
  holdfast_replica_unapplied_entries: (replicas) =>
    sumOf(replicas.map(({ lastSeq, appliedSeq }) => Math.max(0, lastSeq - appliedSeq))),
  holdfast_shards_behind_registry: (replicas) =>
    replicas.filter(({ isRegistryBehind }) => isRegistryBehind).length,
  holdfast_shards_with_doubted_clock: (replicas) =>
    ledAmong(replicas).filter(({ isTimeBelieved }) => !isTimeBelieved).length,
  holdfast_shards_with_differing_replicas: (replicas) =>
    ledAmong(replicas).filter(({ verification }) => (verification?.mismatchAtMs ?? null) !== null).length,
  // Of shards that are led here (R22): the oldest comparison, when there is one of each.
  holdfast_shards_compared_timestamp_seconds(replicas) {
    const ends = ledAmong(replicas).map(({ verification }) => verification?.lastPass?.endedAtMs);
    const isKnown = ends.length > 0 && !ends.includes(undefined);
    return isKnown ? Math.min(...ends.map((endedAtMs = 0) => endedAtMs)) / 1000 : undefined;
  },
};

export function measureReplicas(telemetry: PromTelemetry, read: () => Replicas): void {
  telemetry.onScrape(async () => report(telemetry, REPLICA_METRICS, read()));
}

// ---- what the node that places shards sees of them ----

/** undefined: another one places them. */
export const SHARD_METRICS: MetricRules<ShardsSeen | undefined> = {
  holdfast_leaving_voters: (seen) => labelled('leave', { ...seen?.leavingVoters }),
  holdfast_unsettled_shards(seen) {
    if (seen === undefined) return [];
    const { nodeless, fewVoters, ...others } = seen.unsettled;
    return labelled('why', { 'no-nodes': nodeless, 'few-voters': fewVoters, ...others });
  },
  holdfast_lacking_metadata_nodes: (seen) => seen?.lackingNodeCount,
};

// ---- what the node that places disks sees of them ----

/** undefined: another one places them. */
export const DISK_METRICS: MetricRules<readonly DiskState[] | undefined> = {
  holdfast_disk_state: (seen = []) =>
    seen.map(({ disk: { id: disk, nodeId: node, leave = 'staying' }, state }) => ({
      value: 1,
      labels: { disk, node, state, leave },
    })),
  holdfast_disk_capacity_bytes: (seen = []) =>
    seen.map(({ disk: { id: disk, capacityBytes } }) => ({ value: capacityBytes, labels: { disk } })),
  holdfast_disk_partitions: (seen = []) =>
    seen.flatMap(({ disk: { id: disk }, ownedCount, pendingCount }) => [
      { value: ownedCount, labels: { disk, hold: 'owned' } },
      { value: pendingCount, labels: { disk, hold: 'pending' } },
    ]),
  holdfast_missed_disks: (seen) =>
    seen?.filter(({ disk, state, ...held }) => state === 'away' && isMissed({ ...disk, ...held })).length,
  holdfast_placement_owner_nodes: (seen) =>
    seen && countOwnerNodes(seen.map(({ disk, ...held }) => ({ ...disk, ...held }))),
};

// ---- where chunks lie, as a metadata node knows it ----

const LEAVES = ['staying', 'draining', 'absent'] as const;

export const PLACEMENT_METRICS: MetricRules<PlacementMap> = {
  holdfast_placement_version: ({ version }) => version,
  holdfast_placement_audit_from: ({ auditFrom }) => auditFrom,
  holdfast_placement_copies: ({ copies }) => copies,
  holdfast_placement_pending_partitions: ({ previous }) => previous.filter(({ length }) => length > 0).length,
  holdfast_placement_disks: ({ disks }) =>
    labelled(
      'leave',
      countsOf(LEAVES, (leave) => disks.filter((disk) => (disk.leave ?? 'staying') === leave).length),
    ),
};

export function measurePlacement(telemetry: PromTelemetry, read: () => PlacementMap): void {
  telemetry.onScrape(async () => report(telemetry, PLACEMENT_METRICS, read()));
}

/** Disks that a node serves, and that did not answer when repair, audits or the hearing of damage last asked them. */
export function measureSilentDisks(
  telemetry: PromTelemetry,
  read: { silent(): readonly DiskId[]; members(): readonly Member[] },
): void {
  telemetry.onScrape(async () => {
    const served = servedDisks(read.members());
    telemetry.gauge('holdfast_silent_disks', read.silent().filter((disk) => served.has(disk)).length);
  });
}

/** What the shards that are led here say. A shard that does not say just now is left out, and counted as that. */
interface ShardAnswers {
  placement: PlacementMap;
  audits: readonly ({ audit: AuditRecord | null } | undefined)[];
  /** Of those that are not of the first history, which has nothing to confirm (R23). */
  histories: readonly ({ history: HistoryRecord | null } | undefined)[];
}

const answeredAudits = ({ audits }: ShardAnswers) => audits.filter((answer) => answer !== undefined);
const auditsOf = (answers: ShardAnswers) =>
  describeAudits(answeredAudits(answers), answers.placement.auditFrom);

export const AUDIT_METRICS: MetricRules<ShardAnswers> = {
  holdfast_audited_placement_version: (answers) =>
    answeredAudits(answers).length > 0 ? (auditsOf(answers).leastVersion ?? 0) : undefined,
  holdfast_audits_under_way: (answers) => auditsOf(answers).underWayCount,
  holdfast_audits_awaited: (answers) =>
    answers.placement.version > 0 ? answeredAudits(answers).length - auditsOf(answers).doneCount : undefined,
  holdfast_shards_unconfirmed: ({ histories }) =>
    histories.filter((answer) => {
      const history = answer?.history ?? null;
      return history !== null && history.confirmedAtMs === undefined;
    }).length,
};

type Node = Pick<MetadataNode, 'status' | 'replica'>;

export function measureAudits(
  telemetry: PromTelemetry,
  { node, placement }: { node: Node; placement: () => PlacementMap },
): void {
  telemetry.onScrape(async () => {
    const led = ledAmong(node.status());
    const doubtful = led.filter(({ incarnation }) => incarnation > 1);
    const [audits, histories] = await Promise.all([
      Promise.all(led.map(({ shard }) => ask(node, shard, 'get-audit'))),
      Promise.all(doubtful.map(({ shard }) => ask(node, shard, 'get-history'))),
    ]);
    report(telemetry, AUDIT_METRICS, { placement: placement(), audits, histories });
    // One by one: watch-repairs.ts reports another question.
    for (const [question, answers] of Object.entries({ audit: audits, history: histories })) {
      const silentCount = answers.filter((answer) => answer === undefined).length;
      telemetry.gauge('holdfast_shards_unanswered', silentCount, { question });
    }
  });
}

async function ask<Name extends 'get-audit' | 'get-history'>(
  node: Node,
  shard: number,
  name: Name,
): Promise<ResultOf<Name> | undefined> {
  const reply = await node
    .replica(shard)
    ?.query({ shard }, name, {})
    ?.catch(() => undefined);
  return reply?.kind === 'done' ? (reply.value as ResultOf<Name>) : undefined;
}

// ---- whether new chunks can be stored, as a gateway finds it ----

interface WritingFacts {
  placement: PlacementMap;
  /** Disks of the map that take new chunks. */
  taking: readonly PlacedDisk[];
}

export const WRITING_METRICS: MetricRules<WritingFacts> = {
  holdfast_chunk_writes_refused: ({ placement: { version, disks, copies }, taking }) =>
    version > 0 ? Number(!areEnough(taking, neededCopies(disks, copies))) : undefined,
  holdfast_chunk_taking_nodes: ({ placement: { version }, taking }) =>
    version > 0 ? nodeCountOf(taking) : undefined,
};

/**
 * Of each disk of the map what writes have found of late, for it may say what it holds while its drive hangs in writes, or say
 * nothing soon because it takes so many; else what it says when it is asked.
 */
export function measureWriting(
  telemetry: PromTelemetry,
  parts: {
    placement: () => PlacementMap;
    takesWrites: ReplicatedChunks['takesWrites'];
    directory: DiskDirectory;
    clock: Pick<ClockPort, 'sleep'>;
  },
): void {
  const { takesWrites, directory, clock } = parts;
  const takes = async (disk: PlacedDisk) => {
    const known = takesWrites(disk);
    if (known !== undefined) return known;
    const asked = (async () => directory.chunksOf(disk).usage())();
    const usage = await within(asked, LIMITS.usageAnswerMaxMs, clock).catch(() => undefined);
    return usage !== undefined && !isFull(usage);
  };
  telemetry.onScrape(async () => {
    const placement = parts.placement();
    const found = await Promise.all(placement.disks.map(takes));
    const taking = placement.disks.filter((_, at) => found[at]);
    report(telemetry, WRITING_METRICS, { placement, taking });
  });
}

// ---- a process that serves clients ----

export const SERVER_METRICS: MetricRules<ServerFacts> = {
  holdfast_objects: ({ objectCount }) => objectCount,
  holdfast_object_bytes: ({ objectBytes }) => objectBytes,
  holdfast_buckets: ({ bucketCount }) => bucketCount,
  holdfast_jobs: ({ jobCounts }) =>
    JOB_KINDS.flatMap((kind) =>
      JOB_STATES.map((state) => ({
        value: jobCounts.get(`${kind} ${state}`) ?? 0,
        labels: { kind, state },
      })),
    ),
  holdfast_chunks: ({ stored }) => stored?.chunkCount,
  holdfast_chunk_bytes: ({ stored }) => stored?.liveBytes,
  holdfast_pending_reclaim_bytes: ({ pendingReclaimBytes }) => pendingReclaimBytes,
};

/** All disks of a cluster, as a gateway sees them. */
export const ALL_DISKS_METRICS: MetricRules<ServerFacts> = {
  holdfast_disk_free_bytes: ({ stored }) => stored?.diskFreeBytes,
  holdfast_disk_bytes: ({ stored }) => stored?.diskTotalBytes,
};

export const OWN_DISK_METRICS: MetricRules<
  NonNullable<ServerFacts['own']> & Pick<NonNullable<ServerFacts['stored']>, 'largeWrites'>
> = {
  holdfast_disk_direct_writes: ({ largeWrites }) => largeWrites && Number(largeWrites === 'direct'),
  holdfast_lost_chunks: ({ lostCount }) => lostCount,
  holdfast_disk_scrub_progress_ratio: ({ scrub }) => scrub.share,
  holdfast_disk_scrub_found_chunks: ({ scrub }) => scrub.foundCount,
  holdfast_disk_scrub_ended_timestamp_seconds: ({ scrub: { endedAtMs } }) =>
    endedAtMs === undefined ? undefined : endedAtMs / 1000,
};
