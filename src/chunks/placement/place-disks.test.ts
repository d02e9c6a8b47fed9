import { describe, expect, onTestFinished, test } from 'vitest';
import { pass, startCoordinatorWorld } from '../../../tests/support/coordination/coordinator-world.ts';
import { eventLog } from '../../../tests/support/coordination/coordinators.ts';
import {
  AWAY_AFTER_MS,
  GIVEN_UP_MS,
  LOOKED_MS,
  memberOf,
  openPlacer,
} from '../../../tests/support/disks/disk-placer.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { must } from '../../base/assert.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { runDiskPlacer } from './place-disks.ts';
import { changePlacement, makePlacement } from './placement.ts';
import { holdings, withLeave } from './placement-changes.ts';
import { documentOf, placementOf } from './placement-document.ts';

const leaveOf = (map: PlacementMap, id: DiskId | undefined) =>
  map.disks.find((disk) => disk.id === id)?.leave;
const ownedBy = (map: PlacementMap, id: DiskId | undefined) => holdings(map).get(id ?? '')?.ownedCount;

test('makes the first map when there are nodes for all copies; later disks join together', async () => {
  const disks = placedDisks({ zones: 5 });
  const placer = openPlacer();
  placer.serve(disks.slice(0, 2));
  await placer.pass(LOOKED_MS);
  expect(await placer.read()).toBeUndefined();
  const first = await placer.after(disks.slice(0, 3));
  expect(first).toMatchObject({ version: 1, disks: disks.slice(0, 3) });
  // Not at once, because another disk follows.
  await placer.after(disks.slice(0, 4), 4000);
  const next = await placer.after(disks);
  expect(next).toMatchObject({ version: 2, disks, auditFrom: 2 });
  const owned = disks.map(({ id }) => ownedBy(next, id) ?? 0);
  expect(Math.max(...owned) - Math.min(...owned)).toBeLessThanOrEqual(1);
  expect(next.previous.flat().length).toBeGreaterThan(4000);
});

test('reports the disks it sees, until another process places them', async () => {
  const disks = placedDisks({ zones: 3 });
  const placer = openPlacer();
  expect(placer.seenBy('a')).toBeUndefined();
  placer.serve(disks.slice(0, 2));
  await placer.pass(LOOKED_MS);
  expect(placer.seenBy('a')).toEqual({ map: undefined, members: disks.slice(0, 2).map(memberOf) });
  const map = await placer.after(disks);
  expect(placer.seenBy('a')).toEqual({ map, members: disks.map(memberOf) });
  placer.takeOver();
  await placer.pass(LOOKED_MS);
  expect(placer.seenBy('a')).toBeUndefined();
  expect(placer.seenBy('c')).toMatchObject({ map });
});

test('learns the map in etcd even if a watch is silent', async () => {
  const placer = openPlacer();
  await placer.after(placedDisks({ zones: 3 }));
  expect(placer.learnt).toContain(1);
});

test('a change ends when all shards have audited it; no disk joins before', async () => {
  const disks = placedDisks({ zones: 6 });
  const placer = openPlacer();
  await placer.after(disks.slice(0, 4));
  expect((await placer.after(disks.slice(0, 5))).version).toBe(2);
  placer.hasAudited(1);
  expect((await placer.after(disks)).version).toBe(2);
  placer.hasAudited(2);
  const done = await placer.after(disks);
  // The change is cleared first, then the disk joins.
  expect(done).toMatchObject({ version: 4, auditFrom: 4 });
  expect(ownedBy(done, disks[5]?.id)).toBeGreaterThan(2000);
});

