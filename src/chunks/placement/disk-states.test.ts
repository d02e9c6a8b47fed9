import { expect, test } from 'vitest';
import { memberOf } from '../../../tests/support/disks/disk-placer.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { must } from '../../base/assert.ts';
import { LIMITS } from '../../types/limits.ts';
import { countOwnerNodes, isMissed, readDiskStates } from './disk-states.ts';
import { changePlacement, makePlacement } from './placement.ts';
import { clearPrevious, retireDisks, withLeave } from './placement-changes.ts';

const disks = placedDisks({ zones: 4 });
const first = must(disks[0], 'a disk');
const map = makePlacement({ disks, copies: 3 });
const all = LIMITS.partitionCount;

const seen = (...given: Parameters<typeof readDiskStates>) =>
  readDiskStates(...given).map(({ disk, state, ownedCount, pendingCount }) => [
    ...[disks.findIndex(({ id }) => id === disk.id), state, disk.leave ?? 'stays', ownedCount, pendingCount],
  ]);

test('disks of the map are served or away, others are new or removed', () => {
  const share = (3 * all) / 4;
  expect(seen(map, disks.slice(1).map(memberOf))).toEqual([
    [0, 'away', 'stays', share, 0],
    ...[1, 2, 3].map((at) => [at, 'serving', 'stays', share, 0]),
  ]);
  expect(seen(undefined, disks.slice(0, 1).map(memberOf))).toEqual([[0, 'new', 'stays', 0, 0]]);
  const three = makePlacement({ disks: disks.slice(0, 3), copies: 3 });
  expect(seen(three, disks.map(memberOf)).at(-1)).toEqual([3, 'new', 'stays', 0, 0]);
});

test('a drain is done when the disk owns nothing, also by pending changes; then it may be removed', () => {
  const ids = new Set([first.id]);
  const drained = changePlacement(map, { disks: withLeave(map.disks, ids, 'draining') });
  const members = disks.map(memberOf);
  expect(seen(drained, members)[0]).toEqual([0, 'serving', 'draining', 0, (3 * all) / 4]);
  const done = clearPrevious(drained);
  expect(seen(done, members)[0]).toEqual([0, 'serving', 'draining', 0, 0]);
  expect(seen(retireDisks(done, ids), members).at(-1)).toEqual([0, 'removed', 'stays', 0, 0]);
});

test('the present address of a disk counts, not the one in the map', () => {
  const moved = { ...first, nodeId: 'another', address: '127.0.0.1:1', capacityBytes: 5 };
  expect(readDiskStates(map, [memberOf(moved)])[0]?.disk).toEqual(moved);
  expect(readDiskStates(map, [{ ...memberOf(moved), role: 'metadata' }])[0]).toMatchObject({
    disk: first,
    state: 'away',
  });
});

test('a disk that owns nothing is missed only if it is to stay', () => {
  const held = { ownedCount: 0, pendingCount: 0 };
  expect(isMissed(held)).toBe(true);
  expect(isMissed({ ...held, leave: 'absent' })).toBe(false);
  expect(isMissed({ ...held, pendingCount: 1, leave: 'absent' })).toBe(true);
  expect(isMissed({ ...held, ownedCount: 1, leave: 'draining' })).toBe(true);
});

test('counts nodes with owners', () => {
  const of = (nodeId: string, ownedCount: number) => ({ nodeId, ownedCount });
  expect(countOwnerNodes([of('a', 1), of('a', 2), of('b', 0), of('c', 9)])).toBe(2);
});
