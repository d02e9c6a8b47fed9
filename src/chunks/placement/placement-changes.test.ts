import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { cpuMs } from '../../../tests/support/run/cpu-time.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { finishInTurns } from '../../base/async/steps.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { changePlacement, changePlacementInSteps, makePlacement, makePlacementInSteps } from './placement.ts';
import {
  clearPrevious,
  holdings,
  isPending,
  leastSpread,
  movedCount,
  newDisks,
  retireDisks,
  withLeave,
} from './placement-changes.ts';
import { documentOf } from './placement-document.ts';
import { decodePlacement, encodePlacement } from './placement-record.ts';
import { bestSpread } from './placement-shares.ts';

const PARTITIONS = LIMITS.partitionCount;
const runs = { numRuns: amountOf({ short: 4, long: 100 }) };

type Leave = PlacedDisk['leave'];
const leave = (map: PlacementMap, ids: readonly DiskId[], why: Leave) =>
  changePlacement(map, { disks: withLeave(map.disks, new Set(ids), why) });
const join = (map: PlacementMap, disks: readonly PlacedDisk[]) =>
  changePlacement(map, { disks: [...map.disks, ...disks] });
const idsOf = (disks: readonly PlacedDisk[]) => disks.map(({ id }) => id);
const asSets = (partitions: PlacementMap['owners']) => partitions.map((ids) => ids.toSorted());

/** The properties of every map after a change. */
function expectTold(before: PlacementMap, after: PlacementMap): void {
  expect(after.version).toBe(before.version + 1);
  const there = new Set(idsOf(after.disks));
  const wrong: unknown[] = [];
  for (const [partition, owners] of after.owners.entries()) {
    const former = (before.owners[partition] ?? []).filter((id) => there.has(id));
    const previous = after.previous[partition] ?? [];
    const awaited = [...former, ...(before.previous[partition] ?? [])].filter(
      (id) => there.has(id) && !owners.includes(id),
    );
    if (owners.length < former.length || new Set(owners).size !== owners.length)
      wrong.push({ partition, owners });
    if (new Set(previous).size !== previous.length) wrong.push({ partition, previous });
    if (previous.toSorted().join() !== [...new Set(awaited)].sort().join())
      wrong.push({ partition, previous });
  }
  expect(wrong).toEqual([]);
  const isChanged =
    movedCount(before, after) > 0 || after.owners.some((ids, at) => ids.length !== before.owners[at]?.length);
  expect(after.auditFrom).toBe(isChanged ? after.version : before.auditFrom);
  expect(decodePlacement(encodePlacement(after))).toEqual(after);
}

/** Leaving disks own nothing that other disks could own. */
function expectLeft(map: PlacementMap): void {
  const staying = new Set(idsOf(map.disks.filter((disk) => disk.leave === undefined)));
  for (const owners of map.owners) {
    const stayingCount = owners.filter((id) => staying.has(id)).length;
    if (stayingCount < Math.min(map.copies, staying.size)) throw new Error('too few stay');
    if (owners.length > stayingCount && staying.size >= map.copies) throw new Error('a leaving disk owns');
  }
}

const someDisks = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 2 }), fc.integer({ min: 1, max: 3 }))
  .map(([zones, nodesPerZone, disksPerNode]) => placedDisks({ zones, nodesPerZone, disksPerNode }));

type Act = { kind: 'join' | 'drain' | 'lose' | 'return' | 'clear' | 'balance'; which: number; count: number };
const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('join', 'drain', 'lose', 'return', 'clear', 'balance'),
    which: fc.nat(),
    count: fc.integer({ min: 1, max: 2 }),
  }),
  { minLength: 1, maxLength: 6 },
);

