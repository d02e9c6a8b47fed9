// Shard records for tests.
import type { ShardRecord } from '../../src/ports/shard-registry.ts';

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
