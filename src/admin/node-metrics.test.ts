import { expect, test } from 'vitest';
import { countedTelemetry } from '../../tests/support/counted-telemetry.ts';
import { createManualClock } from '../../tests/support/simulated.ts';
import type { DiskSpace } from '../ports/disk-reserve.ts';
import type { ReplicaStatus } from '../ports/shard-calls.ts';
import { isMetadataReady, measureReplicas, measureRoom, measureShards } from './node-metrics.ts';

const other = { nodeId: 'n2', replicaId: 'r2' };
const LIVE: ReplicaStatus = {
  ...{ shard: 0, role: 'follower', state: 'live', incarnation: 1, epoch: 3, lastSeq: 10, appliedSeq: 10 },
  ...{ appliedTimeMs: 0, primary: other, lags: [], isRegistryBehind: false, isTimeBelieved: true },
};

test('a metadata node is ready when all that it holds is led or followed', () => {
  expect(isMetadataReady([])).toBe(true);
  expect(isMetadataReady([LIVE, { ...LIVE, shard: 1, role: 'primary' }])).toBe(true);
  const { primary: _, ...orphan } = LIVE;
  const not: Partial<ReplicaStatus>[] = [
    { state: 'installing' },
    { state: 'quarantined' },
    { role: 'candidate' },
    { role: 'opening' },
    { isRegistryBehind: true },
  ];
  for (const change of not) expect(isMetadataReady([LIVE, { ...LIVE, ...change }])).toBe(false);
  expect(isMetadataReady([{ ...orphan, primary: undefined }])).toBe(false);
  for (const state of ['removed', 'superseded'] as const)
    expect(isMetadataReady([LIVE, { ...LIVE, state, role: 'candidate' }])).toBe(true);
});

test('gauges of replicas', async () => {
  const { telemetry, refused } = countedTelemetry();
  const lags = [
    { replicaId: 'r2', lag: 4 },
    { replicaId: 'r3', lag: 1500 },
    { replicaId: 'r4', lag: undefined },
  ];
  measureReplicas(telemetry, () => [
    LIVE,
    { ...LIVE, shard: 1, role: 'primary', lags, isTimeBelieved: false },
    { ...LIVE, shard: 2, state: 'installing', lastSeq: 25 },
  ]);
  const { text } = await telemetry.scrape();
  for (const line of [
    'holdfast_shards{role="primary"} 1',
    'holdfast_shards{role="follower"} 1',
    'holdfast_shards{role="candidate"} 0',
    'holdfast_replicas{state="live"} 2',
    'holdfast_replicas{state="installing"} 1',
    'holdfast_replica_lag_entries 1504',
    'holdfast_replica_lag_entries_max 1500',
    'holdfast_replicas_unheard 1',
    'holdfast_replica_unapplied_entries 15',
    'holdfast_shards_behind_registry 0',
    'holdfast_shards_with_doubted_clock 1',
  ])
    expect(text).toContain(`${line}\n`);
  expect(refused).toEqual([]);
});

test('how far replicas have been compared, and that they differ', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  const led = (shard: number, endedAtMs: number | undefined, mismatchAtMs: number | null = null) => ({
    ...{ ...LIVE, shard, role: 'primary' as const },
    verification: {
      lastPass: endedAtMs === undefined ? null : { endedAtMs, partialCount: 0 },
      mismatchAtMs,
    },
  });
  let statuses: ReplicaStatus[] = [led(0, 9000), led(1, 7000, 5), { ...led(2, 1), role: 'follower' }];
  measureReplicas(telemetry, () => statuses);
  expect(await linesOf('holdfast_shards_with_differing_replicas')).toEqual(['1']);
  expect(await linesOf('holdfast_shards_compared_timestamp_seconds')).toEqual(['7']);
  for (const unknown of [[led(0, 9000), led(1, undefined)], []]) {
    statuses = unknown;
    expect(await linesOf('holdfast_shards_compared_timestamp_seconds')).toEqual([]);
  }
  expect(await linesOf('holdfast_shards_with_differing_replicas')).toEqual(['0']);
  expect(refused).toEqual([]);
});

test('room of the data folder, and where it ends; nothing while the drive does not say', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  const clock = createManualClock(0);
  const GiB = 1024 ** 3;
  let measured: Promise<DiskSpace> = Promise.resolve({ freeBytes: 5, totalBytes: 1000 * GiB });
  measureRoom(telemetry, { reserve: { measure: () => measured }, clock });
  expect(await linesOf('holdfast_disk_free_bytes')).toEqual(['5']);
  expect(await linesOf('holdfast_disk_bytes')).toEqual([String(1000 * GiB)]);
  expect(await linesOf('holdfast_disk_full_below_bytes')).toEqual([String(8 * GiB)]);
  expect(await linesOf('holdfast_disk_scarce_below_bytes')).toEqual([String(16 * GiB)]);
  measured = Promise.reject(new Error('no such file system'));
  expect(await linesOf('holdfast_disk_free_bytes')).toEqual([]);
  measured = new Promise(() => {});
  const hanging = linesOf('holdfast_disk_full_below_bytes');
  clock.advance(3000);
  expect(await hanging).toEqual([]);
  expect(refused).toEqual([]);
});

test('what is found by who places shards, and nothing of it elsewhere', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  measureShards(telemetry, {
    leavingVoters: { draining: 3, gone: 0 },
    unsettled: { nodeless: 1, fewVoters: 2, changing: 0 },
    lackingNodeCount: 1,
  });
  expect(await linesOf('holdfast_leaving_voters')).toEqual(['{leave="draining"} 3', '{leave="gone"} 0']);
  expect(await linesOf('holdfast_unsettled_shards')).toEqual([
    ...['{why="no-nodes"} 1', '{why="few-voters"} 2', '{why="changing"} 0'],
  ]);
  expect(await linesOf('holdfast_lacking_metadata_nodes')).toEqual(['1']);
  measureShards(telemetry, undefined);
  for (const name of ['leaving_voters', 'unsettled_shards', 'lacking_metadata_nodes'])
    expect(await linesOf(`holdfast_${name}`)).toEqual([]);
  expect(refused).toEqual([]);
});
