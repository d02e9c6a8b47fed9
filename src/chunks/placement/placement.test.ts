import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { amountOf, isLongForm } from '../../../tests/support/run/long-form.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { makeBlobId } from '../../types/names.ts';
import { changePlacement, disksById, makePlacement, ownersOf, partitionOf } from './placement.ts';
import { decodePlacement, encodePlacement } from './placement-record.ts';
import { bestSpread, shareOut } from './placement-shares.ts';

const PARTITIONS = LIMITS.partitionCount;
const TiB = 1024 ** 4;

function heldBy(map: PlacementMap): Map<DiskId, number> {
  const held = new Map(map.disks.map(({ id }) => [id, 0]));
  for (const id of map.owners.flat()) held.set(id, (held.get(id) ?? 0) + 1);
  return held;
}

function movedCopies(before: PlacementMap, after: PlacementMap): number {
  return after.owners.reduce(
    (moved, owners, partition) =>
      moved + owners.filter((id) => before.owners[partition]?.includes(id) !== true).length,
    0,
  );
}

/** The least number of copies that any change must make. */
function leastMoves(before: PlacementMap, after: PlacementMap): number {
  const held = heldBy(before);
  return [...heldBy(after)].reduce(
    (least, [id, count]) => least + Math.max(0, count - (held.get(id) ?? 0)),
    0,
  );
}

/** As distinct as the disks allow, and no disk twice. */
function expectDistinct(map: PlacementMap): void {
  const best = bestSpread(map.disks, map.copies);
  const disks = disksById(map);
  const worst = {
    copies: Number.POSITIVE_INFINITY,
    zones: Number.POSITIVE_INFINITY,
    nodes: Number.POSITIVE_INFINITY,
  };
  for (const owners of map.owners) {
    const placed = owners.flatMap((id) => disks.get(id) ?? []);
    worst.copies = Math.min(worst.copies, new Set(placed).size);
    worst.zones = Math.min(worst.zones, new Set(placed.map(({ zone }) => zone)).size);
    worst.nodes = Math.min(worst.nodes, new Set(placed.map(({ nodeId }) => nodeId)).size);
  }
  expect(map.owners).toHaveLength(PARTITIONS);
  expect(worst).toEqual(best);
}

/** Each disk within a few percent of its share. */
function expectBalanced(map: PlacementMap): void {
  const shares = shareOut(map.disks, bestSpread(map.disks, map.copies));
  for (const [id, count] of heldBy(map)) {
    const share = shares.get(id) ?? 0;
    expect(Math.abs(count - share)).toBeLessThanOrEqual(1 + 0.03 * share);
  }
}

const someDisks = fc
  .tuple(
    fc.integer({ min: 1, max: 5 }),
    fc.integer({ min: 1, max: 3 }),
    fc.integer({ min: 1, max: 3 }),
    fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 7 }),
  )
  .map(([zones, nodesPerZone, disksPerNode, sizes]) =>
    placedDisks({
      zones,
      nodesPerZone,
      disksPerNode,
      capacityOf: (at) => (sizes[at % sizes.length] ?? 1) * TiB,
    }),
  );
const someCopies = fc.integer({ min: 1, max: 3 });
/** The long form looks elsewhere each time. */
const runs = { numRuns: amountOf({ short: 8, long: 200 }), ...(!isLongForm && { seed: 1 }) };

describe('a first map', () => {
  test('keeps copies as far apart as the disks allow, and fills disks by capacity', () => {
    fc.assert(
      fc.property(someDisks, someCopies, (disks, copies) => {
        const map = makePlacement({ disks, copies });
        expectDistinct(map);
        expectBalanced(map);
      }),
      runs,
    );
  });

  test('fills equal disks equally, and larger ones in proportion', () => {
    const disks = placedDisks({ zones: 4, disksPerNode: 2, capacityOf: (at) => (1 + (at % 2)) * TiB });
    const held = [...heldBy(makePlacement({ disks, copies: 3 })).values()];
    for (const [at, count] of held.entries()) {
      expect(Math.abs(count - ((1 + (at % 2)) * PARTITIONS) / 4)).toBeLessThanOrEqual(1);
    }
  });

  test('puts each partition once into a zone that is too large for distinct copies', () => {
    const disks = placedDisks({ zones: 4, capacityOf: (at) => (at === 0 ? 20 : 1) * TiB });
    const held = [...heldBy(makePlacement({ disks, copies: 3 })).values()];
    expect(held[0]).toBe(PARTITIONS);
    expect(Math.max(...held.slice(1)) - Math.min(...held.slice(1))).toBeLessThanOrEqual(1);
  });

  test('has the disks of one node in one zone, whatever is reported', () => {
    const [a, b, c, d] = placedDisks({ zones: 4 }) as [PlacedDisk, PlacedDisk, PlacedDisk, PlacedDisk];
    const map = makePlacement({
      disks: [a, { ...b, nodeId: a.nodeId }, { ...c, zone: d.zone }, d],
      copies: 3,
    });
    const nodes = new Map(map.disks.map(({ id, nodeId }) => [id, nodeId]));
    const nodeCounts = map.owners.map((ids) => new Set(ids.map((id) => nodes.get(id))).size);
    expect(Math.min(...nodeCounts)).toBe(3);
  });

  test('does not depend on the order of the disks', () => {
    const disks = placedDisks({ zones: 3, nodesPerZone: 2 });
    expect(makePlacement({ disks: disks.toReversed(), copies: 3 })).toEqual(
      makePlacement({ disks, copies: 3 }),
    );
  });

  test("spreads the other copies of one disk's chunks over many disks", () => {
    const map = makePlacement({ disks: placedDisks({ zones: 3, disksPerNode: 4 }), copies: 3 });
    const [first] = map.disks;
    const beside = new Set(map.owners.filter((ids) => ids.includes(first?.id ?? '')).flat());
    expect(beside.size).toBe(1 + 8);
  });
});

