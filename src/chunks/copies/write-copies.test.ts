import { describe, expect, test } from 'vitest';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import {
  chunkId,
  chunkOwnedBy,
  openReplicatedWorld,
  type ReplicatedWorld,
  watch,
} from '../../../tests/support/disks/replicated-world.ts';
import { must } from '../../base/assert.ts';
import type { PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { OtherBytes } from '../../types/chunk-refusals.ts';
import { LIMITS } from '../../types/limits.ts';
import { changePlacement, makePlacement, ownersOf } from '../placement/placement.ts';
import { withLeave } from '../placement/placement-changes.ts';

const PATIENCE_MS = LIMITS.lastCopyPatienceMs;
const fourZones = placedDisks({ zones: 4 });
const chunk = () => new Uint8Array(1000).fill(7);
const holders = ({ disks }: ReplicatedWorld) => disks.filter(({ stored }) => stored.size > 0);

describe('copies', () => {
  test('go to the owners at once, and to no other disk', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    await world.chunks.put(world.id, chunk());
    expect(world.owners.map(({ stored }) => stored.size)).toEqual([1, 1, 1]);
    expect(world.others.flatMap(({ asked }) => asked)).toEqual([]);
  });

  test('two are enough after a short wait for the third, which follows later', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [slow] = world.owners;
    if (slow !== undefined) slow.mood = 'silent';
    const put = watch(world.chunks.put(world.id, chunk()));
    await world.stateAfter(PATIENCE_MS - 1);
    expect(put.state).toBe('pending');
    await world.stateAfter(1);
    expect(put.state).toBe('done');
    expect(world.released).toHaveLength(0);
    slow?.answerAgain();
    await world.stateAfter(0);
    expect(holders(world)).toHaveLength(3);
    expect(world.released).toHaveLength(1);
  });

  test('one is not enough, also when another one takes long', async () => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 3 }) });
    for (const disk of world.owners.slice(1)) disk.mood = 'silent';
    const put = watch(world.chunks.put(world.id, chunk()));
    await world.stateAfter(LIMITS.copySilentMaxMs - 1);
    expect(put.state).toBe('pending');
    world.owners[1]?.answerAgain();
    await world.stateAfter(PATIENCE_MS);
    expect(put.state).toBe('done');
  });

  test('one is enough where there is one disk', async () => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 1 }) });
    await world.chunks.put(world.id, chunk());
    expect(holders(world)).toHaveLength(1);
  });

  test('two in one zone are not enough while another zone may take one', async () => {
    const disks = placedDisks({ zones: 2, nodesPerZone: 2 });
    const world = openReplicatedWorld({ disks });
    const inFirst = disks.slice(0, 2).map(({ id }) => id);
    const id = chunkOwnedBy(world.placement.current(), (owners) =>
      inFirst.every((one) => owners.includes(one)),
    );
    const beyond = disks.slice(2).map(world.fakes.of);
    for (const disk of beyond) disk.mood = 'silent';
    const put = watch(world.chunks.put(id, chunk()));
    await world.stateAfter(PATIENCE_MS * 2);
    expect(put.state).toBe('pending');
    // The owner in that zone is late, and then its neighbour is, too.
    await world.stateAfter(LIMITS.copyLateMs);
    expect(put.state).toBe('pending');
    await world.stateAfter(LIMITS.copyLateMs);
    await world.stateAfter(LIMITS.copyLateMs);
    expect(put.state).toBe('done');
  });

  test('two in one zone are enough when the other zones are dead', async () => {
    const disks = placedDisks({ zones: 2, nodesPerZone: 2 });
    const world = openReplicatedWorld({ disks });
    for (const disk of disks.slice(2)) world.fakes.of(disk).mood = 'dead';
    await world.chunks.put(world.id, chunk());
    expect(holders(world)).toHaveLength(2);
  });

  test('two on one node are not enough: they are lost together', async () => {
    const disks = placedDisks({ zones: 2, disksPerNode: 3 });
    const world = openReplicatedWorld({ disks });
    for (const disk of disks.slice(3)) world.fakes.of(disk).mood = 'dead';
    await expect(world.chunks.put(world.id, chunk())).rejects.toMatchObject({
      code: 'ServiceUnavailable',
      cause: { message: expect.stringContaining('on 1 of 2 nodes') },
    });
    // No further copies are written to that node: a client that retries would fill it.
    const first = disks.slice(0, 3).map(world.fakes.of);
    expect(first.filter(({ stored }) => stored.size > 0).length).toBeLessThanOrEqual(2);
    expect(disks.slice(3).flatMap((disk) => world.fakes.of(disk).asked)).not.toEqual([]);
    for (const disk of disks.slice(3)) world.fakes.of(disk).mood = 'full';
    await expect(world.chunks.put(chunkId(2), chunk())).rejects.toMatchObject({
      code: 'InsufficientStorage',
    });
  });
});

