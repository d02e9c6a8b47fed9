import { expect, test } from 'vitest';
import { memberOf } from '../../../tests/support/disks/disk-placer.ts';
import { createFakeDisks } from '../../../tests/support/disks/fake-disks.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { settleAll } from '../../../tests/support/disks/replicated-world.ts';
import { countedTelemetry } from '../../../tests/support/run/counted-telemetry.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { readDiskStates } from '../../chunks/placement/disk-states.ts';
import { makePlacement, NO_PLACEMENT } from '../../chunks/placement/placement.ts';
import type { DiskSpace } from '../../ports/disk-reserve.ts';
import type { ReplicaStatus } from '../../ports/shard-calls.ts';
import { LIMITS } from '../../types/limits.ts';
import {
  DISK_METRICS,
  measureAudits,
  measurePlacement,
  measureReplicas,
  measureRoom,
  measureSilentDisks,
  measureWriting,
  report,
  SHARD_METRICS,
} from './metrics.ts';

const other = { nodeId: 'n2', replicaId: 'r2' };
const LIVE: ReplicaStatus = {
  shard: 0,
  role: 'follower',
  state: 'live',
  incarnation: 1,
  epoch: 3,
  lastSeq: 10,
  appliedSeq: 10,
  appliedTimeMs: 0,
  primary: other,
  lags: [],
  isRegistryBehind: false,
  isTimeBelieved: true,
};

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
    ...LIVE,
    shard,
    role: 'primary' as const,
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
  report(telemetry, SHARD_METRICS, {
    leavingVoters: { draining: 3, gone: 0 },
    unsettled: { nodeless: 1, fewVoters: 2, changing: 0, crowded: 4 },
    lackingNodeCount: 1,
  });
  expect(await linesOf('holdfast_leaving_voters')).toEqual(['{leave="draining"} 3', '{leave="gone"} 0']);
  expect(await linesOf('holdfast_unsettled_shards')).toEqual([
    ...['{why="no-nodes"} 1', '{why="few-voters"} 2', '{why="changing"} 0', '{why="crowded"} 4'],
  ]);
  expect(await linesOf('holdfast_lacking_metadata_nodes')).toEqual(['1']);
  report(telemetry, SHARD_METRICS, undefined);
  for (const name of ['leaving_voters', 'unsettled_shards', 'lacking_metadata_nodes'])
    expect(await linesOf(`holdfast_${name}`)).toEqual([]);
  expect(refused).toEqual([]);
});

const disks = placedDisks({ zones: 3, capacityOf: (at) => 1000 + at });
const map = makePlacement({ disks, copies: 3 });
const [one = '', two = ''] = disks.map(({ id }) => id);

test('disks as whoever places them sees them, and nothing of them elsewhere', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  report(telemetry, DISK_METRICS, readDiskStates(map, disks.slice(1).map(memberOf)));
  expect(await linesOf('holdfast_disk_state')).toEqual([
    `{disk="${one}",node="node-0-0",state="away",leave="staying"} 1`,
    `{disk="${two}",node="node-1-0",state="serving",leave="staying"} 1`,
    expect.stringContaining('serving'),
  ]);
  expect(await linesOf('holdfast_disk_partitions')).toContain(`{disk="${one}",hold="owned"} 4096`);
  expect(await linesOf('holdfast_disk_partitions')).toContain(`{disk="${one}",hold="pending"} 0`);
  expect(await linesOf('holdfast_disk_capacity_bytes')).toContain(`{disk="${two}"} 1001`);
  expect(await linesOf('holdfast_missed_disks')).toEqual(['1']);
  expect(await linesOf('holdfast_placement_owner_nodes')).toEqual(['3']);

  // It is served again: its last state is no longer reported.
  report(telemetry, DISK_METRICS, readDiskStates(map, disks.map(memberOf)));
  expect((await linesOf('holdfast_disk_state')).filter((line) => line.includes(one))).toEqual([
    expect.stringContaining('state="serving"'),
  ]);
  expect(await linesOf('holdfast_missed_disks')).toEqual(['0']);

  report(telemetry, DISK_METRICS, undefined);
  for (const name of ['disk_state', 'disk_partitions', 'disk_capacity_bytes', 'missed_disks'])
    expect(await linesOf(`holdfast_${name}`)).toEqual([]);
  expect(await linesOf('holdfast_placement_owner_nodes')).toEqual([]);
  expect(refused).toEqual([]);
});

const audit = (mapVersion: number) => ({
  audit: { mapVersion, beganAtMs: 1, isUnderWay: false, ended: { mapVersion, beganAtMs: 1, endedAtMs: 2 } },
});
const underWay = { audit: { ...audit(2).audit, mapVersion: 3, isUnderWay: true } };

/** Shards led here, in order: what each answers; undefined: it does not say. */
function leading(
  answers: readonly ({ audit: object | null; history?: object | null } | undefined)[],
  incarnation = 1,
) {
  const asked: string[] = [];
  const query = (shard: number, name: string) => {
    asked.push(name);
    const answer = answers[shard];
    return { kind: answer === undefined ? 'unknown' : 'done', value: answer };
  };
  const statuses = answers.map((_, shard) => ({ shard, role: 'primary', incarnation }));
  const node = {
    replica: (shard: number) => ({ query: async (_: object, name: string) => query(shard, name) }),
    status: () => [...statuses, { shard: answers.length, role: 'follower', incarnation: 2 }],
  };
  return { node: node as unknown as Parameters<typeof measureAudits>[1]['node'], asked };
}

