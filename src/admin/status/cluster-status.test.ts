import { expect, test } from 'vitest';
import type { ReplicaStatus } from '../../ports/shard-calls.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import { describeAudits, isMetadataReady, sumRepairs, withRate } from './cluster-status.ts';

const audit = (mapVersion: number, beganAtMs: number, isUnderWay = false) => ({
  audit: {
    mapVersion,
    beganAtMs,
    isUnderWay,
    ended: isUnderWay
      ? { mapVersion: mapVersion - 1, beganAtMs: 1, endedAtMs: 2 }
      : { mapVersion, beganAtMs, endedAtMs: beganAtMs + 1 },
  },
});

test('audits: the least version, how many are done since the last change, since when', () => {
  expect(describeAudits([audit(4, 100), audit(5, 50, true), audit(5, 70)], 5)).toEqual({
    leastVersion: 4,
    doneCount: 1,
    underWayCount: 1,
    unansweredCount: 0,
    beganAtMs: 50,
  });
  const { leastVersion, unansweredCount } = describeAudits([audit(4, 1), undefined], 4);
  expect([leastVersion, unansweredCount]).toEqual([undefined, 1]);
  expect(describeAudits([audit(4, 1), { audit: null }], 4).leastVersion).toBeUndefined();
});

const debt = (copies: number, chunkCount: number) => ({ copies, blobCount: 1, chunkCount });

test('debts of all shards are added up by their copies, and a rate says how long they last', () => {
  const sum = sumRepairs([
    { debts: [debt(2, 10), debt(COPIES_UNKNOWN, 5)] },
    { debts: [debt(1, 1), debt(2, 4)] },
    undefined,
  ]);
  expect(sum).toEqual({
    debts: [
      { copies: 1, blobCount: 1, chunkCount: 1 },
      { copies: 2, blobCount: 2, chunkCount: 14 },
      { blobCount: 1, chunkCount: 5 },
    ],
    chunkCount: 20,
    unansweredCount: 1,
  });
  expect(withRate(sum, 4)).toMatchObject({ chunksPerSecond: 4, leftMs: 5000 });
  expect(withRate(sum, -1)).not.toHaveProperty('leftMs');
});

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
