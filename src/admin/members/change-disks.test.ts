import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startCoordinatorWorld } from '../../../tests/support/coordination/coordinator-world.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { must } from '../../base/assert.ts';
import { changePlacement, makePlacement } from '../../chunks/placement/placement.ts';
import { clearPrevious, withLeave } from '../../chunks/placement/placement-changes.ts';
import { documentOf, placementOf } from '../../chunks/placement/placement-document.ts';
import type { Coordination } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { type DiskChange, writeDiskChange } from './change-disks.ts';
import { describeDisks, printDisks } from './disks.ts';

/** Ids that differ in their first digits, as real ones do. */
const turned = (id: string) => [...id].reverse().join('');
const disks = placedDisks({ zones: 4, disksPerNode: 2 }).map((disk) => ({ ...disk, id: turned(disk.id) }));
const [first, second, third] = disks as [PlacedDisk, PlacedDisk, PlacedDisk];

let world: ReturnType<typeof startCoordinatorWorld>;
let coordination: Coordination;
let printed: string[] = [];
let owed: string | undefined;
beforeEach(async () => {
  world = startCoordinatorWorld();
  coordination = world.connect('operator');
  printed = [];
  owed = undefined;
  await write(makePlacement({ disks, copies: 3 }), 0);
});
afterEach(() => world.ending.abort());

const membersOf = (served: readonly PlacedDisk[]): Member[] =>
  served.map(({ id, nodeId, zone, address, capacityBytes }) => ({
    nodeId,
    zone,
    address,
    role: 'storage' as const,
    version: '0',
    disks: [{ diskId: id, capacityBytes }],
  }));

const stored = async () => must(await coordination.placementMap.read(), 'there is a map');
const present = async () => placementOf((await stored()).document);
async function write(map: PlacementMap, expected?: number): Promise<void> {
  const revision = expected ?? (await stored()).revision;
  await coordination.placementMap.swap({ expected: revision, document: documentOf(map) });
}

function run(
  change: DiskChange,
  names: string[],
  served: readonly PlacedDisk[] = disks,
  acceptLoss = false,
): Promise<void> {
  const print = (line: string) => void printed.push(line);
  const parts = { coordination, members: membersOf(served), print, whyRequired: async () => owed };
  return writeDiskChange(parts, { change, names, acceptLoss });
}

test('a node is drained, emptied, stopped and removed; each step is refused before its time', async () => {
  const others = disks.slice(2);
  await expect(run('remove', [first.nodeId])).rejects.toThrow(
    /owns \d+ partitions: `holdfast cluster drain`/,
  );
  await run('drain', [first.nodeId]);
  expect(printed).toContain(`Disk ${first.id.slice(0, 8)} drains: others own its partitions.`);
  expect((await present()).disks.slice(0).filter(({ leave }) => leave === 'draining')).toHaveLength(2);
  await expect(run('remove', [first.nodeId])).rejects.toThrow('may have the only copies of chunks');
  await write(clearPrevious(await present()));
  await expect(run('remove', [first.nodeId])).rejects.toThrow('is still served by node');
  await run('remove', [first.nodeId], others);
  const map = await present();
  expect(map.disks.map(({ id }) => id).sort()).toEqual(others.map(({ id }) => id).sort());
  expect([...map.retired].sort()).toEqual([first.id, second.id].sort());
  await expect(run('undrain', [first.id])).rejects.toThrow('has been removed');
});

test('a disk stays while a repair entry may name it as the only holder of a chunk', async () => {
  const others = disks.slice(2);
  await run('drain', [first.nodeId]);
  await write(clearPrevious(await present()));
  owed = 'shard 7 lacks copies of chunks that these disks have';
  await expect(run('remove', [first.nodeId], others)).rejects.toThrow('shard 7 lacks copies');
  expect((await present()).retired).toEqual([]);
  await run('remove', [first.nodeId], others, true);
  expect((await present()).retired).toHaveLength(2);
});

test('the operator is warned when copies will be closer together', async () => {
  await run('drain', [first.nodeId]);
  expect(printed.join('\n')).not.toContain('Attention');
  await run('drain', [third.nodeId]);
  expect(printed.join('\n')).toMatch(
    /Attention: some chunks have their copies in 2 zones on 2 nodes now, and had/,
  );
});

test('an undrained disk gets back what it had', async () => {
  const before = await present();
  await run('drain', [first.id.slice(0, 6)]);
  await run('drain', [first.id]);
  expect(printed.slice(-2)).toEqual([
    'Nothing to do: it is so already.',
    expect.stringMatching(
      /^Disk \w{8}(: [1-9]\d* partitions are still being copied| drains, but owns| owns nothing any more)/,
    ),
  ]);
  await run('undrain', [first.id]);
  const after = await present();
  expect(after.owners.map((ids) => ids.toSorted())).toEqual(before.owners.map((ids) => ids.toSorted()));
  await run('undrain', [first.id]);
  expect(printed.at(-1)).toBe('Nothing to do: it is so already.');
  expect((await present()).version).toBe(after.version);
});

test('with too few other disks the output says that it still owns partitions', async () => {
  await run(
    'drain',
    disks.slice(0, 7).map(({ id }) => id),
  );
  expect(printed.join('\n')).toMatch(/drains, but owns \d+ partitions still: fewer than 3 other disks stay/);
});

