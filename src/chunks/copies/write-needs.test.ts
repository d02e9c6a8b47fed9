import { expect, test } from 'vitest';
import { areEnough, neededCopies } from './write-needs.ts';

const disks = (nodes: string) => [...nodes].map((nodeId) => ({ nodeId }));
const draining = (nodes: string) => disks(nodes).map((disk) => ({ ...disk, leave: 'draining' as const }));
const absent = (nodes: string) => disks(nodes).map((disk) => ({ ...disk, leave: 'absent' as const }));

test.each([
  ['three nodes', disks('abc'), 3, { copies: 2, nodes: 2 }],
  ['one copy wanted', disks('abc'), 1, { copies: 1, nodes: 1 }],
  ['one node', disks('aaa'), 3, { copies: 2, nodes: 1 }],
  ['one disk', disks('a'), 3, { copies: 1, nodes: 1 }],
  ['no disk', [], 3, { copies: 1, nodes: 0 }],
  ['others drained', [...disks('aa'), ...draining('bc')], 3, { copies: 2, nodes: 1 }],
  ['others drained, one disk left', [...disks('a'), ...draining('b')], 3, { copies: 1, nodes: 1 }],
  ['all drained', draining('ab'), 3, { copies: 2, nodes: 2 }],
  ['others away', [...disks('aa'), ...absent('bc')], 3, { copies: 2, nodes: 2 }],
] as const)('what a new chunk needs: %s', (_, placed, copies, needed) => {
  expect(neededCopies(placed, copies)).toEqual(needed);
});

test('enough copies means enough disks on enough nodes', () => {
  const needed = { copies: 2, nodes: 2 };
  expect(['a', 'aa', 'ab', 'aab'].map((nodes) => areEnough(disks(nodes), needed))).toEqual([
    ...[false, false],
    ...[true, true],
  ]);
  expect(areEnough(disks('aa'), { copies: 2, nodes: 1 })).toBe(true);
  expect(areEnough(disks('a'), { copies: 2, nodes: 1 })).toBe(false);
});
