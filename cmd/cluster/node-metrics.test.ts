import { expect, test } from 'vitest';
import { createPromTelemetry } from '../../src/adapters/prom-telemetry.ts';
import type { ReplicaStatus } from '../../src/ports/shard-calls.ts';
import { isMetadataReady, measureLeaving, measureReplicas } from './node-metrics.ts';

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

function telemetryWithLog() {
  const refused: object[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object) => void refused.push(fields) };
  return { telemetry: createPromTelemetry({ log }), refused };
}

test('gauges of replicas', async () => {
  const { telemetry, refused } = telemetryWithLog();
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

test('voters on nodes that leave', async () => {
  const { telemetry, refused } = telemetryWithLog();
  measureLeaving(telemetry, { draining: 3, gone: 0 });
  const { text } = await telemetry.scrape();
  expect(text).toContain('holdfast_leaving_voters{leave="draining"} 3\n');
  expect(text).toContain('holdfast_leaving_voters{leave="gone"} 0\n');
  expect(refused).toEqual([]);
});