test('as many disks as copies remain', async () => {
  const few = changePlacement(await present(), {
    disks: withLeave(disks, new Set(disks.slice(3).map(({ id }) => id)), 'absent'),
  });
  // Three that are gone, one that never owned anything.
  const left = { ...clearPrevious(few), copies: 4 };
  await write(left);
  await expect(
    run(
      'remove',
      disks.slice(3).map(({ id }) => id),
      [],
    ),
  ).rejects.toThrow('3 disks would be left, and there are to be 4 copies');
});

describe('a served disk that is not in the map', () => {
  const fresh = { ...third, id: 'e'.repeat(32), nodeId: 'node-9-0', capacityBytes: 1 };
  const served = [...disks, fresh];
  const freshIn = async () => (await present()).disks.find(({ id }) => id === fresh.id);

  test('is known by its id, and drained before it joins, so that it gets nothing', async () => {
    const { owners } = await present();
    await run('drain', ['eeeeee'], served);
    expect(printed).toEqual([
      'Disk eeeeeeee drains: it is new, holds nothing, and gets nothing.',
      'Placement 2: 0 copies of partitions are to be made.',
    ]);
    expect(await freshIn()).toEqual({ ...fresh, leave: 'draining' });
    expect((await present()).owners).toEqual(owners);
    await run('drain', [fresh.nodeId], served);
    expect(printed.slice(2)).toEqual([
      'Nothing to do: it is so already.',
      'Disk eeeeeeee owns nothing any more.',
    ]);
    await run('remove', [fresh.id], disks);
    expect(await present()).toMatchObject({ retired: [fresh.id], owners });
  });

  test('is drained with the other disks of its node', async () => {
    const beside = { ...fresh, nodeId: first.nodeId, zone: first.zone };
    await run('drain', [first.nodeId], [...disks, beside]);
    const { disks: placed, owners } = await present();
    const draining = placed.filter(({ leave }) => leave === 'draining').map(({ id }) => id);
    expect(draining.sort()).toEqual([first.id, second.id, beside.id].sort());
    expect(owners.flat()).not.toContain(beside.id);
  });

  test('cannot be removed: the output says how it gets nothing', async () => {
    await expect(run('remove', [fresh.id], served)).rejects.toThrow(
      /^disk eeeeeeee of node node-9-0 at .* is new and holds nothing: stop it, or `holdfast cluster drain` it/,
    );
    await run('undrain', [fresh.id], served);
    expect(printed).toEqual(['Nothing to do: it is so already.']);
    expect((await present()).version).toBe(1);
  });
});

test('unknown and ambiguous names are refused with a suggestion', async () => {
  const slip = `${first.nodeId.slice(0, -1)}9`;
  await expect(run('drain', [slip])).rejects.toThrow(/no disk or storage node .*: did you mean node-0-0\?/);
  await expect(run('drain', ['node-'])).rejects.toThrow('node- may be any of node-0-0, node-1-0');
  await expect(run('drain', ['zzzzzzzz'])).rejects.toThrow(/^there is no disk or storage node zzzzzzzz$/);
  await expect(run('drain', ['0'])).rejects.toThrow('there is no disk or storage node 0');
});

test('a command that loses a race with the placer starts again', async () => {
  const { placementMap } = coordination;
  let isRaced = false;
  const raced: Pick<Coordination, 'placementMap'> = {
    placementMap: {
      ...placementMap,
      async swap(change) {
        if (!isRaced) {
          isRaced = true;
          await write(
            changePlacement(await present(), { disks: withLeave(disks, new Set([third.id]), 'absent') }),
          );
        }
        return placementMap.swap(change);
      },
    },
  };
  const print = (line: string) => void printed.push(line);
  await writeDiskChange(
    { coordination: raced, members: [], whyRequired: async () => owed, print },
    { change: 'drain', names: [first.id] },
  );
  const leaves = new Map((await present()).disks.map(({ id, leave }) => [id, leave]));
  expect([leaves.get(first.id), leaves.get(third.id)]).toEqual(['draining', 'absent']);
});

test('lists disks with their partitions, pending ones, and whether they are served', async () => {
  await run('drain', [first.id]);
  const joiningDisk = { ...third, id: 'e'.repeat(32), nodeId: 'node-9-0' };
  const found = await describeDisks(coordination, membersOf([...disks.slice(1), joiningDisk]));
  const of = (id: string) => found.disks.find(({ diskId }) => diskId === id);
  expect(of(first.id)).toMatchObject({
    state: 'draining',
    ownedCount: 0,
    pendingCount: 1536,
    isServed: false,
  });
  expect(of(second.id)).toMatchObject({ state: 'placed', pendingCount: 0, isServed: true, zone: 'zone-0' });
  expect(of(joiningDisk.id)).toMatchObject({ state: 'new', ownedCount: 0, isServed: true });
  expect(found).toMatchObject({
    version: 2,
    auditFrom: 2,
    copies: 3,
    pendingPartitionCount: 1536,
    retired: [],
  });
  const lines: string[] = [];
  printDisks(found, (line) => void lines.push(line));
  expect(lines.join('\n')).toMatch(/draining +NO/);
  expect(lines.at(-1)).toContain('1536 partitions is pending');
});

test('lists a removed disk that is served again, with the reason why it stays empty', async () => {
  const map = await present();
  await write({ ...map, version: 2, retired: ['f'.repeat(32)] });
  const back = { ...first, id: 'f'.repeat(32) };
  const found = await describeDisks(coordination, membersOf([...disks, back]));
  expect(found.disks.at(-1)).toMatchObject({
    diskId: back.id,
    state: 'removed',
    isServed: true,
    ownedCount: 0,
  });
});
