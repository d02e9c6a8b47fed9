import { describe, expect, test } from 'vitest';
import { must } from '../../base/assert.ts';
import { chunkRoomOf } from '../../chunks/disk/disk-reserve.ts';
import type { NodeLeave } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import type { BlobId } from '../../types/names.ts';
import { alarmsOf as alarmsOfRules, CLUSTER_ALARMS, SERVER_ALARMS, type ServerState } from './alarms.ts';
import {
  type ClusterFacts,
  type DiskStatus,
  describeLeaving,
  type ShardStatus,
  sumRepairs,
} from './cluster-status.ts';
import { leavingSentences } from './print-status.ts';

const HOUR = 3_600_000;
const MiB = 1024 ** 2;
const GiB = 1024 ** 3;
const NOW = Date.UTC(2026, 0, 2);
const debt = (copies: number, chunkCount: number) => ({ copies, blobCount: 1, chunkCount });

const DISK: DiskStatus = {
  diskId: 'd1'.repeat(16),
  nodeId: 'a'.repeat(32),
  address: '127.0.0.1:1',
  zone: 'z',
  state: 'serving',
  capacityBytes: 100 * GiB,
  ownedCount: 4096,
  pendingCount: 0,
  usage: {
    chunkCount: 7,
    liveBytes: 7,
    pendingReclaimBytes: 0,
    diskFreeBytes: 50 * GiB,
    diskTotalBytes: 100 * GiB,
  },
};
const NO_REPAIRS = { debts: [], chunkCount: 0, unansweredCount: 0 };
const identity = {
  clusterId: 'c',
  shardCount: 4,
  replicaCount: 3,
  chunkCopies: 1,
  masterKeyId: 'k',
  formatVersion: 1,
};
const shardOf = (shard: number, voters = ['a', 'b', 'c']): ShardStatus => ({
  shard,
  incarnation: 1,
  epoch: 1,
  primary: voters[0],
  isOpen: true,
  prevVoters: [],
  learners: [],
  voters: voters.map((nodeId) => ({ nodeId, state: 'live' })),
});
const NO_DAMAGE = { objects: [], unnamed: [], blobCount: 0 };
const blob = (number: number) => String(number).repeat(32) as BlobId;
/** Nothing is wrong with it. */
const WELL: ClusterFacts = {
  clusterId: 'c',
  nowMs: NOW,
  identity,
  members: [],
  zones: new Map(),
  missingGateways: [],
  unreached: [],
  repair: NO_REPAIRS,
  damage: NO_DAMAGE,
  disks: [DISK],
  leavingNodes: [],
  unconfirmed: new Map(),
  shards: [0, 1, 2, 3].map((shard) => shardOf(shard)),
  replicas: new Map(['a', 'b', 'c'].map((nodeId) => [nodeId, []])),
};
const alarmsOf = (facts: Partial<ClusterFacts>, more: object = {}, members: readonly Member[] = []) =>
  alarmsOfRules(CLUSTER_ALARMS, {
    ...WELL,
    identity: { ...identity, ...more },
    members: [...members],
    ...facts,
  });

test('nothing is said while all is well', () => {
  expect(alarmsOf({})).toEqual([]);
  expect(alarmsOf({ repair: sumRepairs([{ debts: [debt(1, 3)] }]) })).toEqual([]);
});

test('voters that share a zone, where another one is free', () => {
  const memberIn = (nodeId: string): Member => ({
    ...{ nodeId, role: 'metadata', address: '', zone: '', version: '', disks: [] },
  });
  const zones = new Map(Object.entries({ a: 'z1', b: 'z1', c: 'z2', d: 'z3' }));
  expect(alarmsOf({ zones }, {}, [memberIn('d')])).toEqual([
    expect.stringMatching(/^4 shards have two voters in one zone/),
  ]);
  expect(alarmsOf({ zones }, {}, [memberIn('a'), memberIn('b'), memberIn('c')])).toEqual([]);
});

test('chunks with one copy and with none', () => {
  const repair = sumRepairs([{ debts: [debt(0, 2), debt(1, 3000), debt(2, 9)] }]);
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
  [50 * GiB, 3, /has 3 damaged copies in quarantine: .*a deleted object a day after its upload/],
])('a disk with %d bytes free and %s aside', (diskFreeBytes, quarantinedCount, expected) => {
  const usage = {
    chunkCount: 0,
    liveBytes: 0,
    pendingReclaimBytes: 0,
    diskFreeBytes,
    diskTotalBytes: 100 * GiB,
    ...(quarantinedCount && { quarantinedCount }),
  };
  expect(alarmsOf({ disks: [{ ...DISK, usage }] })).toEqual([expect.stringMatching(expected)]);
});

