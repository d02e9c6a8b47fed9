import { expect, test } from 'vitest';
import { pass, startCoordinatorWorld } from '../../tests/support/coordinator-world.ts';
import { eventLog } from '../../tests/support/coordinators.ts';
import { placedDisks } from '../../tests/support/placed-disks.ts';
import type { Member } from '../ports/members.ts';
import type { PlacedDisk, PlacementMap } from '../ports/placement.ts';
import { placementOf, runDiskPlacer } from './place-disks.ts';

const LOOKED_MS = 11_000;

const memberOf = ({ id, nodeId, zone, address, capacityBytes }: PlacedDisk): Member => ({
  ...{ nodeId, zone, address, role: 'storage', version: '0' },
  disks: [{ diskId: id, capacityBytes }],
});

function startPlacer() {
  const { clock, connect, over } = startCoordinatorWorld();
  const { placementMap, jobLocks } = connect('a');
  let members: Member[] = [];
  const deps = { chunkCopies: 3, placementMap, jobLocks, clock, log: eventLog(), members: () => members };
  void runDiskPlacer(deps, over.signal);
  return {
    stop: () => over.abort(),
    async mapWith(disks: readonly PlacedDisk[]): Promise<PlacementMap | undefined> {
      members = disks.map(memberOf);
      await pass(clock, LOOKED_MS);
      const stored = await placementMap.read();
      return stored && placementOf(stored.document);
    },
  };
}

test('no map before there are nodes for all copies; disks that come later are added and own nothing yet', async () => {
  const disks = placedDisks({ zones: 5 });
  const placer = startPlacer();
  expect(await placer.mapWith(disks.slice(0, 2))).toBeUndefined();
  const first = await placer.mapWith(disks.slice(0, 3));
  expect(first?.disks).toEqual(disks.slice(0, 3));
  // One is away for good, two others come.
  const next = await placer.mapWith(disks.slice(1));
  expect(next?.disks).toEqual(disks);
  expect(next?.owners).toEqual(first?.owners);
  expect(next?.version).toBe(2);
  expect((await placer.mapWith(disks.slice(2)))?.version).toBe(2);
  placer.stop();
});
