import { expect, test } from 'vitest';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { makeBlobId } from '../../types/names.ts';
import { changePlacement, makePlacement, partitionOf } from '../placement/placement.ts';
import { withLeave } from '../placement/placement-changes.ts';
import { readingOrder, standIn } from './candidates.ts';
import type { DiskHealth } from './disk-health.ts';

const allWell = { isWell: () => true } as unknown as DiskHealth;
const blobId = makeBlobId({ timeMs: 1, homeShard: 0, random: Buffer.alloc(8) });
const chunkIn = (partition: number) => {
  for (let index = 0; ; index++) {
    const id = { blobId, index };
    if (partitionOf(id) === partition) return id;
  }
};

test('reads ask owners, then previous owners, then others; unhealthy disks come last', () => {
  const disks = placedDisks({ zones: 5 });
  const map = makePlacement({ disks, copies: 3 });
  const [gone = ''] = map.owners[7] ?? [];
  const next = changePlacement(map, { disks: withLeave(map.disks, new Set([gone]), 'draining') });
  const id = chunkIn(7);
  const ordered = readingOrder(next, id, { near: {}, health: allWell }).map((disk) => disk.id);
  expect(ordered.slice(0, 3).sort()).toEqual(next.owners[7]?.toSorted());
  expect(ordered.slice(3)).toEqual([gone]);
  const [sick = ''] = ordered;
  const health = { isWell: (disk: string) => disk !== sick } as unknown as DiskHealth;
  const around = readingOrder(next, id, { near: {}, health }).map((disk) => disk.id);
  expect(around.slice(2)).toEqual([gone, sick]);
  // A near previous owner comes after the owners, too.
  const near = { nodeId: disks.find((disk) => disk.id === gone)?.nodeId ?? '' };
  expect(readingOrder(next, id, { near, health: allWell }).at(-1)?.id).toBe(gone);
});

test('a leaving disk is a stand-in only if there is no other', () => {
  const [first, second, third] = placedDisks({ zones: 3 });
  if (first === undefined || second === undefined || third === undefined) throw new Error('three disks');
  const draining = { ...second, leave: 'draining' as const };
  expect(standIn([draining, { ...third, zone: first.zone }], [first])?.id).toBe(third.id);
  expect(standIn([draining], [first])?.id).toBe(second.id);
});
