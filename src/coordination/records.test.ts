import { describe, expect, test } from 'vitest';
import {
  identityRecord,
  leavingNodesRecord,
  memberRecord,
  placementRecord,
  shardRecord,
  UnreadableRecord,
} from './records.ts';

const SHARD = {
  incarnation: 1,
  epoch: 4,
  primary: { replicaId: 'r', nodeId: 'n' },
  voters: [{ replicaId: 'r', nodeId: 'n' }],
  prevVoters: null,
  learners: [],
  wanted: { voters: [{ replicaId: 'r', nodeId: 'n' }], primary: 'r', zones: { n: 'z' } },
  nonce: 'x',
};

describe('a value that does not fit its key is refused, with the name of the key', () => {
  test.each([
    ['no JSON', '{'],
    ['another kind', '[]'],
    ['nothing', '{}'],
    ['a newer form', JSON.stringify({ recordVersion: 2, ...SHARD })],
    ['a negative epoch', JSON.stringify({ recordVersion: 1, ...SHARD, epoch: -1 })],
    ['a fraction', JSON.stringify({ recordVersion: 1, ...SHARD, epoch: 1.5 })],
    ['a primary without a node', JSON.stringify({ recordVersion: 1, ...SHARD, primary: { replicaId: 'r' } })],
    ['voters that are no list', JSON.stringify({ recordVersion: 1, ...SHARD, voters: {} })],
    ['no word about previous voters', JSON.stringify({ recordVersion: 1, ...SHARD, prevVoters: undefined })],
  ])('%s', (_name, text) => {
    expect(() => shardRecord.decode('p/shard/1', text)).toThrow(UnreadableRecord);
    expect(() => shardRecord.decode('p/shard/1', text)).toThrow('p/shard/1: ');
  });

  test('a role that does not exist', () => {
    const member = { nodeId: 'n', role: 'toString', address: 'a', zone: 'z', version: '1', disks: [] };
    expect(() => memberRecord.decode('k', JSON.stringify({ recordVersion: 1, ...member }))).toThrow(
      'role is toString',
    );
  });

  test('a node that leaves in an unknown way', () => {
    const text = JSON.stringify({ recordVersion: 1, nodes: [{ nodeId: 'n', leave: 'absent' }] });
    expect(() => leavingNodesRecord.decode('k', text)).toThrow('k: leave is absent');
  });

  test('an identity without its shard count', () => {
    const text = JSON.stringify({ recordVersion: 1, clusterId: 'c' });
    expect(() => identityRecord.decode('k', text)).toThrow('shardCount is no whole number');
  });
});

test('a record is read as it was written, without unknown fields', () => {
  const text = shardRecord.encode(SHARD);
  expect(shardRecord.decode('k', text)).toEqual(SHARD);
  expect(shardRecord.decode('k', JSON.stringify({ ...JSON.parse(text), note: 'by hand' }))).toEqual(SHARD);
});

test('a disk reports how often its store was cut, if ever', () => {
  const disks = [
    { diskId: 'a', capacityBytes: 1 },
    { diskId: 'b', capacityBytes: 2, cutSeq: 3 },
  ];
  const member = { nodeId: 'n', role: 'storage' as const, address: 'a', zone: 'z', version: '1', disks };
  expect(memberRecord.decode('k', memberRecord.encode(member))).toEqual(member);
});

test('a storage node reports which disks it does not serve, and why', () => {
  const unserved = [
    { name: '/srv/one', reason: 'no such device' },
    { name: '/srv/two', diskId: 'b', reason: 'no answer' },
  ];
  const member = { nodeId: 'n', role: 'storage' as const, address: 'a', zone: 'z', version: '1', disks: [] };
  for (const one of [member, { ...member, unserved }])
    expect(memberRecord.decode('k', memberRecord.encode(one))).toEqual(one);
});

test('a placement map keeps all of its own fields', () => {
  const document = { version: 3, recordVersion: 9, partitions: [['a']], previous: null };
  expect(placementRecord.decode('k', placementRecord.encode({ document })).document).toEqual(document);
});