function apply(map: PlacementMap, { kind, which, count }: Act, joinedSoFar: number): PlacementMap {
  const some = Array.from({ length: count }, (_, at) => map.disks[(which + at) % map.disks.length]?.id ?? '');
  if (kind === 'drain') return leave(map, some, 'draining');
  if (kind === 'lose') return leave(map, some, 'absent');
  if (kind === 'return') return leave(map, some, undefined);
  if (kind === 'clear') return clearPrevious(map);
  if (kind === 'balance') return changePlacement(map, { disks: map.disks });
  const like = map.disks[which % map.disks.length];
  if (like === undefined) throw new Error('there are disks');
  const { leave: _leave, ...place } = like;
  return join(
    map,
    some.map((_, at) => ({
      ...place,
      nodeId: `new-${joinedSoFar}`,
      id: `${joinedSoFar}f${at}`.padEnd(32, 'e'),
    })),
  );
}

test('after any sequence of changes no partition has lost an owner, and previous owners are recorded', () => {
  fc.assert(
    fc.property(someDisks, acts, (disks, all) => {
      let map = makePlacement({ disks, copies: 3 });
      for (const [at, act] of all.entries()) {
        const next = apply(map, act, at);
        if (act.kind === 'clear') expect(isPending(next)).toBe(false);
        else expectTold(map, next);
        expectLeft(next);
        // One pending change per partition: staying owners remain, unless one returns.
        const back = new Set(idsOf(next.disks.filter((disk) => disk.leave === undefined)));
        const gone = map.owners.flatMap((ids, partition) => {
          const isFree = map.previous[partition]?.length === 0 || act.kind === 'return';
          return isFree
            ? []
            : ids.filter((id) => back.has(id) && next.owners[partition]?.includes(id) !== true);
        });
        expect(gone).toEqual([]);
        map = next;
      }
    }),
    runs,
  );
});

test('evening out twice equals evening out once, when nothing is pending', () => {
  fc.assert(
    fc.property(someDisks, acts, (disks, all) => {
      let map = makePlacement({ disks, copies: 3 });
      for (const [at, act] of all.entries()) map = apply(map, act, at);
      const even = changePlacement(clearPrevious(map), { disks: map.disks });
      const again = changePlacement(clearPrevious(even), { disks: map.disks });
      expect(movedCount(even, again)).toBe(0);
      expect(again.auditFrom).toBe(even.auditFrom);
    }),
    runs,
  );
});

