import { describe, expect, test } from 'vitest';
import type { FakeDisk } from '../../../tests/support/disks/fake-disks.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import {
  chunkId,
  openReplicatedWorld,
  type ReplicatedWorld,
  watch,
} from '../../../tests/support/disks/replicated-world.ts';
import type { ChunkRead } from '../../ports/chunks.ts';
import { LIMITS } from '../../types/limits.ts';
import { changePlacement } from '../placement/placement.ts';

const fiveZones = placedDisks({ zones: 5 });
const chunk = () => new Uint8Array(1000).fill(7);
const found = { kind: 'found', bytes: chunk() };

async function openWithChunk(nearZone?: string): Promise<ReplicatedWorld & { inOrder: FakeDisk[] }> {
  const world = openReplicatedWorld({ disks: fiveZones, ...(nearZone !== undefined && { nearZone }) });
  await world.chunks.put(world.id, chunk());
  // With all disks silent, the read shows the order in which it asks them.
  for (const disk of world.owners) disk.mood = 'silent';
  const inOrder: FakeDisk[] = [];
  const read = watch(world.chunks.get(world.id));
  for (let count = 0; count < 3; count++) {
    await world.stateAfter(count === 0 ? 0 : LIMITS.copyReadHedgeMs);
    const next = world.owners.find((disk) => disk.asked.includes('get') && !inOrder.includes(disk));
    if (next !== undefined) inOrder.push(next);
  }
  for (const disk of world.owners) disk.answerAgain();
  await world.stateAfter(0);
  expect(read.state).toBe('done');
  for (const disk of world.disks) {
    disk.asked.length = 0;
    disk.abortedCount = 0;
  }
  return { ...world, inOrder };
}

const asked = (disks: readonly FakeDisk[]) => disks.map((disk) => disk.asked.length);

async function readAfter(world: ReplicatedWorld, ms = 0): Promise<ReturnType<typeof watch<ChunkRead>>> {
  const read = watch(world.chunks.get(world.id));
  await world.stateAfter(0);
  for (let passedMs = 0; passedMs < ms; passedMs += LIMITS.copyReadHedgeMs)
    await world.stateAfter(LIMITS.copyReadHedgeMs);
  return read;
}

describe('a read', () => {
  test('asks one owner, a near one if there is one', async () => {
    for (const { zone, id } of fiveZones) {
      const world = await openWithChunk(zone);
      expect(await world.chunks.get(world.id)).toMatchObject(found);
      expect(asked(world.disks).reduce((sum, count) => sum + count, 0)).toBe(1);
      const near = world.fakes.of({ id });
      if (world.owners.includes(near)) expect(near.asked).toEqual(['get']);
    }
  });

  test('begins with different owners for different chunks', async () => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 3 }) });
    const ids = Array.from({ length: 60 }, (_, number) => chunkId(number));
    for (const id of ids) await world.chunks.put(id, chunk());
    for (const disk of world.disks) disk.asked.length = 0;
    for (const id of ids) await world.chunks.get(id);
    expect(Math.min(...asked(world.disks))).toBeGreaterThan(8);
  });

  test('does not wait for a slow disk, and cancels its request', async () => {
    const world = await openWithChunk();
    const [slow, next] = world.inOrder;
    if (slow !== undefined) slow.mood = 'silent';
    const read = await readAfter(world);
    expect([read.state, next?.asked.length]).toEqual(['pending', 0]);
    await world.stateAfter(LIMITS.copyReadHedgeMs);
    expect(read).toMatchObject({ state: 'done', value: found });
    expect([slow?.abortedCount, asked(world.others)]).toEqual([1, [0, 0]]);
  });

  test('asks a repeatedly slow disk later than others, for a while', async () => {
    const world = await openWithChunk();
    const [slow] = world.inOrder;
    if (slow === undefined) throw new Error('there are owners');
    slow.mood = 'silent';
    for (let count = 0; count < LIMITS.diskSlowAnswersMax; count++)
      await readAfter(world, LIMITS.copyReadHedgeMs);
    expect(slow.asked).toHaveLength(LIMITS.diskSlowAnswersMax);
    expect(await world.chunks.get(world.id)).toMatchObject(found);
    expect(slow.asked).toHaveLength(LIMITS.diskSlowAnswersMax);
    world.clock.advance(LIMITS.diskSuspectMs);
    slow.answerAgain();
    expect(await world.chunks.get(world.id)).toMatchObject(found);
    expect(slow.asked).toHaveLength(LIMITS.diskSlowAnswersMax + 1);
  });

  test('skips dead owners and damaged copies', async () => {
    const world = await openWithChunk();
    const [dead, damaged, good] = world.inOrder;
    if (dead !== undefined) dead.mood = 'dead';
    if (damaged !== undefined) damaged.mood = 'damaged';
    expect(await world.chunks.get(world.id)).toMatchObject(found);
    expect(good?.asked).toEqual(['get']);
    expect(world.events).toContain('copy-damaged');
  });

  test('asks a disk that cannot read one chunk as before, for this chunk and others', async () => {
    const world = await openWithChunk();
    const [first, second] = world.inOrder;
    if (first !== undefined) first.mood = 'unread';
    for (let count = 1; count <= 5; count++) {
      expect(await world.chunks.get(world.id)).toMatchObject(found);
      expect([first?.asked.length, second?.asked.length]).toEqual([count, count]);
    }
  });

  test('finds the copy on a stand-in', async () => {
    const world = await openWithChunk();
    const [owner] = world.owners;
    const [, last] = world.others;
    for (const [name, bytes] of owner?.stored ?? []) last?.stored.set(name, bytes);
    for (const disk of world.owners) disk.stored.clear();
    expect(await world.chunks.get(world.id)).toMatchObject(found);
  });
});

