// What a metadata node tells at its own address (health.listen): whether it is ready, and gauges.
import type { PromTelemetry } from '../../src/adapters/prom-telemetry.ts';
import type { NodeLeave } from '../../src/ports/leaving-nodes.ts';
import type { ReplicaStatus } from '../../src/ports/shard-calls.ts';

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
  });
}

export function measureLeaving(
  telemetry: PromTelemetry,
  voterCounts: Readonly<Record<NodeLeave, number>>,
): void {
  for (const [leave, count] of Object.entries(voterCounts))
    telemetry.gauge('holdfast_leaving_voters', count, { leave });
}