describe('disks that are away', () => {
  const disks = placedDisks({ zones: 6, disksPerNode: 2 });
  const node = disks.slice(0, 2);
  const others = disks.slice(2);

  test('are given up together after a while, and get their partitions back when they return', async () => {
    const placer = openPlacer();
    const full = await placer.after(disks);
    expect((await placer.after(others, AWAY_AFTER_MS - 10_000)).version).toBe(1);
    const less = await placer.after(others, GIVEN_UP_MS);
    expect(less.version).toBe(2);
    expect(node.map(({ id }) => [leaveOf(less, id), ownedBy(less, id)])).toEqual([
      ['absent', 0],
      ['absent', 0],
    ]);
    // Not at once: the disk may go away again.
    expect((await placer.after(disks, 10_000)).version).toBe(2);
    const again = await placer.after(disks, 40_000);
    expect(again.owners.map((ids) => ids.toSorted())).toEqual(full.owners.map((ids) => ids.toSorted()));
    expect(again.disks).toEqual(full.disks);
  });

  test('are given up also if they keep coming and going', async () => {
    const placer = openPlacer();
    await placer.after(disks);
    for (let turn = 0; turn < 6; turn++) {
      await placer.after(disks, 5500);
      await placer.after(others, 30_000);
    }
    expect(leaveOf(await placer.after(others, 1000), node[0]?.id)).toBe('absent');
  });

  test('are not given up if they have just joined, though they restarted twice', async () => {
    const placer = openPlacer();
    await placer.after(others, 2 * AWAY_AFTER_MS);
    expect((await placer.after(disks)).version).toBe(2);
    // Served less than a fifth of the time, off and on.
    for (let turn = 0; turn < 2; turn++) {
      await placer.after(others, 6000);
      await placer.after(disks, 6000);
    }
    const map = await placer.after(disks, 2 * AWAY_AFTER_MS);
    expect([map.version, leaveOf(map, node[0]?.id)]).toEqual([2, undefined]);
  });

  test('are not given up for a short absence now and then', async () => {
    const placer = openPlacer();
    await placer.after(disks);
    for (let turn = 0; turn < 6; turn++) {
      await placer.after(disks, 40_000);
      await placer.after(others, 20_000);
    }
    expect((await placer.read())?.version).toBe(1);
  });

  test('are timed by the placer, without the time in which it stood still', async () => {
    const placer = openPlacer();
    await placer.after(disks);
    await placer.after(others, AWAY_AFTER_MS - 20_000);
    placer.standStill(5 * AWAY_AFTER_MS);
    expect((await placer.after(others, 2000)).version).toBe(1);
    placer.takeOver();
    // The lease of the former placer has to end first, unless it was released.
    expect((await placer.after(others, AWAY_AFTER_MS - 20_000)).version).toBe(1);
    expect((await placer.after(others, 2 * LOOKED_MS + 20_000)).version).toBe(2);
  });

  test.each([
    ['fewer than copies are left', placedDisks({ zones: 3 }), 2],
    ['most are silent at once', placedDisks({ zones: 9 }), 4],
    ['most zones are silent, though few disks', zonesOf([5, 1, 1, 1, 1]), 6],
  ])('are not given up when %s', async (_why, all, staying) => {
    const placer = openPlacer();
    await placer.after(all);
    expect((await placer.after(all.slice(0, staying), GIVEN_UP_MS)).disks).toEqual(all);
    expect(placer.events('disks-away-not-given-up')).toBe(1);
    await placer.after(all);
    expect(placer.events('disks-away-no-more')).toBe(1);
  });

  test('a new disk replaces a lost one during a pending change where too few are left', async () => {
    type Five = [PlacedDisk, PlacedDisk, PlacedDisk, PlacedDisk, PlacedDisk];
    const [a, b, c, d, e] = placedDisks({ zones: 5 }) as Five;
    const placer = openPlacer();
    await placer.after([a, b, c]);
    await placer.after([a, b], GIVEN_UP_MS);
    const replaced = await placer.after([a, b, d]);
    expect(leaveOf(replaced, c.id)).toBe('absent');
    expect(replaced.owners.every((ids) => ids.toSorted().join() === [a.id, b.id, d.id].sort().join())).toBe(
      true,
    );
    expect(replaced.previous.every((ids) => ids.join() === c.id)).toBe(true);
    const more = await placer.after([a, b, d, e]);
    expect(ownedBy(more, e.id)).toBeUndefined();
  });
});