describe('leaving disks', () => {
  const disks = placedDisks({ zones: 5, nodesPerZone: 2, disksPerNode: 2 });
  const full = makePlacement({ disks, copies: 3 });
  const gone = idsOf(disks.slice(0, 2));
  const ownedBy = (map: PlacementMap, ids: readonly DiskId[]) =>
    map.owners.reduce((count, owners) => count + owners.filter((id) => ids.includes(id)).length, 0);

  test.each(['draining', 'absent'] as const)('%s: what they had moves, and hardly more', (why) => {
    const less = leave(full, gone, why);
    expect(ownedBy(less, gone)).toBe(0);
    expect(movedCount(full, less)).toBeLessThanOrEqual(ownedBy(full, gone) + 8);
    expect(holdings(less).get(gone[0] ?? '')?.pendingCount).toBe(ownedBy(full, gone.slice(0, 1)));
  });

  test.each([
    ['while the change is pending', (map: PlacementMap) => map],
    ['after it was done', clearPrevious],
  ])('who returns %s has exactly what it had', (_when, done) => {
    const again = leave(done(leave(full, gone, 'absent')), gone, undefined);
    expect(asSets(again.owners)).toEqual(asSets(full.owners));
    expect(again.former.flat()).toEqual([]);
  });

  test('two disks that leave one after the other return in either order', () => {
    const [first = '', second = ''] = [disks[0]?.id, disks[9]?.id];
    const away = leave(leave(full, [first], 'absent'), [second], 'absent');
    for (const order of [
      [first, second],
      [second, first],
    ]) {
      let map = away;
      for (const id of order) map = leave(map, [id], undefined);
      expect(movedCount(full, map)).toBeLessThanOrEqual(PARTITIONS / 25);
    }
  });

  test.each([2, 3])('a disk that returns during a pending change crowds no node (of %i)', (copies) => {
    const [first, , second] = placedDisks({ zones: copies, disksPerNode: 2 });
    let map = makePlacement({ disks: placedDisks({ zones: copies, disksPerNode: 2 }), copies });
    for (const disk of [first, second]) map = leave(map, [disk?.id ?? ''], 'absent');
    map = leave(map, [first?.id ?? ''], undefined);
    expect(leastSpread(map)).toEqual({ zones: copies, nodes: copies });
    expect(holdings(map).get(first?.id ?? '')?.ownedCount).toBe(PARTITIONS / 2);
  });

  test('a disk that returns after others have joined gets no more than its share', () => {
    const less = clearPrevious(leave(full, gone, 'absent'));
    const place = { capacityBytes: 2 ** 40, address: '127.0.0.1:1' };
    const grown = clearPrevious(
      join(
        less,
        [1, 2, 3, 4, 5, 6].map((at) => ({
          ...place,
          zone: `zone-${at % 5}`,
          nodeId: `node-${at}`,
          id: `${at}`.repeat(32),
        })),
      ),
    );
    const again = leave(grown, gone, undefined);
    const share = (3 * PARTITIONS) / 26;
    for (const id of gone)
      expect(Math.abs((holdings(again).get(id)?.ownedCount ?? 0) - share)).toBeLessThanOrEqual(2);
    expect(movedCount(grown, again)).toBeLessThanOrEqual(1.2 * 2 * share);
  });

  test('own partitions while too few disks are left, the draining ones before the lost', () => {
    const few = makePlacement({ disks: placedDisks({ zones: 4 }), copies: 3 });
    const [a = '', b = '', c = ''] = idsOf(few.disks);
    const lost = leave(few, [a], 'absent');
    const next = leave(leave(lost, [b], 'draining'), [c], 'absent');
    expectLeft(next);
    expect(next.owners.every((owners) => owners.length === 3)).toBe(true);
    const none = leave(next, idsOf(next.disks), 'draining');
    expect(asSets(none.owners)).toEqual(asSets(next.owners));
  });

  test('a zone that returns makes copies distinct again', () => {
    const zoned = makePlacement({ disks: placedDisks({ zones: 3, disksPerNode: 3 }), copies: 3 });
    const zone = idsOf(zoned.disks.slice(0, 3));
    const again = leave(clearPrevious(leave(zoned, zone, 'absent')), zone, undefined);
    const zoneOf = new Map(again.disks.map((disk) => [disk.id, disk.zone]));
    const best = bestSpread(again.disks, 3).zones;
    expect(again.owners.every((ids) => new Set(ids.map((id) => zoneOf.get(id))).size === best)).toBe(true);
    expect(movedCount(clearPrevious(leave(zoned, zone, 'absent')), again)).toBeLessThanOrEqual(
      PARTITIONS + 8,
    );
  });
});

test('a partition that has changed too often without an audit keeps its owners', () => {
  const disks = placedDisks({ zones: 8, disksPerNode: 3 });
  let map = makePlacement({ disks, copies: 3 });
  const drained: DiskId[] = [];
  for (let turn = 0; turn < 20; turn++) {
    const [next = ''] = map.owners[5] ?? [];
    drained.push(next);
    map = leave(map, [next], 'draining');
  }
  expect(map.previous[5]).toHaveLength(LIMITS.previousOwnersMax);
  expect(map.owners[5]).toHaveLength(3);
  const done = changePlacement(clearPrevious(map), { disks: map.disks });
  expect(done.owners[5]?.some((id) => drained.includes(id))).toBe(false);
});

