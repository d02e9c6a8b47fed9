import { expect, test } from 'vitest';
import type { NodeLeave } from '../ports/leaving-nodes.ts';
import type { Member } from '../ports/members.ts';
import type { ShardRecord } from '../ports/shard-registry.ts';
import { alarmsOfLeaving, describeLeaving, leavingSentences } from './leaving-status.ts';
import { alarmsOfShards } from './shard-alarms.ts';
import type { ShardStatus } from './status.ts';

const memberOf = (nodeId: string): Member => ({
  ...{ nodeId, role: 'metadata', address: 'x:1', zone: nodeId, version: '0', disks: [] },
});
const shardOf = (voters: string[]): ShardStatus => ({
  ...{ shard: 0, incarnation: 1, epoch: 1, primary: voters[0], isOpen: true, prevVoters: [], learners: [] },
  voters: voters.map((nodeId) => ({ nodeId, state: 'live' })),
});

const replicas = (nodeIds: string[]) => nodeIds.map((nodeId) => ({ nodeId, replicaId: `of-${nodeId}` }));
const recordOf = (voters: string[], prevVoters?: string[]): ShardRecord => ({
  ...{ incarnation: 1, epoch: 1, primary: null, learners: [], nonce: '' },
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
    alarms: alarmsOfLeaving(leaving, { members, replicaCount: 3 }),
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

test('that a removed node does not answer is no news', () => {
  const identity = {
    ...{ clusterId: 'c', shardCount: 1, replicaCount: 3, chunkCopies: 3, masterKeyId: 'k', formatVersion: 1 },
  };
  const said = new Map([
    ['a', []],
    ['b', []],
  ]);
  const alarms = (gone: string[]) =>
    alarmsOfShards([shardOf(['a', 'b', 'c'])], { said, identity, gone: new Set(gone) });
  expect(alarms([])).toEqual(['metadata node c does not answer: a voter of 1 shards']);
  expect(alarms(['c'])).toEqual([]);
});