function zonesOf(sizes: readonly number[]): PlacedDisk[] {
  return sizes
    .flatMap((size, zone) => Array.from({ length: size }, () => zone))
    .map((zone, at) => ({ ...must(placedDisks({ zones: 20 })[at], 'a disk'), zone: `zone-${zone}` }));
}

test('partitions that could not move during a pending change are evened out afterwards', async () => {
  const [a, b, c, d] = placedDisks({ zones: 4 }) as [PlacedDisk, PlacedDisk, PlacedDisk, PlacedDisk];
  const placer = openPlacer();
  await placer.after([a, b, c]);
  // All partitions have a pending change, and one disk owns nothing.
  const stuck = {
    ...changePlacement(makePlacement({ disks: [a, b, c], copies: 3 }), { disks: [a, b, c] }),
    disks: [a, b, c, d],
    previous: makePlacement({ disks: [a, b, c], copies: 3 }).owners.map(() => [d.id]),
  };
  await placer.write(stuck);
  expect(ownedBy(await placer.after([a, b, c, d]), d.id)).toBe(0);
  placer.hasAudited(2);
  expect(ownedBy(await placer.after([a, b, c, d]), d.id)).toBe(3072);
});

test('a disk in another zone than before is placed anew', async () => {
  const disks = placedDisks({ zones: 4, disksPerNode: 2 });
  const placer = openPlacer();
  await placer.after(disks);
  const elsewhere = disks.map((disk, at) => (at === 0 ? { ...disk, zone: 'new', nodeId: 'new' } : disk));
  expect(await placer.after(elsewhere)).toMatchObject({ version: 2, disks: elsewhere });
  const grown = elsewhere.map((disk, at) =>
    at < 4 ? { ...disk, capacityBytes: disk.capacityBytes * 1.01 } : disk,
  );
  expect((await placer.after(grown)).version).toBe(2);
});

test('a disk that comes back without acknowledged data causes one audit of everything', async () => {
  const disks = placedDisks({ zones: 4 });
  const placer = openPlacer();
  const placed = await placer.after(disks);
  const cut = disks.map((disk, at) => (at === 1 ? { ...disk, cutSeq: 1 } : disk));
  const first = await placer.after(cut);
  expect(first).toMatchObject({ version: placed.version + 1, auditFrom: placed.version + 1 });
  expect(first.owners).toEqual(placed.owners);
  expect(first.disks[1]).toMatchObject({ cutSeq: 1 });
  expect(await placer.after(cut)).toEqual(first);
  const again = await placer.after(disks.map((disk, at) => (at === 1 ? { ...disk, cutSeq: 2 } : disk)));
  expect(again).toMatchObject({ version: first.version + 1, auditFrom: first.version + 1 });
});

test('a node that moves to another zone takes along the disks that it does not serve', async () => {
  const disks = placedDisks({ zones: 2, disksPerNode: 2 });
  const [a, b, c, d] = disks as [PlacedDisk, PlacedDisk, PlacedDisk, PlacedDisk];
  // Three nodes in zones 0 and 1: with one disk of the first node left behind, zones could not be kept apart by nodes.
  const others = [c, { ...d, nodeId: 'another' }];
  const placer = openPlacer();
  await placer.after([a, b, ...others]);
  const map = await placer.after([{ ...a, zone: 'new' }, ...others]);
  expect(map.version).toBe(2);
  expect(map.disks.map(({ id, zone }) => [id, zone])).toEqual([
    [a.id, 'new'],
    [b.id, 'new'],
    [c.id, c.zone],
    [d.id, d.zone],
  ]);
  expect(placer.events('disks-not-placed')).toBe(0);
});

