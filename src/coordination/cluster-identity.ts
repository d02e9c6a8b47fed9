// The identity of the cluster, under `cluster`: written once by compare-and-create. A rebuild marks it, and
// nothing else changes it.
import { Refusal } from '../base/refusal.ts';
import type { ClusterIdentity, ClusterIdentityPort } from '../ports/cluster-identity.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { identityRecord } from './records.ts';

export function createClusterIdentity({ store, prefix }: CoordinationContext): ClusterIdentityPort {
  const key = `${prefix}cluster`;

  async function readStored() {
    const { row } = await store.get(key);
    return row && { ...identityRecord.decode(key, row.value), revision: row.modRevision };
  }

  async function read(): Promise<ClusterIdentity | undefined> {
    return (await readStored())?.identity;
  }

  return {
    read,
    async stateOf(clusterId) {
      const stored = await readStored();
      if (stored?.identity.clusterId !== clusterId) return 'unknown';
      return stored.isRebuilt ? 'rebuilt' : 'as-made';
    },
    async init(identity, { isRebuilt } = { isRebuilt: false }) {
      let failure: unknown;
      try {
        const value = identityRecord.encode({ identity, isRebuilt });
        const { kind } = await store.put({ key, value, expected: 0 });
        if (kind === 'done') return;
      } catch (error) {
        failure = error;
      }
      const stored = await readStored();
      const existing = stored?.identity;
      if (stored !== undefined && existing?.clusterId === identity.clusterId) {
        if (!isRebuilt || stored.isRebuilt) return;
        const value = identityRecord.encode({ identity: stored.identity, isRebuilt });
        const { kind } = await store.put({ key, value, expected: stored.revision });
        if (kind === 'lost')
          throw new Refusal('the identity of the cluster has changed meanwhile: run this again');
        return;
      }
      if (existing !== undefined)
        throw new Refusal(
          `there is a cluster already under ${prefix}: ${existing.clusterId}, with ${existing.shardCount} shards`,
        );
      throw new Error('it is not known whether the cluster was made', { cause: failure });
    },
  };
}
