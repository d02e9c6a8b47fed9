import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import {
  announcedDisks,
  chunksOf,
  closeNodes,
  folder,
  newId,
  openNode,
  reserve,
  started,
} from '../../../tests/support/disks/node-world.ts';
import { settleAll } from '../../../tests/support/disks/replicated-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { DriveHangs } from '../../base/drive-hangs.ts';
import { openMemoryWitness, WitnessMedium } from '../../platform/memory/memory-witness.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import { StaleMap } from '../../types/chunk-refusals.ts';
import { LIMITS } from '../../types/limits.ts';
import { openChunkStore } from './chunk-store.ts';
import { DISK_KEY } from './keyspace.ts';
import type { DiskToOpen } from './node-disks.ts';

afterEach(closeNodes);

test('a disk that comes back without acknowledged data reports it, once', async () => {
  const medium = new WitnessMedium();
  const { open, ...cellar } = folder('a');
  const disk = {
    ...cellar,
    open: async () => ({ ...(await open()), witness: openMemoryWitness(medium, createManualClock(0)) }),
  };
  const first = await started([disk]);
  await first.node.stop();
  const seq = (medium.get(0) as { seq: number }).seq;
  medium.set(0, { seq: seq + 5, epoch: 0 });
  for (let start = 0; start < 2; start++) {
    const world = await started([disk]);
    expect(world.members[0]).toMatchObject({ disks: [{ cutSeq: seq + 5 }] });
    expect(world.events.includes('disk-cut')).toBe(start === 0);
    await world.node.stop();
  }
  // The second loss removes the record of the first, and another one is reported.
  const noted = (medium.get(0) as { seq: number }).seq;
  medium.set(0, { seq: noted + 3, epoch: 0 });
  const again = await started([disk]);
  expect(again.members[0]).toMatchObject({ disks: [{ cutSeq: noted + 3 }] });
  await again.node.stop();
  // An emptied one is another disk.
  const emptied = folder('a');
  const other = await started([
    {
      ...emptied,
      open: async () => ({
        ...(await emptied.open()),
        witness: openMemoryWitness(medium, createManualClock(0)),
      }),
    },
  ]);
  expect(other.members[0]).not.toMatchObject({ disks: [{ cutSeq: expect.any(Number) }] });
  expect(other.events).not.toContain('disk-cut');
});

