// What every ClusterIdentityPort promises (src/ports/cluster-identity.ts).
import { describe, expect, test } from 'vitest';
import { Refusal } from '../../src/base/refusal.ts';
import type { ClusterIdentity } from '../../src/ports/cluster-identity.ts';
import { COORDINATORS, useCluster } from '../support/coordination/coordinators.ts';

const identityOf = (clusterId: string): ClusterIdentity => ({
  clusterId,
  shardCount: 64,
  replicaCount: 3,
  chunkCopies: 3,
  masterKeyId: 'key-1',
  formatVersion: 1,
});

describe.each(COORDINATORS)('%s', (_name, openAll) => {
  const cluster = useCluster(openAll);

  test('all read what was written', async () => {
    const { identity } = cluster.connect('one');
    expect(await identity.read()).toBeUndefined();
    await identity.init(identityOf('c1'));
    expect(await cluster.connect('two').identity.read()).toEqual(identityOf('c1'));
    expect(await identity.stateOf('c1')).toBe('as-made');
  });

  test('a second cluster is refused with the name of the first, which stays', async () => {
    const { identity } = cluster.connect('one');
    await identity.init(identityOf('c1'));
    const second = identity.init({ ...identityOf('c2'), shardCount: 8 });
    await expect(second).rejects.toThrow(Refusal);
    await expect(second).rejects.toThrow('c1, with 64 shards');
    expect(await identity.read()).toEqual(identityOf('c1'));
  });

  test('the same identity may be written again: the answer to the first try may have been lost', async () => {
    const { identity } = cluster.connect('one');
    await identity.init(identityOf('c1'));
    await expect(identity.init(identityOf('c1'))).resolves.toBeUndefined();
    expect(await identity.read()).toEqual(identityOf('c1'));
  });

  test('it is told whether it was rebuilt, which no later writer changes', async () => {
    const { identity } = cluster.connect('one');
    expect(await identity.stateOf('c1')).toBe('unknown');
    await identity.init(identityOf('c1'), { isRebuilt: true });
    await identity.init(identityOf('c1'));
    expect(await identity.stateOf('c1')).toBe('rebuilt');
    expect(await identity.stateOf('c2')).toBe('unknown');
    expect(await identity.read()).toEqual(identityOf('c1'));
  });

  test('one that was made is marked by a rebuild: the coordinator may have been set back', async () => {
    const { identity } = cluster.connect('one');
    await identity.init(identityOf('c1'));
    await expect(identity.init(identityOf('c2'), { isRebuilt: true })).rejects.toThrow(Refusal);
    expect(await identity.stateOf('c1')).toBe('as-made');
    await identity.init(identityOf('c1'), { isRebuilt: true });
    expect(await identity.stateOf('c1')).toBe('rebuilt');
    expect(await identity.read()).toEqual(identityOf('c1'));
  });

  test('of many writers at the same moment one wins', async () => {
    const ids = Array.from({ length: 6 }, (_, index) => `c${index}`);
    const outcomes = await Promise.allSettled(
      ids.map((id) => cluster.connect(id).identity.init(identityOf(id))),
    );
    const won = ids.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    expect(won).toHaveLength(1);
    expect((await cluster.connect('later').identity.read())?.clusterId).toBe(won[0]);
  });
});
