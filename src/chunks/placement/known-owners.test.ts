import { expect, test } from 'vitest';
import type { BlobId } from '../../types/names.ts';
import { createKnownPlacement } from './known-placement.ts';
import { knownOwners, makePlacement, NO_PLACEMENT, ownersOf } from './placement.ts';

const disk = (name: string) => ({
  id: name.repeat(32),
  nodeId: name,
  zone: name,
  address: `${name}:1`,
  capacityBytes: 1e12,
});
const id = { blobId: '0123456789ab00070123456789abcdef' as BlobId, index: 3 };

test('answers by the newest known map', () => {
  const heard: number[] = [];
  const placement = createKnownPlacement(NO_PLACEMENT, (version) => heard.push(version));
  const owners = knownOwners(placement);
  expect([owners.version(), owners.owns('a'.repeat(32), id)]).toEqual([0, false]);
  owners.noteVersion(1);
  expect(heard).toEqual([1]);
  const map = makePlacement({ disks: ['a', 'b', 'c', 'd', 'e'].map(disk), copies: 2 });
  placement.learn(map);
  expect(owners.version()).toBe(map.version);
  const owning = map.disks.map((one) => one.id).filter((diskId) => owners.owns(diskId, id));
  expect(owning.sort()).toEqual([...ownersOf(map, id)].sort());
  expect(owning).toHaveLength(2);
});
