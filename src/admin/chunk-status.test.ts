import { describe, expect, test } from 'vitest';
import { must } from '../base/assert.ts';
import type { Member } from '../ports/members.ts';
import { COPIES_UNKNOWN } from '../types/debts.ts';
import { alarmsOfChunks } from './chunk-alarms.ts';
import { type ChunkStatus, type DiskStatus, describeAudits, sumDebts, withRate } from './chunk-status.ts';
import { printClusterStatus } from './print-status.ts';

const HOUR = 3_600_000;
const MiB = 1024 ** 2;
const GiB = 1024 ** 3;
const NOW = Date.UTC(2026, 0, 2);
const audit = (mapVersion: number, beganAtMs: number, isUnderWay = false) => ({
  audit: {
    ...{ mapVersion, beganAtMs, isUnderWay },
    ended: isUnderWay
      ? { mapVersion: mapVersion - 1, beganAtMs: 1, endedAtMs: 2 }
      : { mapVersion, beganAtMs, endedAtMs: beganAtMs + 1 },
  },
});

test('audits: the least version, how many are done since the last change, since when', () => {
  expect(describeAudits([audit(4, 100), audit(5, 50, true), audit(5, 70)], 5)).toEqual({
    ...{ leastVersion: 4, doneCount: 1, underWayCount: 1, unansweredCount: 0, beganAtMs: 50 },
  });
  const { leastVersion, unansweredCount } = describeAudits([audit(4, 1), undefined], 4);
  expect([leastVersion, unansweredCount]).toEqual([undefined, 1]);
  expect(describeAudits([audit(4, 1), { audit: null }], 4).leastVersion).toBeUndefined();
});

const debt = (copies: number, chunkCount: number) => ({ copies, blobCount: 1, chunkCount });

test('debts of all shards are added up by their copies, and a rate says how long they last', () => {
  const sum = sumDebts([
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
    ...{ chunkCount: 20, unansweredCount: 1 },
  });
  expect(withRate(sum, 4)).toMatchObject({ chunksPerSecond: 4, leftMs: 5000 });
  expect(withRate(sum, -1)).not.toHaveProperty('leftMs');
});

const DISK: DiskStatus = {
  ...{ diskId: 'd1'.repeat(16), nodeId: 'a'.repeat(32), address: '127.0.0.1:1', zone: 'z', state: 'serving' },
  ...{ capacityBytes: 100 * GiB, ownedCount: 4096, pendingCount: 0 },
  usage: {
    ...{ chunkCount: 7, liveBytes: 7, pendingReclaimBytes: 0 },
    ...{ diskFreeBytes: 50 * GiB, diskTotalBytes: 100 * GiB },
  },
};
const NO_DEBTS = { debts: [], chunkCount: 0, unansweredCount: 0 };
const identity = {
  ...{ clusterId: 'c', shardCount: 4, replicaCount: 3, chunkCopies: 1, masterKeyId: 'k', formatVersion: 1 },
};
const alarmsOf = (status: Partial<ChunkStatus>, more: object = {}, members: readonly Member[] = []) =>
  alarmsOfChunks(
    { repair: NO_DEBTS, disks: [DISK], ...status },
    { identity: { ...identity, ...more }, nowMs: NOW, members },
  );

test('nothing is said while all is well', () => {
  expect(alarmsOf({})).toEqual([]);
  expect(alarmsOf({ repair: sumDebts([{ debts: [debt(1, 3)] }]) })).toEqual([]);
});

test('chunks with one copy and with none', () => {
  const repair = sumDebts([{ debts: [debt(0, 2), debt(1, 3000), debt(2, 9)] }]);
  expect(alarmsOf({ repair, disks: [] }, { chunkCopies: 3 })).toEqual([
    expect.stringMatching(/^of 2 chunks of 1 blobs no intact copy is found/),
    'of 3,000 chunks of 1 blobs one copy may be left, and no more',
  ]);
});

test.each<[string, Partial<DiskStatus>, RegExp | undefined]>([
  ['away', { state: 'away' }, /is away$/],
  ['away with a reason', { state: 'away', reason: 'no answer' }, /is away \(no answer\)$/],
  ['away and given up', { state: 'away', leave: 'absent' }, /is away: its data is being copied to others/],
  ['given up, and missed no more', { state: 'away', leave: 'absent', ownedCount: 0 }, undefined],
  ['silent', { state: 'silent' }, /does not answer/],
  ['away while it drains', { state: 'away', leave: 'draining' }, /is away$/],
  ['drained and stopped', { state: 'away', leave: 'draining', ownedCount: 0 }, undefined],
  ['drained and silent', { state: 'silent', leave: 'draining', ownedCount: 0 }, undefined],
  ['draining', { leave: 'draining' }, undefined],
])('a disk that is %s', (_, change, expected) => {
  const found = alarmsOf({ disks: [{ ...DISK, ...change }] });
  expect(found).toEqual(expected === undefined ? [] : [expect.stringMatching(expected)]);
});