test('the placement map and audits', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  measurePlacement(telemetry, () => map);
  const { node, asked } = leading([underWay, undefined]);
  measureAudits(telemetry, { node, placement: () => ({ ...map, auditFrom: 3 }) });
  expect(await linesOf('holdfast_audited_placement_version')).toEqual(['2']);
  expect(await linesOf('holdfast_audits_under_way')).toEqual(['1']);
  expect(await linesOf('holdfast_audits_awaited')).toEqual(['1']);
  expect(await linesOf('holdfast_shards_unanswered')).toContain('{question="audit"} 1');
  expect(await linesOf('holdfast_placement_version')).toEqual(['1']);
  expect(await linesOf('holdfast_placement_copies')).toEqual(['3']);
  expect(await linesOf('holdfast_placement_pending_partitions')).toEqual(['0']);
  expect(await linesOf('holdfast_placement_disks')).toContain('{leave="staying"} 3');
  // Nothing is to be confirmed of a first history.
  expect(asked).not.toContain('get-history');
  expect(refused).toEqual([]);
});

test('who leads no shard knows of no audit, and before the first map none is awaited', async () => {
  const { telemetry, linesOf } = countedTelemetry();
  let placement = { ...map, auditFrom: 3 };
  const led: ({ audit: object | null } | undefined)[] = [];
  measureAudits(telemetry, {
    node: {
      status: () => leading(led).node.status(),
      replica: (shard) => leading(led).node.replica(shard),
    },
    placement: () => placement,
  });
  expect(await linesOf('holdfast_audited_placement_version')).toEqual([]);
  expect(await linesOf('holdfast_audits_awaited')).toEqual(['0']);
  led.push({ audit: null }, audit(3));
  expect(await linesOf('holdfast_audited_placement_version')).toEqual(['0']);
  expect(await linesOf('holdfast_audits_awaited')).toEqual(['1']);
  placement = { ...map, version: 0 };
  expect(await linesOf('holdfast_audits_awaited')).toEqual([]);
});

test('shards that were recovered, until it is confirmed', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  const histories = [{ assertedBy: [] }, { assertedBy: [], confirmedAtMs: 7 }, null];
  const answers = histories.map((history) => ({ ...audit(1), history }));
  const { node } = leading([...answers, undefined], 2);
  measureAudits(telemetry, { node, placement: () => map });
  expect(await linesOf('holdfast_shards_unconfirmed')).toEqual(['1']);
  expect(await linesOf('holdfast_shards_unanswered')).toContain('{question="history"} 1');
  expect(refused).toEqual([]);
});

test('disks that do not answer, as long as a node serves them', async () => {
  const { telemetry, linesOf } = countedTelemetry();
  measureSilentDisks(telemetry, {
    silent: () => [one, two, 'of before'],
    members: () => disks.slice(1).map(memberOf),
  });
  expect(await linesOf('holdfast_silent_disks')).toEqual(['1']);
});

test('whether new chunks can be stored, by what the disks say, and soon also where one says nothing', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  const clock = createManualClock(0);
  const fakes = createFakeDisks();
  const used = { chunkCount: 0, liveBytes: 0, pendingReclaimBytes: 0, diskTotalBytes: 1e12 };
  const says = (id: string, diskFreeBytes: number) => {
    fakes.of({ id }).usage = async () => ({ ...used, diskFreeBytes });
  };
  for (const { id } of disks) says(id, 5e11);
  const known = { map: NO_PLACEMENT };
  const found = new Map<string, boolean>();
  const takesWrites = ({ id }: { id: string }) => found.get(id);
  measureWriting(telemetry, { placement: () => known.map, takesWrites, directory: fakes, clock });
  const value = async () => [
    await linesOf('holdfast_chunk_writes_refused'),
    await linesOf('holdfast_chunk_taking_nodes'),
  ];
  expect(await value()).toEqual([[], []]);
  known.map = map;
  expect(await value()).toEqual([['0'], ['3']]);
  fakes.of({ id: one }).usage = () => Promise.reject(new Error('it is away'));
  expect(await value()).toEqual([['0'], ['2']]);
  says(two, 1);
  expect(await value()).toEqual([['1'], ['1']]);
  fakes.of({ id: two }).usage = () => new Promise(() => {});
  const late = linesOf('holdfast_chunk_writes_refused');
  await settleAll();
  clock.advance(LIMITS.usageAnswerMaxMs);
  expect(await late).toEqual(['1']);
  // What writes find comes before what is said: it takes chunks, if with no time to say so, and another one's drive hangs.
  found.set(two, true);
  expect(await value()).toEqual([['0'], ['2']]);
  found.set(disks[2]?.id ?? '', false);
  expect(await value()).toEqual([['1'], ['1']]);
  expect(refused).toEqual([]);
});
