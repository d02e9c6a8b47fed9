// What a metadata node tells at its own address (health.listen): whether it is ready, and gauges.

import { within } from '../base/async/within.ts';
import { roomOf } from '../chunks/disk/disk-reserve.ts';
import type { ShardsSeen } from '../coordination/place-shards.ts';
import { gaugeIfKnown, type PromTelemetry } from '../platform/telemetry/prom-telemetry.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { DiskReservePort } from '../ports/disk-reserve.ts';
import type { ReplicaStatus } from '../ports/shard-calls.ts';
import { measureFolderRoom } from './room-report.ts';

/** A drive that hangs must not hold up the other figures. */
const ROOM_ANSWER_MAX_MS = 3000;
const ROLES: readonly ReplicaStatus['role'][] = ['primary', 'follower', 'candidate', 'opening'];
const STATES: readonly ReplicaStatus['state'][] = [
  ...(['live', 'installing', 'quarantined', 'removed', 'superseded'] as const),
];

/**
 * Each replica that the node is to hold leads its shard or follows one that does. One without any shards is ready: it waits
 * for some. What was taken from it, and what was given up (R23), does not count.
 */
export function isMetadataReady(statuses: readonly ReplicaStatus[]): boolean {
  return statuses.every(({ state, role, primary, isRegistryBehind }) => {
    if (state === 'removed' || state === 'superseded') return true;
    if (state !== 'live' || isRegistryBehind) return false;
    return role === 'primary' || (role === 'follower' && primary !== undefined);
  });
}

export function measureReplicas(telemetry: PromTelemetry, read: () => readonly ReplicaStatus[]): void {
  telemetry.onScrape(async () => {
    const statuses = read();
    const countOf = (test: (status: ReplicaStatus) => boolean) => statuses.filter(test).length;
    for (const role of ROLES)
      telemetry.gauge(
        'holdfast_shards',
        countOf((status) => status.state === 'live' && status.role === role),
        { role },
      );
    for (const state of STATES)
      telemetry.gauge(
        'holdfast_replicas',
        countOf((status) => status.state === state),
        { state },
      );
    const lags = statuses.flatMap((status) => (status.role === 'primary' ? status.lags : []));
    const heard = lags.flatMap(({ lag }) => (lag === undefined ? [] : [lag]));
    telemetry.gauge(
      'holdfast_replica_lag_entries',
      heard.reduce((sum, lag) => sum + lag, 0),
    );
    telemetry.gauge(
      'holdfast_replica_lag_entries_max',
      heard.reduce((max, lag) => Math.max(max, lag), 0),
    );
    telemetry.gauge('holdfast_replicas_unheard', lags.length - heard.length);
    telemetry.gauge(
      'holdfast_replica_unapplied_entries',
      statuses.reduce((sum, { lastSeq, appliedSeq }) => sum + Math.max(0, lastSeq - appliedSeq), 0),
    );
    telemetry.gauge(
      'holdfast_shards_behind_registry',
      countOf(({ isRegistryBehind }) => isRegistryBehind),
    );
    telemetry.gauge(
      'holdfast_shards_with_doubted_clock',
      countOf(({ role, isTimeBelieved }) => role === 'primary' && !isTimeBelieved),
    );
    measureComparisons(
      telemetry,
      statuses.filter(({ role }) => role === 'primary'),
    );
  });
}

/** Of the file system of its data folder. */
export function measureRoom(
  telemetry: PromTelemetry,
  { reserve, clock }: { reserve: Pick<DiskReservePort, 'measure'>; clock: ClockPort },
): void {
  telemetry.onScrape(async () => {
    const space = await within(reserve.measure(), ROOM_ANSWER_MAX_MS, clock).catch(() => undefined);
    measureFolderRoom(telemetry, space && roomOf(space, { holdsChunks: false }));
  });
}

/** Of shards that are led here (R22). */
function measureComparisons(telemetry: PromTelemetry, led: readonly ReplicaStatus[]): void {
  const differing = led.filter(({ verification }) => (verification?.mismatchAtMs ?? null) !== null);
  telemetry.gauge('holdfast_shards_with_differing_replicas', differing.length);
  const ends = led.map(({ verification }) => verification?.lastPass?.endedAtMs);
  const isKnown = ends.length > 0 && !ends.includes(undefined);
  const oldestMs = Math.min(...ends.map((endedAtMs = 0) => endedAtMs));
  const oldest = isKnown ? oldestMs / 1000 : undefined;
  gaugeIfKnown(telemetry, 'holdfast_shards_compared_timestamp_seconds', oldest);
}

/** By who places shards; undefined: another one does. */
export function measureShards(telemetry: PromTelemetry, seen: ShardsSeen | undefined): void {
  const tell = (name: string, label: string, counts: Readonly<Record<string, number>> = {}) => {
    const figures = Object.entries(counts).map(([key, value]) => ({ value, labels: { [label]: key } }));
    telemetry.gaugeAll(name, figures);
  };
  tell('holdfast_leaving_voters', 'leave', seen?.leavingVoters);
  const why = seen && {
    'no-nodes': seen.unsettled.nodeless,
    'few-voters': seen.unsettled.fewVoters,
    changing: seen.unsettled.changing,
  };
  tell('holdfast_unsettled_shards', 'why', why);
  gaugeIfKnown(telemetry, 'holdfast_lacking_metadata_nodes', seen?.lackingNodeCount);
}
