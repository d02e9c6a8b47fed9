// What every PlacementMapPort promises (src/ports/placement-map.ts).
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PlacementDocument, StoredPlacement } from '../../src/ports/placement-map.ts';
import { COORDINATORS, collect, useCluster } from '../support/coordination/coordinators.ts';

const mapOf = (version: number): PlacementDocument => ({
  version,
  partitions: Array.from({ length: 4096 }, (_, index) => [`d${index % 9}`, `d${(index + version) % 9}`]),
  previous: null,
});

describe.each(COORDINATORS)('%s', (_name, openAll) => {
  const cluster = useCluster(openAll);
  let ending: AbortController;

  beforeEach(() => {
    ending = new AbortController();
  });
  afterEach(() => {
    ending.abort();
  });

  test('a map is read as it was written; of swaps with the same expectation one wins', async () => {
    const { placementMap } = cluster.connect('a');
    expect(await placementMap.read()).toBeUndefined();
    const outcomes = await Promise.all(
      [1, 2, 3].map((version) =>
        cluster.connect(`b${version}`).placementMap.swap({ expected: 0, document: mapOf(version) }),
      ),
    );
    const winner = outcomes.findIndex(({ kind }) => kind === 'done');
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    const stored = await placementMap.read();
    expect(stored?.document).toEqual(mapOf(winner + 1));
    expect(outcomes[winner]).toEqual({ kind: 'done', revision: stored?.revision });
  });

  test('a watch reports the present map, then each change', async () => {
    const { placementMap } = cluster.connect('a');
    const told = collect<StoredPlacement>();
    placementMap.watch(told.tell, ending.signal);
    await placementMap.swap({ expected: 0, document: mapOf(1) });
    const first = await told.first(({ document }) => document.version === 1);
    const later = collect<StoredPlacement>();
    cluster.connect('b').placementMap.watch(later.tell, ending.signal);
    expect(await later.first(() => true)).toEqual(first);
    await placementMap.swap({ expected: first.revision, document: mapOf(2) });
    expect((await later.first(({ document }) => document.version === 2)).document).toEqual(mapOf(2));
    await told.first(({ document }) => document.version === 2);
  });

  test('a map that no coordinator could store is a bug', async () => {
    const document = { version: 1, filler: 'x'.repeat(1024 * 1024) };
    await expect(cluster.connect('a').placementMap.swap({ expected: 0, document })).rejects.toThrow(
      'too large',
    );
  });
});