describe('two copies on one node are enough', () => {
  const put = async (map: PlacementMap, disks: PlacedDisk[]) => {
    const world = openReplicatedWorld({ disks, map });
    for (const disk of disks.slice(3)) world.fakes.of(disk).mood = 'dead';
    await world.chunks.put(world.id, chunk());
    return holders(world).length;
  };
  const disks = placedDisks({ zones: 2, disksPerNode: 3 });
  const others = new Set(disks.slice(3).map(({ id }) => id));

  test('where there is one node', async () => {
    const own = disks.slice(0, 3);
    expect(await put(makePlacement({ disks: own, copies: 3 }), own)).toBe(3);
  });

  test('where the other nodes are drained', async () => {
    const map = makePlacement({ disks, copies: 3 });
    const drained = changePlacement(map, { disks: withLeave(disks, others, 'draining') });
    expect(await put(drained, disks)).toBe(3);
  });

  test.each(['draining', 'absent'] as const)(
    'but not where all are drained, or others are away: %s',
    async (leave) => {
      const map = makePlacement({ disks, copies: 3 });
      const left = leave === 'draining' ? new Set(disks.map(({ id }) => id)) : others;
      const changed = changePlacement(map, { disks: withLeave(disks, left, leave) });
      await expect(put(changed, disks)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    },
  );
});

test('one copy is enough where all disks but one are drained', async () => {
  const disks = placedDisks({ zones: 2 });
  const [, gone] = disks;
  const map = makePlacement({ disks, copies: 3 });
  const leaving = withLeave(disks, new Set([must(gone, 'a disk').id]), 'draining');
  const world = openReplicatedWorld({ disks, map: changePlacement(map, { disks: leaving }) });
  // While the draining disk is there it gets a copy, too.
  await world.chunks.put(chunkId(1), chunk());
  expect(holders(world)).toHaveLength(2);
  for (const disk of disks.slice(1)) world.fakes.of(disk).mood = 'dead';
  await world.chunks.put(chunkId(2), chunk());
  expect(world.disks.map(({ stored }) => stored.size)).toEqual([2, 1]);
});

describe('while the only disk of another zone, or node, leaves', () => {
  const drained = (disks: PlacedDisk[], leaving: PlacedDisk | undefined, leave: 'draining' | 'absent') => {
    const map = makePlacement({ disks, copies: 3 });
    return changePlacement(map, { disks: withLeave(disks, new Set([must(leaving, 'a disk').id]), leave) });
  };

  test.each(['zone', 'nodeId'] as const)('%s: its owners alone are asked', async (key) => {
    const disks = placedDisks(
      key === 'zone' ? { zones: 2, nodesPerZone: 6 } : { zones: 1, nodesPerZone: 2, disksPerNode: 6 },
    );
    const [first] = disks;
    const staying = disks.filter((disk) => disk[key] === first?.[key]);
    const leaving = must(disks.at(-1), 'a disk');
    const world = openReplicatedWorld({ disks, map: drained([...staying, leaving], leaving, 'draining') });
    await world.chunks.put(world.id, chunk());
    expect(world.owners.map(({ stored }) => stored.size)).toEqual([1, 1, 1]);
    expect(world.others.flatMap(({ asked }) => asked)).toEqual([]);
  });

  test('full disks are reported beside disks that were given up', async () => {
    const disks = placedDisks({ zones: 5 });
    const [first, second, ...others] = disks;
    const gone = new Set([first?.id ?? '', second?.id ?? '']);
    const map = changePlacement(makePlacement({ disks, copies: 3 }), {
      disks: withLeave(disks, gone, 'absent'),
    });
    const world = openReplicatedWorld({ disks, map });
    for (const disk of disks) world.fakes.of(disk).mood = others.includes(disk) ? 'full' : 'dead';
    await expect(world.chunks.put(world.id, chunk())).rejects.toMatchObject({ code: 'InsufficientStorage' });
    // A disk that was given up and is full says nothing about those that do not answer.
    for (const disk of disks)
      world.fakes.of(disk).mood = disk === first || disk === others[0] ? 'full' : 'dead';
    await expect(world.chunks.put(chunkId(2), chunk())).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  });
});

describe('a stand-in', () => {
  test('takes the copy of a dead owner, in a zone without a copy', async () => {
    const disks = placedDisks({ zones: 4, nodesPerZone: 2 });
    const world = openReplicatedWorld({ disks });
    const [dead] = world.owners;
    if (dead !== undefined) dead.mood = 'dead';
    await world.chunks.put(world.id, chunk());
    const zones = disks.filter((disk) => world.fakes.of(disk).stored.size > 0).map(({ zone }) => zone);
    expect(new Set(zones).size).toBe(3);
  });

  test('takes the copy of a late owner, when two copies are not there without it', async () => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 5 }) });
    const [, second, third] = world.owners;
    for (const disk of [second, third]) if (disk !== undefined) disk.mood = 'silent';
    const put = watch(world.chunks.put(world.id, chunk()));
    await world.stateAfter(LIMITS.copyLateMs - 1);
    expect(holders(world)).toHaveLength(1);
    await world.stateAfter(1);
    await world.stateAfter(PATIENCE_MS);
    expect(put.state).toBe('done');
    expect(world.others.map(({ stored }) => stored.size)).toEqual([1, 1]);
  });

  test('is not a failed disk until it has rested, and then one request tries it', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [dead] = world.owners;
    if (dead === undefined) throw new Error('there are owners');
    dead.mood = 'dead';
    await world.chunks.put(world.id, chunk());
    for (const number of [11, 12, 13, 14, 15, 16]) await world.chunks.put(chunkId(number), chunk());
    expect(dead.asked).toEqual(['put']);
    world.clock.advance(LIMITS.diskSuspectMs);
    dead.mood = 'silent';
    const ids = [21, 22, 23, 24, 25, 26, 27, 28].map(chunkId);
    const puts = ids.map((id) => watch(world.chunks.put(id, chunk())));
    await world.stateAfter(PATIENCE_MS);
    expect(dead.asked).toEqual(['put', 'put']);
    expect(puts.every(({ state }) => state === 'done')).toBe(true);
    dead.answerAgain();
    await world.stateAfter(0);
    await world.chunks.put(world.id, chunk());
    expect(dead.asked).toEqual(['put', 'put', 'put']);
  });

  test('may be unhealthy where there would be too few copies otherwise', async () => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 2 }) });
    const [first] = world.owners;
    if (first !== undefined) first.mood = 'dead';
    await expect(world.chunks.put(world.id, chunk())).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    if (first !== undefined) first.mood = 'well';
    await world.chunks.put(world.id, chunk());
    expect(holders(world)).toHaveLength(2);
  });
});