test.each<[string, Partial<DiskStatus>, string[]]>([
  ['away', { state: 'away', reason: 'no answer' }, []],
  ['given up, and missed no more', { state: 'away', leave: 'absent', ownedCount: 0 }, ['/srv/one']],
  ['served by another node', {}, ['/srv/one']],
  ['no more in any map', { diskId: 'another' }, ['/srv/one']],
])('a disk that its node does not serve, %s: is told once', (_, change, folders) => {
  const reason = 'no answer';
  const unserved = [
    { name: '/srv/one', diskId: DISK.diskId, reason },
    { name: '/srv/two', reason },
  ];
  const member = { nodeId: 'n'.repeat(32), address: '', zone: '', version: '', disks: [], unserved };
  const alarms = alarmsOf({ disks: [{ ...DISK, ...change }] }, {}, [{ ...member, role: 'storage' }]);
  expect(alarms.filter((alarm) => alarm.includes('does not serve'))).toEqual(
    [...folders, '/srv/two'].map((name) => `storage node nnnnnnnn does not serve ${name}: no answer`),
  );
  expect(alarms.filter((alarm) => alarm.includes('(no answer)'))).toHaveLength(1 - folders.length);
});

test.each<[number, number | undefined, RegExp]>([
  [1 * GiB, undefined, /is full: it has 1.00 GiB/],
  [3 * GiB, undefined, /is nearly full: 1016 MiB are left/],
  [2 * GiB + 7 * MiB, undefined, /is full: it has 2.01 GiB/],
  [50 * GiB, 3, /has 3 damaged copies set aside/],
])('a disk with %d bytes free and %s aside', (diskFreeBytes, asideCount, expected) => {
  const usage = {
    ...{ chunkCount: 0, liveBytes: 0, pendingReclaimBytes: 0, diskFreeBytes, diskTotalBytes: 100 * GiB },
    ...(asideCount && { asideCount }),
  };
  expect(alarmsOf({ disks: [{ ...DISK, usage }] })).toEqual([expect.stringMatching(expected)]);
});

test('chunks that a disk cannot read', () => {
  const usage = {
    ...{ chunkCount: 9, liveBytes: 0, pendingReclaimBytes: 0, diskTotalBytes: 100 * GiB },
    ...{ diskFreeBytes: 50 * GiB, unreadCount: 2 },
  };
  expect(alarmsOf({ disks: [{ ...DISK, usage }] })).toEqual([
    expect.stringMatching(/cannot read 2 of its chunks/),
  ]);
});

const placement = {
  ...{ version: 8, copies: 3, partitionCount: 4096, pendingCount: 12, auditFrom: 7 },
  audits: { leastVersion: 6, doneCount: 3, underWayCount: 1, unansweredCount: 0, beganAtMs: NOW - HOUR },
};

test('disks that have joined the owners, before all shards have looked at what they lack', () => {
  const joined = { ...placement, pendingCount: 0 };
  expect(alarmsOf({ placement: joined })).toEqual([
    '1 of 4 shards have not looked yet whether chunks have the copies that placement map 7 wants',
  ]);
  // Of those that do not answer there is another alarm.
  const silent = { ...joined.audits, unansweredCount: 1, underWayCount: 0 };
  expect(alarmsOf({ placement: { ...joined, audits: silent } })).toEqual([]);
  expect(alarmsOf({ placement: { ...joined, audits: { ...joined.audits, doneCount: 4 } } })).toEqual([]);
});

test('a change of the map that takes long', () => {
  expect(alarmsOf({ placement })).toEqual([]);
  const audits = { ...placement.audits, beganAtMs: NOW - 7 * HOUR };
  expect(alarmsOf({ placement: { ...placement, audits } })).toEqual([
    'the placement map of version 7 is not carried out after 7 h: 12 partitions still have former owners',
  ]);
  const done = { ...audits, doneCount: 4, underWayCount: 0 };
  expect(alarmsOf({ placement: { ...placement, pendingCount: 0, audits: done } })).toEqual([]);
});

