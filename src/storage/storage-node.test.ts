import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { chunksOf, closeNodes, folder, newId, started } from '../../tests/support/node-world.ts';
import { settleAll } from '../../tests/support/replicated-world.ts';
import { METRICS } from '../adapters/prom-telemetry.ts';
import { systemClock } from '../adapters/system-clock.ts';
import { StaleMap } from '../model/chunk-refusals.ts';
import type { ChunkServerPort, ServedDisks } from '../ports/chunk-server.ts';
import type { StorageMember } from '../ports/storage-members.ts';
import { createDiskReserve } from './disk-reserve.ts';

afterEach(closeNodes);

test('serves its disks, tells who it is and how much they hold, and leaves before it stops', async () => {
  const folders = [folder('a'), folder('b')];
  const world = await started(folders);
  const disk = { id: expect.stringMatching(/^[0-9a-f]{32}$/), capacityBytes: 2e12 };
  expect(world.members).toEqual([
    {
      ...{ nodeId: 'n'.repeat(32), zone: 'cellar', address: world.node.address },
      ...{ disks: [disk, disk], unserved: [] },
    },
  ]);
  const id = newId();
  await chunksOf(world, 1).put(id, randomBytes(1000));
  expect(await chunksOf(world, 1).get(id)).toMatchObject({ kind: 'found' });
  expect(await chunksOf(world, 0).get(id)).toEqual({ kind: 'missing' });
  expect(world.node.workers.map(({ name }) => name)).toEqual([
    ...['reclaim-chunks', 'reclaim-chunks', 'scrub-chunks', 'scrub-chunks'],
    'report-disks',
  ]);
  await world.node.stop();
  expect(world.members.at(-1)).toBe('left');
  expect(folders.map(({ closedCount }) => closedCount)).toEqual([1, 1]);
});

test('tells what its disks hold, and of a file system that has grown', async () => {
  let totalBytes = 1e12;
  const only = folder('a');
  const growing = createDiskReserve({
    readSpace: async () => ({ freeBytes: 5e11, totalBytes }),
    clock: systemClock,
  });
  const gauges = new Map<string, number>();
  const world = await started(
    [{ ...only, open: async () => ({ ...(await only.open()), reserve: growing }) }],
    {
      gauge: (name, value, labels) => gauges.set(`${name} ${labels?.disk?.length}`, value),
    },
  );
  await chunksOf(world).put(newId(), randomBytes(10));
  const report = world.node.workers.find(({ name }) => name === 'report-disks');
  await report?.work(new AbortController().signal);
  expect(Object.fromEntries(gauges)).toEqual({
    'holdfast_disk_chunks 32': 1,
    'holdfast_disk_chunk_bytes 32': 10,
    'holdfast_disk_pending_reclaim_bytes 32': expect.any(Number),
    'holdfast_disk_free_bytes 32': 5e11,
    'holdfast_disk_bytes 32': 1e12,
    'holdfast_disk_aside_chunks 32': 0,
    'holdfast_disk_scrub_progress_ratio 32': 0,
    'holdfast_disk_scrub_found_chunks 32': 0,
  });
  expect(world.members).toHaveLength(1);
  totalBytes = 2e12;
  await report?.work(new AbortController().signal);
  await report?.work(new AbortController().signal);
  await settleAll();
  expect(world.members.slice(1)).toMatchObject([{ disks: [{ capacityBytes: 2e12 }] }]);
  // Every figure is in the table of metrics.
  for (const name of gauges.keys()) expect(METRICS).toHaveProperty(name.replace(' 32', ''));
});

test('a placement version that was heard of holds after a restart (R34)', async () => {
  const folders = [folder('a'), folder('b')];
  const world = await started(folders);
  await chunksOf(world, 0, 7).put(newId(), randomBytes(10));
  await world.node.stop();
  const again = await started(folders);
  await expect(chunksOf(again, 1, 6).put(newId(), randomBytes(10))).rejects.toBeInstanceOf(StaleMap);
  await chunksOf(again, 1, 7).put(newId(), randomBytes(10));
});

test('a disk that fails while a version is kept does not keep it from the others', async () => {
  const folders = [folder('a'), folder('b')];
  const served = Promise.withResolvers<ServedDisks>();
  const server: ChunkServerPort = {
    async serve(disks) {
      served.resolve(disks);
      return { address: '127.0.0.1:1', stop: async () => {} };
    },
  };
  await started(folders, { server });
  const disks = await served.promise;
  for (const { kv } of folders) kv.holdCommits();
  const adopted = disks.adopt(9);
  await settleAll();
  folders[0]?.kv.fail(new Error('the disk is gone'));
  folders[1]?.kv.releaseCommits();
  await adopted;
  expect(disks.mapVersion()).toBe(9);
  folders[1]?.kv.holdCommits();
  const lost = disks.adopt(10);
  await settleAll();
  folders[1]?.kv.fail(new Error('and the other one'));
  await expect(lost).rejects.toThrow('and the other one');
});

test('a disk that hangs does not keep a version from the others, unless it is the only one', async () => {
  const folders = [folder('a'), folder('b')];
  const served = Promise.withResolvers<ServedDisks>();
  const server: ChunkServerPort = {
    async serve(disks) {
      served.resolve(disks);
      return { address: '127.0.0.1:1', stop: async () => {} };
    },
  };
  const { clock } = await started(folders, { server });
  const disks = await served.promise;
  folders[0]?.kv.holdCommits();
  const adopted = disks.adopt(9);
  await settleAll();
  expect(disks.mapVersion()).toBe(0);
  clock.advance(1000);
  await adopted;
  expect(disks.mapVersion()).toBe(9);
  folders[1]?.kv.holdCommits();
  void disks.adopt(10);
  await settleAll();
  clock.advance(60_000);
  await settleAll();
  expect(disks.mapVersion()).toBe(9);
  for (const { kv } of folders) kv.releaseCommits();
});

test('a write waits until the version that it brings is kept', async () => {
  const only = folder('a');
  const served = Promise.withResolvers<ServedDisks>();
  const server: ChunkServerPort = {
    async serve(disks) {
      served.resolve(disks);
      return { address: '127.0.0.1:1', stop: async () => {} };
    },
  };
  await started([only], { server });
  const disks = await served.promise;
  only.kv.holdCommits();
  const adopted = disks.adopt(9);
  await settleAll();
  expect(disks.mapVersion()).toBe(0);
  only.kv.releaseCommits();
  await adopted;
  await disks.adopt(8);
  expect(disks.mapVersion()).toBe(9);
});

test('serves while the list of members is away, and is told as soon as it is back', async () => {
  const told: StorageMember[] = [];
  let isAway = true;
  const announce = async (member: StorageMember) => {
    if (isAway) throw new Error('no answer');
    told.push(member);
  };
  const { node, clock, events } = await started([folder('a')], { announce });
  expect(events).toEqual(['storage-node-not-announced']);
  expect(node.address).toMatch(/^127/);
  isAway = false;
  clock.advance(2000);
  await settleAll();
  expect(told).toHaveLength(1);
});

test('stops also when the list of members does not answer', async () => {
  const only = folder('a');
  const { node, clock } = await started([only], { announce: () => new Promise(() => {}) });
  const stopping = node.stop();
  await settleAll();
  expect(only.closedCount).toBe(0);
  clock.advance(2000);
  await stopping;
  expect(only.closedCount).toBe(1);
});
