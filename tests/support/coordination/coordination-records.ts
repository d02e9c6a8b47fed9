// What is kept in the coordinator, for tests.
import type { Member } from '../../../src/ports/members.ts';
import type { ShardRecord } from '../../../src/ports/shard-registry.ts';

const replica = (name: string) => ({ replicaId: `replica-${name}`, nodeId: `node-${name}` });

/** One with three voters, of the first of which it is. */
export function shardRecordOf(epoch: number, fields: Partial<ShardRecord> = {}): ShardRecord {
  return {
    incarnation: 1,
    epoch,
    primary: replica('a'),
    voters: ['a', 'b', 'c'].map(replica),
    prevVoters: null,
    learners: [],
    nonce: `nonce-${epoch}`,
    ...fields,
  };
}

/** A storage node with one disk. */
export function memberOf(nodeId: string): Member {
  return {
    nodeId,
    role: 'storage',
    address: '127.0.0.1:7001',
    zone: 'z1',
    version: '1.0.0',
    disks: [{ diskId: `disk-of-${nodeId}`, capacityBytes: 1e12 }],
  };
}
