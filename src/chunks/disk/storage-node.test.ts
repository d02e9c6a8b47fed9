import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { chunksOf, closeNodes, folder, newId, started } from '../../../tests/support/disks/node-world.ts';
import { settleAll } from '../../../tests/support/disks/replicated-world.ts';
import { countedTelemetry } from '../../../tests/support/run/counted-telemetry.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { ChunkServerPort, ServedDisks } from '../../ports/chunk-server.ts';
import type { StorageMember } from '../../ports/members.ts';
import { StaleMap } from '../../types/chunk-refusals.ts';
import { chunkRoomLimitsOf, createDiskReserve } from './disk-reserve.ts';

afterEach(closeNodes);

test('serves its disks, announces them with their capacity, and leaves the list of members before it stops', async () => {
  const folders = [folder('a'), folder('b')];
  const world = await started(folders);
  const disk = { id: expect.stringMatching(/^[0-9a-f]{32}$/), capacityBytes: 2e12 };
  expect(world.members).toEqual([
    {
      nodeId: 'n'.repeat(32),
      zone: 'cellar',
      address: world.node.address,
      disks: [disk, disk],
      unserved: [],
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

test('reports its disks, and a file system that has grown', async () => {
  let totalBytes = 1e12;
  const only = folder('a');
  const growing = createDiskReserve({
    readSpace: async () => ({ freeBytes: 5e11, totalBytes }),
    clock: systemClock,
  });
  const { telemetry, refused } = countedTelemetry();
  const world = await started(
    [{ ...only, open: async () => ({ ...(await only.open()), reserve: growing }) }],
    { telemetry },
  );
  await chunksOf(world).put(newId(), randomBytes(10));
  const report = world.node.workers.find(({ name }) => name === 'report-disks');
  await report?.work(new AbortController().signal);
  const [member] = world.members;
  const [disk] = member === undefined || member === 'left' ? [] : member.disks;
  const { text } = await telemetry.scrape();
  const ofDisk = [...text.matchAll(/^holdfast_disk_(\w+)\{disk="(\w+)"\} (\S+)$/gm)];
  expect(new Set(ofDisk.map(([, , id]) => id))).toEqual(new Set([disk?.id]));
  expect(Object.fromEntries(ofDisk.map(([, name, , value]) => [name, Number(value)]))).toEqual({
    chunks: 1,
    chunk_bytes: 10,
    pending_reclaim_bytes: expect.any(Number),
    free_bytes: 5e11,
    bytes: 1e12,
    quarantined_chunks: 0,
    unread_chunks: 0,
    full_below_bytes: chunkRoomLimitsOf({ totalBytes: 1e12 }).fullBelowBytes,
    scarce_below_bytes: 16 * 1024 ** 3,
    scrub_progress_ratio: 0,
    scrub_found_chunks: 0,
  });
  expect(text).toContain('holdfast_node_disks{state="serving"} 1\n');
  expect(world.members).toHaveLength(1);
  totalBytes = 2e12;
  await report?.work(new AbortController().signal);
  await report?.work(new AbortController().signal);
  await settleAll();
  expect(world.members.slice(1)).toMatchObject([{ disks: [{ capacityBytes: 2e12 }] }]);
  expect(refused).toEqual([]);
});

test('remembers the newest placement version over a restart (R34)', async () => {
  const folders = [folder('a'), folder('b')];
  const world = await started(folders);
  await chunksOf(world, 0, 7).put(newId(), randomBytes(10));
  await world.node.stop();
  const again = await started(folders);
  await expect(chunksOf(again, 1, 6).put(newId(), randomBytes(10))).rejects.toBeInstanceOf(StaleMap);
  await chunksOf(again, 1, 7).put(newId(), randomBytes(10));
});

test('stores a placement version on the other disks when one fails', async () => {
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

test('waits for a hanging disk to store a placement version only if it is the only disk', async () => {
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

test('answers a write only when the placement version of the write is stored', async () => {
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

test('serves while the list of members is unavailable, and announces its disks when it is back', async () => {
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