test('chunks that a disk cannot read', () => {
  const usage = {
    chunkCount: 9,
    liveBytes: 0,
    pendingReclaimBytes: 0,
    diskTotalBytes: 100 * GiB,
    diskFreeBytes: 50 * GiB,
    unreadCount: 2,
  };
  expect(alarmsOf({ disks: [{ ...DISK, usage }] })).toEqual([
    expect.stringMatching(/cannot read 2 of its chunks/),
  ]);
});

const placement = {
  version: 8,
  copies: 3,
  partitionCount: 4096,
  pendingCount: 12,
  auditFrom: 7,
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
    ...DISK,
    diskId: name.repeat(16),
    nodeId: name.repeat(16),
    ...change,
  });
  const full = { usage: { ...must(DISK.usage, 'it tells'), diskFreeBytes: 1 * GiB } };
  const settled = { ...placement, pendingCount: 0, audits: { ...placement.audits, doneCount: 4 } };
  const refusalsOf = (disks: DiskStatus[], { isEtcdThere } = { isEtcdThere: true }) => {
    const alarms = alarmsOf({ placement: settled, disks, ...(!isEtcdThere && { whyAway: 'it is away' }) });
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

// ---- metadata nodes ----

const memberOf = (nodeId: string): Member => ({
  nodeId,
  role: 'metadata',
  address: 'x:1',
  zone: nodeId,
  version: '0',
  disks: [],
});

const replicas = (nodeIds: string[]) => nodeIds.map((nodeId) => ({ nodeId, replicaId: `of-${nodeId}` }));
const recordOf = (voters: string[], prevVoters?: string[]): ShardRecord => ({
  incarnation: 1,
  epoch: 1,
  primary: null,
  learners: [],
  nonce: '',
  voters: replicas(voters),
  prevVoters: prevVoters === undefined ? null : replicas(prevVoters),
});

/** Of `there` and of two shards with voters a, b, c, when this was said of `nodeId`. */
function tell(nodeId: string, leave: NodeLeave, there: string[]) {
  const members = there.map(memberOf);
  const leaving = describeLeaving([{ nodeId, leave }], {
    members,
    records: [recordOf(['a', 'b', 'c']), recordOf(['a', 'b', 'd'], ['a', 'b', 'c']), undefined],
  });
  return {
    leaving,
    sentences: leavingSentences(leaving),
    alarms: alarmsOf({ leavingNodes: leaving, members }).filter((alarm) => !alarm.includes('answer')),
  };
}

test('one that drains: shards that need it still, as one of before, too', () => {
  const { sentences, alarms } = tell('c', 'draining', ['a', 'b', 'c', 'd']);
  expect(sentences).toEqual(['Metadata node c drains: 2 shards have a voter there still.']);
  expect(alarms).toEqual([]);
});

test('one that has been drained: what may be done with it', () => {
  expect(tell('e', 'draining', ['a', 'b', 'c', 'e']).sentences).toEqual([
    'Metadata node e drains: no shard has a voter there, it may be stopped and removed.',
  ]);
  expect(tell('e', 'draining', ['a', 'b', 'c'])).toMatchObject({
    sentences: ['Metadata node e drains: no shard has a voter there, it may be removed.'],
    alarms: [],
  });
});

test('one that is removed is an alarm until others have its shards, and then nothing', () => {
  expect(tell('c', 'gone', ['a', 'b', 'd'])).toMatchObject({
    sentences: [],
    alarms: ['metadata node c is removed: 2 shards wait for another voter'],
  });
  expect(tell('e', 'gone', ['a', 'b', 'd'])).toEqual({ leaving: [], sentences: [], alarms: [] });
});

test('one that was removed and runs again is told of', () => {
  const { sentences, alarms } = tell('e', 'gone', ['a', 'b', 'c', 'e']);
  expect(sentences).toEqual([
    'Metadata node e was removed and runs: it gets no shards until `holdfast cluster undrain`.',
  ]);
  expect(alarms).toEqual([]);
});

test('with nobody to take its place that is an alarm', () => {
  expect(tell('c', 'draining', ['a', 'b', 'c']).alarms).toEqual([
    'shards cannot leave metadata nodes that are drained or removed: 2 others are there, and 3 are needed',
  ]);
});

test('a gateway that has ended without being stopped is an alarm that says what to do', () => {
  const nodeId = 'ab'.repeat(16);
  const missing = { nodeId, instance: 'host 127.0.0.1:9001' } as Member;
  expect(alarmsOf({ missingGateways: [missing] })).toEqual([
    expect.stringMatching(
      /^gateway abab\S* \(host 127\.0\.0\.1:9001\) does not run, and was not stopped: start it again, or `holdfast cluster remove abab\S*` it$/,
    ),
  ]);
});

test('that a removed node does not answer is no news', () => {
  const replicas = new Map(['a', 'b'].map((nodeId) => [nodeId, []]));
  const alarms = (gone: string[]) =>
    alarmsOf({
      replicas,
      shards: [shardOf(0)],
      leavingNodes: gone.map((nodeId) => ({ nodeId, leave: 'gone', isThere: false, voterCount: 0 })),
      identity: { ...identity, shardCount: 1 },
    });
  expect(alarms([])).toEqual(['metadata node c does not answer: a voter of 1 shards']);
  expect(alarms(['c'])).toEqual([]);
});

// ---- a single node ----

const TOTAL = 100 * GiB;
const roomWith = (diskFreeBytes: number) => chunkRoomOf({ diskFreeBytes, diskTotalBytes: TOTAL });
const WELL_NODE = {
  room: roomWith(50 * GiB),
  damagedCount: 0,
  missingCount: 0,
  damage: NO_DAMAGE,
  clockJumpMs: 0,
  loopHeldMs: 0,
};

const alarmsOfNode = (state: ServerState) => alarmsOfRules(SERVER_ALARMS, state);

test('a single node that is well has no alarm', () => {
  expect(alarmsOfNode(WELL_NODE)).toEqual([]);
});

test('a disk that is full, or nearly so, is an alarm, by the same bounds as a disk of a cluster', () => {
  const { fullBelowBytes, scarceBelowBytes } = WELL_NODE.room;
  expect(alarmsOfNode({ ...WELL_NODE, room: roomWith(fullBelowBytes - 1) })).toEqual([
    expect.stringMatching(/^the disk of the data folder is full: it has .* and takes no new chunks$/),
  ]);
  expect(alarmsOfNode({ ...WELL_NODE, room: roomWith(scarceBelowBytes - 1) })).toEqual([
    expect.stringMatching(/^the disk of the data folder is nearly full: .* are left$/),
  ]);
  expect(alarmsOfNode({ ...WELL_NODE, room: roomWith(scarceBelowBytes) })).toEqual([]);
});

test('damaged and missing chunks, and a jump of the clock, are alarms that say what to do', () => {
  const damage = { ...NO_DAMAGE, blobCount: 2 };
  const state = { ...WELL_NODE, damagedCount: 2, missingCount: 1, damage, clockJumpMs: 8 * 86_400_000 };
  expect(alarmsOfNode(state)).toEqual([
    '2 chunks are damaged, 1 chunks are missing: their objects are looked for, `holdfast fsck --read-data` names all',
    expect.stringMatching(
      /^the clock has jumped by 8 d.*: `holdfast clock accept` says that the time is right$/,
    ),
  ]);
});

test('damage names some objects, what is not known of others, and how many are left out', () => {
  const damage = {
    objects: [
      { bucket: 'b', key: 'a "key"', version: 'null', blob: blob(1) },
      { bucket: 'b', key: 'k', upload: 'u', part: 3, blob: blob(1) },
    ],
    unnamed: [{ blob: blob(2), why: 'shard-silent' as const }],
    blobCount: 5,
  };
  const named =
    'bucket="b" key="a \\"key\\"" version="null", bucket="b" key="k" upload="u" part=3, ' +
    `blob="${blob(2)}" (a shard that may use it does not answer), and 3 more blobs: \`holdfast fsck --read-data\` names all`;
  const state = { ...WELL_NODE, damagedCount: 6, damage };
  expect(alarmsOfNode(state)).toEqual([`6 chunks are damaged: ${named}`]);
  const repair = sumRepairs([{ debts: [debt(0, 2)] }]);
  expect(alarmsOf({ repair, damage })).toEqual([`of 2 chunks of 1 blobs no intact copy is found: ${named}`]);
});

test('an event loop that stood still is an alarm', () => {
  expect(alarmsOfNode({ ...WELL_NODE, loopHeldMs: 2100 })).toEqual([
    expect.stringMatching(/^nothing was served for 2.* within the last 5 min.*event-loop-held/),
  ]);
});