describe('a disk', () => {
  test('keeps its identity, and gets a new one when it is emptied (R40)', async () => {
    const folders = [folder('a'), folder('b')];
    const idsOf = async () => {
      const world = await started(folders);
      await world.node.stop();
      const [member] = world.members;
      return member === 'left' ? [] : (member?.disks.map(({ id }) => id) ?? []);
    };
    const first = await idsOf();
    expect(await idsOf()).toEqual(first);
    folders[1] = folder('b');
    const [kept, replaced] = await idsOf();
    expect(kept).toBe(first[0]);
    expect(replaced).not.toBe(first[1]);
  });

  test('of another cluster is refused, and all other disks with it', async () => {
    const theirs = folder('theirs');
    await (await started([theirs], { clusterId: 'e'.repeat(32) })).node.stop();
    const ours = folder('ours');
    const world = openNode([ours, theirs]);
    await expect(world.node.start()).rejects.toThrow('The disk theirs is of cluster eeee');
    expect([world.members, ours.closedCount, theirs.closedCount]).toEqual([[], 1, 2]);
  });

  test('with chunks of no cluster is refused', async () => {
    const single = folder('single');
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const store = await openChunkStore({ kv: single.kv, reserve, clock: systemClock, log });
    await store.put(newId(), randomBytes(10));
    await expect(openNode([single]).node.start()).rejects.toThrow('of no cluster');
  });

  test('that was copied is refused', async () => {
    const [one, other] = [folder('one'), folder('other')];
    await (await started([one])).node.stop();
    const [row] = await one.kv.getMany('index', [DISK_KEY]);
    await other.kv.commit([{ column: 'index', key: DISK_KEY, value: row ?? null }]);
    await expect(openNode([one, other]).node.start()).rejects.toThrow('copies of one');
  });

  test('that cannot be opened does not prevent the others from being served', async () => {
    const broken: DiskToOpen = { name: 'broken', open: () => Promise.reject(new Error('no such device')) };
    const world = await started([broken, folder('good')]);
    expect(world.events).toContain('disk-not-opened');
    expect(world.members.at(-1)).toMatchObject({
      unserved: [{ name: 'broken', reason: 'no such device' }],
    });
    await chunksOf(world).put(newId(), randomBytes(10));
    await expect(openNode([broken]).node.start()).rejects.toThrow('None of the disks');
  });

  test('that was removed from the cluster is not served, and this is logged', async () => {
    const [removed, good] = [folder('removed'), folder('good')];
    const before = await started([removed]);
    await before.node.stop();
    const [member] = before.members;
    const gone = member === 'left' ? undefined : member?.disks[0]?.id;
    const isRemoved = (diskId: string) => diskId === gone;
    const world = await started([removed, good], { isRemoved });
    const reason = expect.stringMatching(/^it is disk [0-9a-f]{32}, which was removed from the cluster/);
    expect(world.members.at(-1)).toMatchObject({
      disks: [{ id: expect.not.stringContaining(gone ?? '') }],
      unserved: [{ name: 'removed', reason }],
    });
    const alone = openNode([removed], { isRemoved });
    await expect(alone.node.start()).rejects.toThrow(/^None of the disks can be opened. removed: it is disk/);
    expect(removed.closedCount).toBe(3);
    // Emptied, it is another.
    await started([folder('removed')], { isRemoved });
  });

  test('that hangs while it is opened delays nobody, and is served once it has opened', async () => {
    const hanging = folder('hanging');
    const isWell = Promise.withResolvers<void>();
    const open = () => isWell.promise.then(() => hanging.open());
    const world = openNode([{ name: 'hanging', open }, folder('good')]);
    const starting = world.node.start();
    await settleAll();
    expect(world.members).toEqual([]);
    world.clock.advance(30_000);
    await starting;
    await settleAll();
    expect(announcedDisks(world)).toEqual([1]);
    expect(world.events).toContain('disk-opens-late');
    const reason = 'it has not opened in 30 s';
    expect(world.members.at(-1)).toMatchObject({ unserved: [{ name: 'hanging', reason }] });
    await chunksOf(world, 0, 7).put(newId(), randomBytes(10));
    isWell.resolve();
    await settleAll();
    expect(announcedDisks(world)).toEqual([1, 2]);
    expect(world.events).toContain('disk-served-late');
    expect(world.members.at(-1)).toMatchObject({ unserved: [] });
    for (const at of [0, 1]) await chunksOf(world, at, 7).put(newId(), randomBytes(10));
    expect(world.events).not.toContain('disk-not-opened');
    // It also stores what the others know (R34).
    await world.node.stop();
    const alone = await started([hanging]);
    await expect(chunksOf(alone, 0, 6).put(newId(), randomBytes(10))).rejects.toBeInstanceOf(StaleMap);
  });

  test('is closed if it opens late as the copy of another, or after the node has ended', async () => {
    const [one, other, slow] = [folder('one'), folder('other'), folder('slow')];
    await (await started([one])).node.stop();
    const [row] = await one.kv.getMany('index', [DISK_KEY]);
    await other.kv.commit([{ column: 'index', key: DISK_KEY, value: row ?? null }]);
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const late = [other, slow].map(({ name, open }, at) => ({
      name,
      open: () => gates[at]?.promise.then(open) ?? open(),
    }));
    const world = openNode([one, ...late]);
    const starting = world.node.start();
    await settleAll();
    world.clock.advance(30_000);
    await starting;
    gates[0]?.resolve();
    await settleAll();
    expect(world.events).toContain('disk-not-opened');
    expect(other.closedCount).toBe(1);
    await world.node.stop();
    gates[1]?.resolve();
    await settleAll();
    expect(slow.closedCount).toBe(1);
    expect(announcedDisks(world)).toEqual([1, 1]);
    expect(world.members.at(-2)).toMatchObject({
      unserved: [{ name: 'other', reason: expect.stringContaining('copies of one') }, { name: 'slow' }],
    });
  });

  test('whose drive hangs is not served until the drive answers', async () => {
    const [good, hanging] = [folder('good'), folder('hanging')];
    const answers = Promise.withResolvers<void>();
    const failure = Promise.withResolvers<Error>();
    let opened = 0;
    const open = async () => {
      const store = await hanging.open();
      opened++;
      if (opened === 1) {
        const kv = { ...store.kv, failed: failure.promise, close: () => answers.promise };
        return { ...store, kv };
      }
      // It hangs again while it is opened.
      const commit = () => Promise.reject(new DriveHangs('no answer'));
      return opened === 2 ? { ...store, kv: { ...store.kv, commit } } : store;
    };
    const world = await started([good, { name: 'hanging', open }]);
    const before = world.members.at(-1);
    failure.resolve(new DriveHangs('no answer'));
    await settleAll();
    expect(world.events).toContain('disk-failed');
    expect(announcedDisks(world)).toEqual([2, 1]);
    expect(world.members.at(-1)).toMatchObject({
      unserved: [{ name: 'hanging', diskId: expect.any(String), reason: 'no answer' }],
    });
    // A newer map is heard of meanwhile.
    await chunksOf(world, 0, 7).put(newId(), randomBytes(10));
    expect(opened).toBe(1);
    answers.resolve();
    await settleAll();
    expect(world.events.slice(-2)).toEqual(['disk-not-opened', 'disk-answers-again']);
    expect(opened).toBe(3);
    expect(world.members.at(-1)).toEqual(before);
    for (const at of [0, 1])
      await expect(chunksOf(world, at, 6).put(newId(), randomBytes(10))).rejects.toBeInstanceOf(StaleMap);
  });

  test('whose drive leaves several reads unanswered is not served until the drive answers', async () => {
    const [good, hanging] = [folder('good'), folder('hanging')];
    const answers = Promise.withResolvers<void>();
    const open = async () => {
      const store = await hanging.open();
      const kv: KvPort = {
        ...store.kv,
        async getMany(column, keys) {
          if (column === 'data') await answers.promise;
          return store.kv.getMany(column, keys);
        },
        close: () => answers.promise,
      };
      return { ...store, kv };
    };
    const world = await started([good, { name: 'hanging', open }]);
    const before = world.members.at(-1);
    const disk = chunksOf(world, 1);
    const ids = [newId(), newId(), newId()];
    for (const id of ids) await disk.put(id, randomBytes(10));
    const pass = async (ms: number) => {
      for (let slice = 0; slice < 20; slice++) {
        await settleAll();
        world.clock.advance(ms / 20);
      }
      await settleAll();
    };
    const reads = Promise.allSettled(ids.map((id) => disk.get(id)));
    // The reads have reached the drive.
    while (world.events.filter((event) => event === 'chunk-unread').length < 2)
      await pass(LIMITS.chunkReadMaxMs);
    await reads;
    expect(announcedDisks(world)).toEqual([2]);
    await pass(LIMITS.chunkReadsHangMs);
    expect(world.events).toContain('disk-failed');
    expect(announcedDisks(world)).toEqual([2, 1]);
    answers.resolve();
    await settleAll();
    expect(world.events.at(-1)).toBe('disk-answers-again');
    expect(world.members.at(-1)).toEqual(before);
    expect((await chunksOf(world, 1).get(ids[0] as ReturnType<typeof newId>)).kind).toBe('found');
  });

  test('whose drive hangs does not prevent its node from stopping', async () => {
    const [good, hanging] = [folder('good'), folder('hanging')];
    const failure = Promise.withResolvers<Error>();
    const never = new Promise<void>(() => {});
    const open = async () => {
      const store = await hanging.open();
      return { ...store, kv: { ...store.kv, failed: failure.promise, close: () => never } };
    };
    const world = await started([good, { name: 'hanging', open }]);
    const stopping = world.node.stop();
    failure.resolve(new DriveHangs('no answer'));
    await stopping;
    expect(good.closedCount).toBe(1);
  });

  test('that fails is not served any more, and this is logged; when the last one fails the node ends', async () => {
    const [one, other] = [folder('one'), folder('other')];
    const world = await started([one, other]);
    const [first, second] = [chunksOf(world, 0), chunksOf(world, 1)];
    one.kv.fail(new Error('the disk is gone'));
    await settleAll();
    expect(world.events).toContain('disk-failed');
    expect(world.members.at(-1)).toMatchObject({ disks: [{ capacityBytes: 2e12 }] });
    await expect(first.get(newId())).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    expect(await second.get(newId())).toEqual({ kind: 'missing' });
    // Its background work has ended, too.
    for (const name of ['reclaim-chunks', 'scrub-chunks']) {
      const worker = must(
        world.node.workers.find((some) => some.name === name),
        'the first is of the first disk',
      );
      expect(await worker.work(new AbortController().signal)).toEqual({ state: 'idle', idleMs: 10_000 });
    }
    other.kv.fail(new Error('and the other one'));
    expect((await world.node.failed).message).toBe('and the other one');
    await settleAll();
    expect(world.members.at(-1)).toMatchObject({ disks: [] });
  });
});