describe('a write fails', () => {
  test('for want of room only when no two disks have room', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    for (const disk of world.owners.slice(0, 2)) disk.mood = 'full';
    await world.chunks.put(world.id, chunk());
    expect(holders(world)).toHaveLength(2);
    for (const disk of world.disks.slice(1)) disk.mood = 'full';
    await expect(world.chunks.put(chunkId(2), chunk())).rejects.toMatchObject({
      code: 'InsufficientStorage',
    });
  });

  test('at a full disk once: it then gets no writes for a while, and reads as before', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [full] = world.owners;
    if (full === undefined) throw new Error('there are owners');
    await world.chunks.put(world.id, chunk());
    full.mood = 'full';
    for (const number of [11, 12, 13, 14, 15, 16, 17, 18]) await world.chunks.put(chunkId(number), chunk());
    expect(full.asked.slice(1)).toEqual(['put']);
    for (const disk of world.owners.slice(1)) disk.stored.clear();
    full.mood = 'well';
    expect(await world.chunks.get(world.id)).toMatchObject({ kind: 'found' });
    await world.chunks.put(chunkId(11), chunk());
    expect(full.asked.filter((what) => what === 'put')).toHaveLength(2);
  });

  test('with ServiceUnavailable when two disks with room are dead', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [first, second, third, fourth] = world.disks;
    for (const disk of [first, second]) if (disk !== undefined) disk.mood = 'full';
    for (const disk of [third, fourth]) if (disk !== undefined) disk.mood = 'dead';
    await expect(world.chunks.put(world.id, chunk())).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  });

  test('with SlowDown when the healthy disks are too busy', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    for (const disk of world.disks) disk.mood = 'busy';
    await expect(world.chunks.put(world.id, chunk())).rejects.toMatchObject({ code: 'SlowDown' });
    for (const disk of world.disks) disk.mood = 'well';
    await world.chunks.put(world.id, chunk());
    expect(world.owners.map(({ stored }) => stored.size)).toEqual([1, 1, 1]);
  });

  test('when no disk has answered for long, and frees its memory when it must', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    for (const disk of world.disks) disk.mood = 'silent';
    const put = watch(world.chunks.put(world.id, chunk()));
    await world.stateAfter(LIMITS.copySilentMaxMs + LIMITS.copyLateMs);
    expect(put).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
    // Copies that continue show which disks recover.
    expect(world.released).toHaveLength(0);
    await world.chunks.close();
    await world.stateAfter(0);
    expect(world.disks.map(({ abortedCount }) => abortedCount)).toEqual([1, 1, 1, 1]);
    expect(world.released).toHaveLength(1);
  });

  test('when its request can wait no longer', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    for (const disk of world.disks) disk.mood = 'silent';
    const put = watch(world.chunks.put(world.id, chunk(), undefined, LIMITS.chunkWaitLeastMs));
    await world.stateAfter(LIMITS.chunkWaitLeastMs - LIMITS.copyLookMs);
    expect(put.state).toBe('pending');
    await world.stateAfter(LIMITS.copyLookMs);
    expect(put).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
    await world.chunks.close();
  });

  test('at once when the id already has other bytes (R24)', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [owner] = world.owners;
    if (owner !== undefined) owner.put = () => Promise.reject(new OtherBytes('x'));
    await expect(world.chunks.put(world.id, chunk())).rejects.toBeInstanceOf(OtherBytes);
  });
});

