// The identity of the cluster, under `cluster`: written once by compare-and-create, never changed.
import { Refusal } from '../base/refusal.ts';
import type { ClusterIdentity, ClusterIdentityPort } from '../ports/cluster-identity.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { identityRecord } from './records.ts';

export function createClusterIdentity({ store, prefix }: CoordinationContext): ClusterIdentityPort {
  const key = `${prefix}cluster`;

  async function read(): Promise<ClusterIdentity | undefined> {
    const { row } = await store.get(key);
    return row && identityRecord.decode(key, row.value);
  }

  return {
    read,
    async init(identity) {
      let failure: unknown;
      try {
        const { kind } = await store.put({ key, value: identityRecord.encode(identity), expected: 0 });
        if (kind === 'done') return;
      } catch (error) {
        failure = error;
      }
      const existing = await read();
      if (existing?.clusterId === identity.clusterId) return;
      if (existing !== undefined)
        throw new Refusal(
          `there is a cluster already under ${prefix}: ${existing.clusterId}, with ${existing.shardCount} shards`,
        );
      throw new Error('it is not known whether the cluster was made', { cause: failure });
    },
  };
}