describe('new chunks are refused', () => {
  const named = (name: string, change: Partial<DiskStatus> = {}) => ({
    ...{ ...DISK, diskId: name.repeat(16), nodeId: name.repeat(16) },
    ...change,
  });
  const full = { usage: { ...must(DISK.usage, 'it tells'), diskFreeBytes: 1 * GiB } };
  const settled = { ...placement, pendingCount: 0, audits: { ...placement.audits, doneCount: 4 } };
  const refusalsOf = (disks: DiskStatus[], { isEtcdThere } = { isEtcdThere: true }) => {
    const members = isEtcdThere ? [] : undefined;
    const status = { placement: settled, repair: NO_DEBTS, disks };
    const alarms = alarmsOfChunks(status, { identity, nowMs: NOW, members });
    return alarms.filter((alarm) => alarm.startsWith('new chunks are refused'));
  };

  test('when one node of several takes them, by what keeps the others', () => {
    const { usage: _, ...silent } = named('cc', { state: 'silent' });
    const refused = 'new chunks are refused: of 2 storage nodes that they need';
    expect(refusalsOf([named('aa'), named('bb', { state: 'away' }), silent])).toEqual([
      `${refused} 1 takes them (bbbbbbbb is away, cccccccc does not answer)`,
    ]);
    expect(
      refusalsOf([named('aa', full), { ...named('dd', { state: 'away' }), nodeId: 'aa'.repeat(16) }, silent]),
    ).toEqual([`${refused} 0 takes them (aaaaaaaa is full and is away, cccccccc does not answer)`]);
  });

  test('also where disks were filled by chunks, and so rest above their reserve', () => {
    const resting = { usage: { ...full.usage, diskFreeBytes: 2 * GiB + 7 * MiB } };
    expect(refusalsOf([named('aa'), named('bb', resting), named('cc', resting)])).toEqual([
      expect.stringContaining('1 takes them (bbbbbbbb is full, cccccccc is full)'),
    ]);
  });

  test('where no disk is left to place them on', () => {
    const none = 'new chunks are refused: there is no disk to place them on';
    expect(refusalsOf([])).toEqual([none]);
    expect(refusalsOf([named('aa', { state: 'removed' })])).toEqual([none]);
  });

  test('when one disk of the only node takes them', () => {
    const disks = [named('aa'), { ...named('bb', full), nodeId: 'aa'.repeat(16) }];
    expect(refusalsOf(disks)).toEqual([
      'new chunks are refused: of 2 disks that they need 1 takes them (aaaaaaaa is full)',
    ]);
  });

  test('not where two nodes take them, or the others are drained, or nobody knows who is there', () => {
    const away = named('cc', { state: 'away' });
    expect(refusalsOf([named('aa'), named('bb'), away])).toEqual([]);
    expect(refusalsOf([named('aa'), { ...away, leave: 'absent' }])).toHaveLength(1);
    const own = [named('aa'), { ...named('bb'), nodeId: 'aa'.repeat(16) }];
    expect(refusalsOf([...own, { ...away, leave: 'draining' }])).toEqual([]);
    expect(refusalsOf([named('aa'), away], { isEtcdThere: false })).toEqual([]);
    // One that no map has yet gets none.
    expect(refusalsOf([named('aa'), away, named('dd', { state: 'new', ownedCount: 0 })])).toHaveLength(1);
  });
});

test('is printed for people', () => {
  const lines: string[] = [];
  const repair = withRate(sumDebts([{ debts: [debt(1, 1), debt(2, 120), debt(COPIES_UNKNOWN, 5)] }]), 2);
  const leaving: DiskStatus = { ...DISK, leave: 'draining', ownedCount: 30, pendingCount: 4 };
  const done: DiskStatus = { ...DISK, leave: 'draining', ownedCount: 0 };
  printClusterStatus(
    {
      ...{ clusterId: 'c', members: [], shards: [], leavingNodes: [], alarms: [] },
      ...{ placement, repair, disks: [DISK, leaving, done] },
    },
    (line) => lines.push(line),
  );
  const text = lines.join('\n');
  for (const said of [
    'serving, draining: 34 partitions left',
    'serving, draining: needed while chunks lack copies',
    '50.0 GiB of 100 GiB',
    'Placement map 8, 3 copies: 12 of 4,096 partitions have former owners.',
    'Audits of version 7: ended by 3 of 0 shards, 1 under way, all by version 6 at least.',
    'Chunks that lack copies: 126 (1 with 1 copy, 120 with 2 copies, 5 to be looked at); 2 fewer each second, 1 min 3 s left.',
  ])
    expect(text).toContain(said);
});