describe('the answer of a read without a copy', () => {
  test('is missing when every disk has answered that', async () => {
    const world = await openWithChunk();
    expect(await world.chunks.get(chunkId(99))).toEqual({ kind: 'missing' });
    expect(asked(world.disks)).toEqual([1, 1, 1, 1, 1]);
    expect(world.events).toEqual([]);
  });

  test.each(['dead', 'busy', 'unread'] as const)('is never said when one is %s (R37)', async (mood) => {
    const world = await openWithChunk();
    const [, other] = world.others;
    if (other !== undefined) other.mood = mood;
    await expect(world.chunks.get(chunkId(99))).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    expect(world.events).toContain('chunk-found-nowhere');
  });

  test('is not missing while one disk is silent', async () => {
    const world = await openWithChunk();
    for (const disk of world.owners) disk.stored.clear();
    const [, other] = world.others;
    if (other !== undefined) other.mood = 'silent';
    const read = await readAfter(world, LIMITS.copyReadMaxMs - LIMITS.copyReadHedgeMs);
    expect(read.state).toBe('pending');
    await world.stateAfter(LIMITS.copyReadHedgeMs);
    expect(read).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
    expect(other?.abortedCount).toBe(1);
  });

  test('is damaged when only damaged copies are left', async () => {
    const world = await openWithChunk();
    for (const disk of world.owners) disk.mood = 'damaged';
    expect(await world.chunks.get(world.id)).toEqual({ kind: 'damaged' });
  });

  test('by an old map is checked again by the newer one', async () => {
    const world = await openWithChunk();
    const added = placedDisks({ zones: 6 }).slice(5);
    const newest = changePlacement(world.placement.current(), { disks: [...fiveZones, ...added] });
    for (const disk of added) {
      for (const [name, bytes] of world.owners[0]?.stored ?? []) world.fakes.of(disk).stored.set(name, bytes);
    }
    for (const disk of world.owners) disk.stored.clear();
    world.placement.noteVersion(newest.version);
    const read = await readAfter(world);
    expect(read.state).toBe('pending');
    world.placement.learn(newest);
    await world.stateAfter(0);
    expect(read).toMatchObject({ state: 'done', value: found });
  });

  test('by an old map is not missing when the newer map does not arrive', async () => {
    const world = await openWithChunk();
    world.placement.noteVersion(7);
    const read = watch(world.chunks.get(chunkId(99)));
    await world.stateAfter(LIMITS.placementWaitMaxMs);
    expect(read).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
  });
});
