import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Mood } from '../../../tests/support/disks/fake-disks.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { chunkId, openReplicatedWorld, watch } from '../../../tests/support/disks/replicated-world.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import type { PlacementMap } from '../../ports/placement.ts';
import { OldFence } from '../../types/chunk-refusals.ts';
import { LIMITS } from '../../types/limits.ts';
import { mergeChunkPages } from '../placement/merge-answers.ts';
import { changePlacement, makePlacement, NO_PLACEMENT } from '../placement/placement.ts';
import { clearPrevious, withLeave } from '../placement/placement-changes.ts';

const fence = { shard: 3, incarnation: 1, epoch: 9 };
const chunk = () => new Uint8Array(1000).fill(7);
const fourZones = placedDisks({ zones: 4 });

describe('with any disk failing in any way', () => {
  const moods = fc.array(fc.constantFrom<Mood>('well', 'dead', 'silent', 'full', 'busy'), {
    minLength: 1,
    maxLength: 6,
  });
  const place = fc.integer({ min: 1, max: 3 });

  test('an acknowledged chunk is on two disks, in two zones where two are up, and is read from any of them', async () => {
    await fc.assert(
      fc.asyncProperty(moods, place, fc.nat(), async (given, zones, number) => {
        const disks = placedDisks({ zones: given.length, capacityOf: () => 1e12 }).map((disk, at) => ({
          ...disk,
          zone: `zone-${at % zones}`,
        }));
        const world = openReplicatedWorld({ disks });
        for (const [at, mood] of given.entries()) {
          const disk = world.disks[at];
          if (disk !== undefined) disk.mood = mood;
        }
        const id = chunkId(number % 1000);
        const put = watch(world.chunks.put(id, chunk()));
        for (let ms = 0; put.state === 'pending' && ms < 40_000; ms += 250) await world.stateAfter(250);
        const wells = disks.filter((_, at) => given[at] === 'well');
        const needed = Math.min(LIMITS.copiesSyncedMin, disks.length);
        const holding = disks.filter((disk) => world.fakes.of(disk).stored.size > 0);
        if (wells.length < needed) {
          const fullCount = given.filter((mood) => mood === 'full').length;
          const isFull = disks.length - fullCount < needed;
          expect(put.state).toBe('failed');
          if (isFull) expect(put.error).toMatchObject({ code: 'InsufficientStorage' });
          else expect(['ServiceUnavailable', 'SlowDown']).toContain((put.error as { code: string }).code);
          return;
        }
        expect(put.state).toBe('done');
        expect(holding.length).toBeGreaterThanOrEqual(needed);
        if (new Set(wells.map(({ zone }) => zone)).size > 1)
          expect(new Set(holding.map(({ zone }) => zone)).size).toBeGreaterThan(1);
        // All holders but one are lost.
        for (const disk of holding.slice(1)) world.fakes.of(disk).mood = 'dead';
        const read = watch(world.chunks.get(id));
        for (let ms = 0; read.state === 'pending' && ms < 20_000; ms += 150) await world.stateAfter(150);
        expect(read).toMatchObject({ state: 'done', value: { kind: 'found' } });
      }),
      { numRuns: amountOf({ short: 40, long: 100 }) },
    );
  });
});