test("a small change of a file system's size moves nothing when another change is made", async () => {
  const disks = placedDisks({ zones: 5 });
  const placer = openPlacer();
  const placed = await placer.after(disks);
  const told = disks.map((disk, at) =>
    at > 1 ? disk : { ...disk, capacityBytes: 1.05 * disk.capacityBytes },
  );
  const cut = await placer.after(told.map((disk, at) => (at === 4 ? { ...disk, cutSeq: 1 } : disk)));
  expect(cut).toMatchObject({ version: 2, auditFrom: 2, owners: placed.owners });
  // Small changes add up.
  const grown = await placer.after(
    cut.disks.map((disk, at) => (at > 1 ? disk : { ...disk, capacityBytes: 1.2 * disk.capacityBytes })),
  );
  expect(grown.version).toBe(3);
  expect(ownedBy(grown, disks[0]?.id)).toBeGreaterThan((ownedBy(placed, disks[0]?.id) ?? 0) + 200);
});

test('a draining disk stays so while it is away, and a removed disk does not join again', async () => {
  const disks = placedDisks({ zones: 6 });
  const [first, ...others] = disks as [PlacedDisk, ...PlacedDisk[]];
  const placer = openPlacer();
  const full = await placer.after(disks);
  const drained = changePlacement(full, { disks: withLeave(disks, new Set([first.id]), 'draining') });
  await placer.write(drained);
  expect(leaveOf(await placer.after(others, GIVEN_UP_MS), first.id)).toBe('draining');
  expect(leaveOf(await placer.after(disks, AWAY_AFTER_MS), first.id)).toBe('draining');
  await placer.write({ ...full, version: 9, disks: others, owners: drained.owners, retired: [first.id] });
  expect((await placer.after(disks)).disks).toEqual(others);
});

test('a shard that does not answer about its audit does not stop the care for disks', async () => {
  const disks = placedDisks({ zones: 6 });
  const placer = openPlacer();
  await placer.after(disks.slice(0, 5));
  placer.neverAudits();
  expect((await placer.after(disks)).version).toBe(2);
  const map = await placer.after(disks.slice(1), GIVEN_UP_MS + 60_000);
  expect(leaveOf(map, disks[0]?.id)).toBe('absent');
});

test('a placer that loses a race looks again, and undoes nothing that another wrote', async () => {
  const disks = placedDisks({ zones: 5 });
  const world = startCoordinatorWorld();
  const { clock, connect } = world;
  const { placementMap, jobLocks } = connect('a');
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const draining = new Set([disks[1]?.id ?? '']);
  let isRaced = false;
  const raced = {
    ...placementMap,
    async swap(change: Parameters<typeof placementMap.swap>[0]) {
      if (change.expected > 0 && !isRaced) {
        isRaced = true;
        const stored = must(await placementMap.read(), 'there is a map');
        const map = placementOf(stored.document);
        const next = changePlacement(map, { disks: withLeave(map.disks, draining, 'draining') });
        await placementMap.swap({ expected: stored.revision, document: documentOf(next) });
      }
      return placementMap.swap(change);
    },
  };
  let members = disks.slice(0, 4).map(memberOf);
  const deps = {
    chunkCopies: 3,
    awayAfterMs: AWAY_AFTER_MS,
    placementMap: raced,
    jobLocks,
    clock,
    log: eventLog(),
    members: () => members,
    cluster: async () => 'as-made' as const,
    newestKnown: () => undefined,
    announcedVersion: () => 0,
    learn() {},
    auditedVersion: async () => 99,
    reach: async () => {},
    pause: async () => {},
  };
  void runDiskPlacer(deps, over.signal);
  await pass(clock, LOOKED_MS);
  members = disks.map(memberOf);
  await pass(clock, 4 * LOOKED_MS);
  const map = placementOf(must(await placementMap.read(), 'there is a map').document);
  expect(isRaced).toBe(true);
  expect(leaveOf(map, disks[1]?.id)).toBe('draining');
  expect(ownedBy(map, disks[4]?.id)).toBeGreaterThan(1000);
});