test('and forgets no previous owner, not even for one that would return', () => {
  const disks = placedDisks({ zones: 8, disksPerNode: 3 });
  const back = disks[0]?.id ?? '';
  const without = leave(makePlacement({ disks, copies: 3 }), [back], 'absent');
  const partition = without.former.findIndex((ids) => ids.includes(back));
  const owners = without.owners[partition] ?? [];
  const others = idsOf(disks).filter((id) => id !== back && !owners.includes(id));
  // The maximum of previous owners, one of which returns while two owners leave.
  const full = [back, ...others.slice(0, LIMITS.previousOwnersMax - 1)];
  const previous = without.previous.map((ids, at) => (at === partition ? full : ids));
  const there = withLeave(without.disks, new Set([back]), undefined);
  const next = changePlacement(
    { ...without, previous },
    { disks: withLeave(there, new Set(owners.slice(0, 2)), 'draining') },
  );
  const known = new Set([...(next.owners[partition] ?? []), ...(next.previous[partition] ?? [])]);
  expect([...owners, ...full].filter((id) => !known.has(id))).toEqual([]);
});

test('a disk that owns nothing is removed for good; one that may have the only copies is not', () => {
  const disks = placedDisks({ zones: 4 });
  const [first] = disks;
  if (first === undefined) throw new Error('there are disks');
  const ids = new Set([first.id]);
  const full = makePlacement({ disks, copies: 3 });
  expect(() => retireDisks(full, ids)).toThrow('not removed');
  const drained = leave(full, [first.id], 'draining');
  expect(() => retireDisks(drained, ids)).toThrow('not removed');
  const removed = retireDisks(clearPrevious(drained), ids);
  expect(idsOf(removed.disks)).toEqual(idsOf(disks.slice(1)));
  expect(removed).toMatchObject({ version: 4, retired: [first.id], auditFrom: 2, owners: drained.owners });
  expect(removed.former.flat()).toEqual([]);
  expect(newDisks(removed, disks)).toEqual([]);
  expect(decodePlacement(encodePlacement(removed))).toEqual(removed);
  const many = { ...removed, retired: Array.from({ length: LIMITS.retiredDisksMax }, (_, at) => `${at}`) };
  const bounded = retireDisks({ ...clearPrevious(drained), retired: many.retired }, ids);
  expect(bounded.retired).toHaveLength(LIMITS.retiredDisksMax);
  expect(bounded.retired.at(-1)).toBe(first.id);
});

describe('300 disks', () => {
  const disks = placedDisks({ zones: 10, nodesPerZone: 6, disksPerNode: 5 });

  async function longestStep(
    steps: ReturnType<typeof makePlacementInSteps>,
  ): Promise<[number, PlacementMap]> {
    let longestMs = 0;
    let since = cpuMs();
    const map = await finishInTurns(steps, async () => {
      longestMs = Math.max(longestMs, cpuMs() - since);
      since = cpuMs();
    });
    return [Math.max(longestMs, cpuMs() - since), map];
  }

  test('no step of a change delays others for long', async () => {
    const [madeMs, full] = await longestStep(makePlacementInSteps({ disks, copies: 3 }));
    const lost = withLeave(disks, new Set(idsOf(disks.slice(0, 30))), 'absent');
    const [lostMs] = await longestStep(changePlacementInSteps(full, { disks: lost }));
    const half = makePlacement({ disks: disks.slice(0, 150), copies: 3 });
    const [grownMs] = await longestStep(changePlacementInSteps(half, { disks }));
    // Steps take a fraction of this; a whole computation takes ten times as long.
    expect(Math.max(madeMs, lostMs, grownMs)).toBeLessThan(100);
  });

  test('the map fits into etcd after any number of changes', () => {
    const full = makePlacement({ disks, copies: 3 });
    const crowded = Array.from({ length: LIMITS.previousOwnersMax }, (_, at) => disks[at]?.id ?? '');
    const all = full.owners.map(() => crowded);
    const retired = Array.from({ length: LIMITS.retiredDisksMax }, () => 'f'.repeat(32));
    const sizeBytes = JSON.stringify(documentOf({ ...full, previous: all, former: all, retired })).length;
    expect(sizeBytes).toBeLessThan(LIMITS.coordinatorValueBytesMax);
  });
});