describe('drop', () => {
  test('goes to every disk, because any may have been a stand-in', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    await world.chunks.put(world.id, chunk());
    await world.chunks.drop([world.id], fence);
    expect(world.disks.map(({ stored }) => stored.size)).toEqual([0, 0, 0, 0]);
    expect(world.disks.map(({ fences }) => fences)).toEqual(Array.from({ length: 4 }, () => [fence]));
  });

  test('leaves unreachable disks to the sweep, and logs it', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    await world.chunks.put(world.id, chunk());
    const [dead] = world.owners;
    if (dead !== undefined) dead.mood = 'dead';
    await world.chunks.drop([world.id], fence);
    expect(world.disks.filter(({ stored }) => stored.size > 0)).toEqual([dead]);
    expect(world.events).toEqual(['drop-not-everywhere']);
  });

  test('does not wait each time for a disk that hangs', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    await world.chunks.put(world.id, chunk());
    const [hung] = world.owners;
    if (hung === undefined) throw new Error('there are owners');
    let asked = 0;
    let isBack = false;
    const { drop } = hung;
    hung.drop = (...order) => {
      asked++;
      if (!isBack) world.clock.advance(LIMITS.chunkRequestMaxMs);
      return isBack ? drop.apply(hung, order) : Promise.reject(new Error('no answer in time'));
    };
    for (let count = 0; count < 5; count++) await world.chunks.drop([world.id], fence);
    expect(asked).toBe(1);
    isBack = true;
    await world.stateAfter(LIMITS.dropSuspectMs);
    for (let count = 0; count < 2; count++) await world.chunks.drop([world.id], fence);
    expect(asked).toBe(3);
    expect(hung.stored.size).toBe(0);
  });

  test('with an old epoch is refused, also when only one disk knows the newer one', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [, knowing] = world.disks;
    if (knowing !== undefined) knowing.drop = () => Promise.reject(new OldFence());
    await expect(world.chunks.drop([world.id], fence)).rejects.toBeInstanceOf(OldFence);
  });

  test('that reaches no disk fails', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    for (const disk of world.disks) disk.mood = 'dead';
    await expect(world.chunks.drop([world.id], fence)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  });
});

describe('answers combined from all disks', () => {
  test('pages are merged in the order of ids, each chunk once, as old as its youngest copy', () => {
    const at = (number: number, receivedAtMs: number) => ({
      id: chunkId(number),
      sizeBytes: 1,
      receivedAtMs,
    });
    const pages = [
      [at(1, 10), at(3, 10)],
      [at(1, 30), at(2, 10)],
      [at(2, 20), at(4, 10)],
    ];
    expect(mergeChunkPages(pages, 10)).toEqual([at(1, 30), at(2, 20), at(3, 10), at(4, 10)]);
    expect(mergeChunkPages(pages, 2)).toEqual([at(1, 30), at(2, 20)]);
    expect(mergeChunkPages([[]], 2)).toEqual([]);
  });

  test('a list is returned while each chunk has a copy on a disk that answers', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    const [first, second] = world.disks;
    if (first !== undefined) first.mood = 'dead';
    expect(await world.chunks.list({ limit: 10 })).toEqual([]);
    if (second !== undefined) second.mood = 'dead';
    await expect(world.chunks.list({ limit: 10 })).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  });

  test('disks that were given up and own nothing are not waited for', async () => {
    const map = makePlacement({ disks: fourZones, copies: 2 });
    const gone = new Set(fourZones.slice(2).map(({ id }) => id));
    const absent = changePlacement(map, { disks: withLeave(map.disks, gone, 'absent') });
    const listed = async (present: PlacementMap) => {
      const world = openReplicatedWorld({ disks: fourZones, map: present });
      for (const disk of world.disks.slice(2)) disk.mood = 'dead';
      return world.chunks.list({ limit: 10 });
    };
    await expect(listed(absent)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    expect(await listed(clearPrevious(absent))).toEqual([]);
  });

  test('usage is the sum over the disks that answer', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    await world.chunks.put(world.id, chunk());
    expect(await world.chunks.usage()).toMatchObject({
      chunkCount: 3,
      diskFreeBytes: 40,
      diskTotalBytes: 400,
    });
    const [other] = world.others;
    if (other !== undefined) other.mood = 'dead';
    expect(await world.chunks.usage()).toMatchObject({ chunkCount: 3, diskTotalBytes: 300 });
    const [each, ...rest] = await world.chunks.usages();
    expect([each?.diskTotalBytes, rest.length]).toEqual([100, 2]);
    // A disk that hangs is waited for, for a bounded time.
    if (other !== undefined) other.mood = 'silent';
    const usage = watch(world.chunks.usage());
    await world.stateAfter(LIMITS.usageAnswerMaxMs);
    expect(usage).toMatchObject({ state: 'done', value: { chunkCount: 3 } });
    for (const disk of world.disks) disk.mood = 'silent';
    const silent = watch(world.chunks.usage());
    await world.stateAfter(LIMITS.usageAnswerMaxMs);
    const cause = { message: `${world.disks.length} disks do not answer` };
    expect(silent).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable', cause } });
    for (const disk of world.disks) disk.mood = disk === other ? 'dead' : 'well';
    expect((await world.chunks.recount()).counted.chunkCount).toBe(3);
    for (const disk of world.disks) disk.mood = 'dead';
    await expect(world.chunks.usage()).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    await expect(world.chunks.recount()).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  });

  test('a chunk is present if one disk has it, and unknown if none has it while one is silent', async () => {
    const world = openReplicatedWorld({ disks: fourZones });
    await world.chunks.put(world.id, chunk());
    const [other] = world.others;
    if (other !== undefined) other.mood = 'dead';
    expect(await world.chunks.have([world.id])).toMatchObject([{ sizeBytes: 1000 }]);
    await expect(world.chunks.have([world.id, chunkId(99)])).rejects.toMatchObject({
      code: 'ServiceUnavailable',
    });
    if (other !== undefined) other.mood = 'well';
    expect(await world.chunks.have([chunkId(99), world.id])).toMatchObject([null, { sizeBytes: 1000 }]);
  });
});