describe('a changed map', () => {
  const change = fc.tuple(someDisks, someCopies, fc.array(fc.nat(), { minLength: 1, maxLength: 3 }));

  test('is as good as a first one after disks have gone, and moves little more than it must', () => {
    fc.assert(
      fc.property(change, ([disks, copies, gone]) => {
        const left = disks.filter((_, at) => !gone.some((number) => number % disks.length === at));
        fc.pre(left.length > 0);
        expectGoodChange(makePlacement({ disks, copies }), left);
      }),
      runs,
    );
  });

  test('is as good as a first one after disks have joined', () => {
    fc.assert(
      fc.property(change, fc.boolean(), ([disks, copies, added], isNewZone) => {
        const more = added.map((number, at): PlacedDisk => {
          const like = disks[number % disks.length] ?? disks[0];
          if (like === undefined) throw new Error('there are disks');
          const place = isNewZone ? { zone: 'new', nodeId: `new-${at}` } : {};
          return { ...like, ...place, id: `f${at}`.padEnd(32, '0') };
        });
        expectGoodChange(makePlacement({ disks, copies }), [...disks, ...more]);
      }),
      runs,
    );
  });

  function expectGoodChange(before: PlacementMap, disks: readonly PlacedDisk[]): void {
    const after = changePlacement(before, { disks });
    expect(after.version).toBe(before.version + 1);
    expectDistinct(after);
    expectBalanced(after);
    // Where there are hardly more zones than copies, some copies must make room for others.
    expect(movedCopies(before, after)).toBeLessThanOrEqual(1.6 * leastMoves(before, after) + disks.length);
  }

  test('moves only what it must where there are zones to spare', () => {
    const disks = placedDisks({ zones: 5, nodesPerZone: 2, disksPerNode: 3 });
    const full = makePlacement({ disks, copies: 3 });
    const less = changePlacement(full, { disks: disks.slice(1) });
    const again = changePlacement(less, { disks });
    for (const [before, after] of [
      [full, less],
      [less, again],
    ] as const) {
      expect(movedCopies(before, after)).toBeLessThanOrEqual(1.02 * leastMoves(before, after));
      expect(movedCopies(before, after)).toBeLessThanOrEqual(1.05 * ((3 * PARTITIONS) / 30));
    }
  });

  test('moves nothing when the disks are unchanged', () => {
    const before = makePlacement({ disks: placedDisks({ zones: 4, disksPerNode: 3 }), copies: 3 });
    const moved = before.disks.map((disk) => ({ ...disk, address: '127.0.0.1:1' }));
    const after = changePlacement(before, { disks: moved });
    expect(after.owners.map((owners) => owners.toSorted())).toEqual(
      before.owners.map((owners) => owners.toSorted()),
    );
    expect(after.disks).toEqual(moved);
  });

  test('moves nothing unnecessary from one node to three zones', () => {
    const [first, ...others] = placedDisks({ zones: 3 });
    if (first === undefined) throw new Error('there are disks');
    const before = makePlacement({ disks: [first], copies: 3 });
    const after = changePlacement(before, { disks: [first, ...others] });
    expect([...heldBy(after).values()]).toEqual([PARTITIONS, PARTITIONS, PARTITIONS]);
    expect(movedCopies(before, after)).toBe(2 * PARTITIONS);
  });
});

test('chunks are spread over partitions, also those of one blob', () => {
  const counts = new Array<number>(64).fill(0);
  const note = (partition: number) => {
    counts[partition % 64] = (counts[partition % 64] ?? 0) + 1;
  };
  const newBlob = () => makeBlobId({ timeMs: Date.now(), homeShard: 3, random: randomBytes(8) });
  for (let at = 0; at < 3200; at++) note(partitionOf({ blobId: newBlob(), index: 0 }));
  const blobId = newBlob();
  for (let index = 0; index < 3200; index++) note(partitionOf({ blobId, index }));
  expect(Math.min(...counts)).toBeGreaterThan(40);
  expect(Math.max(...counts)).toBeLessThan(200);
});

test('the partition of a chunk never changes', () => {
  const blobId = makeBlobId({ timeMs: 1_700_000_000_000, homeShard: 5, random: Buffer.alloc(8, 7) });
  expect([0, 1, 2].map((index) => partitionOf({ blobId, index }))).toMatchInlineSnapshot(`
    [
      268,
      410,
      32,
    ]
  `);
});

test('is small as bytes, and decodes to the same map', () => {
  const map = makePlacement({ disks: placedDisks({ zones: 5, disksPerNode: 20 }), copies: 3 });
  const bytes = encodePlacement(map);
  expect(decodePlacement(bytes)).toEqual(map);
  expect(bytes.length).toBeLessThan(64 * 1024);
  const blobId = makeBlobId({ timeMs: 1, homeShard: 0, random: Buffer.alloc(8) });
  expect(ownersOf(decodePlacement(bytes), { blobId, index: 0 })).toEqual(ownersOf(map, { blobId, index: 0 }));
});