describe('a newer map', () => {
  test('that a node announces is waited for, and copies that are synced by then count (R34)', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [first, ...rest] = world.owners;
    for (const disk of rest) disk.mood = { staleBefore: 2 };
    const put = watch(world.chunks.put(world.id, chunk()));
    await world.stateAfter(0);
    expect([put.state, world.placement.announcedVersion()]).toEqual(['pending', 2]);
    const before = world.placement.current();
    const disks = [...fourZones, ...placedDisks({ zones: 5 }).slice(4)];
    const after = changePlacement(before, { disks });
    world.placement.learn(after);
    await world.stateAfter(PATIENCE_MS);
    expect(put.state).toBe('done');
    expect(first?.asked).toEqual(['put']);
    for (const id of ownersOf(after, world.id)) expect(world.fakes.of({ id }).stored.size).toBe(1);
  });

  test('that does not arrive is ServiceUnavailable', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    for (const disk of world.disks) disk.mood = { staleBefore: 9 };
    const put = watch(world.chunks.put(world.id, chunk()));
    await world.stateAfter(LIMITS.placementWaitMaxMs);
    expect(put).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
  });
});

describe('late copies', () => {
  test('are given up, oldest first, when they hold too much memory', async () => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 3 }) });
    const [slow] = world.disks;
    if (slow === undefined) throw new Error('there are disks');
    slow.mood = 'silent';
    const sizeBytes = 4 * 1024 * 1024;
    const keptCount = LIMITS.lateCopiesBytesMax / sizeBytes;
    for (let number = 0; number <= keptCount; number++) {
      const put = watch(world.chunks.put(chunkId(number), new Uint8Array(sizeBytes)));
      await world.stateAfter(PATIENCE_MS);
      expect(put.state).toBe('done');
    }
    expect(slow.abortedCount).toBe(1);
    expect(world.released).toHaveLength(1);
    await world.chunks.close();
    expect(slow.abortedCount).toBe(keptCount + 1);
  });

  test('make their disk unhealthy when several are given up in a row, and another disk takes the copy', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const map = world.placement.current();
    const [slow] = world.owners;
    const slowId = ownersOf(map, world.id)[0] ?? '';
    if (slow === undefined) throw new Error('there are owners');
    slow.mood = 'silent';
    const sizeBytes = 8 * 1024 * 1024;
    const askedCount = LIMITS.lateCopiesBytesMax / sizeBytes + LIMITS.diskSlowAnswersMax;
    const ids = Array.from({ length: 100 }, (_, number) => chunkId(number));
    const owned = ids.filter((id) => ownersOf(map, id).includes(slowId)).slice(0, askedCount + 2);
    for (const id of owned) {
      const put = watch(world.chunks.put(id, new Uint8Array(sizeBytes)));
      await world.stateAfter(PATIENCE_MS);
      expect(put.state).toBe('done');
    }
    expect(slow.asked).toHaveLength(askedCount);
    const storedCount = world.disks.reduce((count, { stored }) => count + stored.size, 0);
    expect(storedCount).toBe(2 * askedCount + 3 * 2);
    await world.chunks.close();
  });
});