test('before the first map nothing is acknowledged, and nothing is reported missing', async () => {
  const world = openReplicatedWorld({ disks: fourZones, map: NO_PLACEMENT });
  const { chunks, id } = world;
  for (const attempt of [
    () => chunks.put(id, chunk()),
    () => chunks.get(id),
    () => chunks.drop([id], fence),
    () => chunks.list({ limit: 1 }),
    () => chunks.usage(),
    () => chunks.have([id]),
  ]) {
    await expect(attempt()).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  }
  world.placement.learn(makePlacement({ disks: fourZones, copies: 3 }));
  await chunks.put(id, chunk());
  expect(await chunks.get(id)).toMatchObject({ kind: 'found' });
});

test('two equal puts of one chunk at the same time become one', async () => {
  const world = openReplicatedWorld({ disks: fourZones });
  const [first, other] = [world.chunks.put(world.id, chunk()), world.chunks.put(world.id, chunk())];
  await expect(world.chunks.put(world.id, new Uint8Array(1000))).rejects.toThrow('other bytes');
  await Promise.all([first, other]);
  expect(world.owners.map(({ asked }) => asked)).toEqual([['put'], ['put'], ['put']]);
});

test('whether a disk takes chunks is known from recent writes', async () => {
  const world = openReplicatedWorld({ disks: placedDisks({ zones: 3 }) });
  const [disk] = world.placement.current().disks;
  if (disk === undefined) throw new Error('there are disks');
  const fake = world.fakes.of(disk);
  const put = (number: number) => watch(world.chunks.put(chunkId(number), new Uint8Array(10)));
  expect(world.chunks.takesWrites(disk)).toBeUndefined();
  put(1);
  await world.stateAfter(1000);
  expect(world.chunks.takesWrites(disk)).toBe(true);
  fake.mood = 'silent';
  put(2);
  await world.stateAfter(LIMITS.copySilentMaxMs);
  expect(world.chunks.takesWrites(disk)).toBe(false);
  fake.answerAgain();
  await world.stateAfter(0);
  expect(world.chunks.takesWrites(disk)).toBe(true);
  fake.mood = 'full';
  put(3);
  await world.stateAfter(1000);
  expect(world.chunks.takesWrites(disk)).toBeUndefined();
});
