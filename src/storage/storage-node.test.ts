import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { asChunkPort, connectTo, TEST_CLUSTER, TEST_SECRET } from '../../tests/support/chunk-nodes.ts';
import { settleAll } from '../../tests/support/replicated-world.ts';
import { createManualClock, createSeededRandom } from '../../tests/support/simulated.ts';
import { createChunkServer } from '../adapters/chunk-http/server.ts';
import { createMemoryKv, type MemoryKv } from '../adapters/memory-kv.ts';
import { openMemoryWitness, WitnessMedium } from '../adapters/memory-witness.ts';
import { METRICS } from '../adapters/prom-telemetry.ts';
import { systemClock } from '../adapters/system-clock.ts';
import { StaleMap } from '../model/chunk-refusals.ts';
import { makeBlobId } from '../model/names.ts';
import type { ChunkServerPort, ServedDisks } from '../ports/chunk-server.ts';
import type { StorageMember, StorageMembersPort } from '../ports/storage-members.ts';
import type { TelemetryPort } from '../ports/telemetry.ts';
import { openChunkStore } from './chunk-store.ts';
import { createDiskReserve } from './disk-reserve.ts';
import { CHUNK_COLUMNS, DISK_KEY } from './keyspace.ts';
import type { DiskToOpen } from './node-disks.ts';
import { createStorageNode, type StorageNode } from './storage-node.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const random = createSeededRandom(5);
const reserve = createDiskReserve({
  readSpace: async () => ({ freeBytes: 1e12, totalBytes: 2e12 }),
  clock: systemClock,
});

/** A folder that outlives the stores that are opened over it. */
interface Folder extends DiskToOpen {
  kv: MemoryKv;
  closedCount: number;
}

function folder(name: string): Folder {
  const kv = createMemoryKv(CHUNK_COLUMNS);
  const made: Folder = {
    ...{ name, kv, closedCount: 0 },
    async open() {
      const close = async () => void made.closedCount++;
      return { kv: { ...kv, close }, reserve };
    },
  };
  return made;
}

interface World {
  node: StorageNode;
  events: string[];
  members: (StorageMember | 'left')[];
  clock: ReturnType<typeof createManualClock>;
}

function nodeOver(
  disks: readonly DiskToOpen[],
  options: {
    clusterId?: string;
    announce?: StorageMembersPort['announce'];
    server?: ChunkServerPort;
    gauge?: TelemetryPort['gauge'];
  } = {},
): World {
  const { clusterId = TEST_CLUSTER } = options;
  const events: string[] = [];
  const members: World['members'] = [];
  const note = (_fields: object, event: string) => void events.push(event);
  const log = { debug: note, info: note, warn: note, error: note };
  const clock = createManualClock(1_700_000_000_000);
  const listen = { host: '127.0.0.1', port: 0 };
  const node = createStorageNode({
    ...{ clusterId, disks, random, log, clock },
    ...{ nodeId: 'n'.repeat(32), zone: 'cellar' },
    server:
      options.server ??
      createChunkServer({ listen, clusterId, credentials: TEST_SECRET, log, clock: systemClock }),
    members: {
      announce: options.announce ?? (async (member) => void members.push(member)),
      leave: async () => void members.push('left'),
    },
    reclaim: { afterBytes: 1e9, delayMs: 1e6 },
    scrub: { bytesPerSecond: 1e6, periodMs: 1e9 },
    owners: { version: () => 0, owns: () => false, hear() {} },
    fetch: async () => ({ kind: 'missing' }),
    telemetry: { count() {}, observe() {}, gauge: options.gauge ?? (() => {}) },
  });
  closers.push(() => node.stop());
  return { node, events, members, clock };
}

function chunksOf(world: World, at = 0, mapVersion = 1) {
  const client = connectTo();
  closers.push(() => client.close());
  const member = world.members.findLast((one) => one !== 'left');
  const { id } = member?.disks[at] ?? { id: '' };
  return asChunkPort(
    client.chunksOf({ id, nodeId: 'n', zone: 'z', capacityBytes: 1, address: world.node.address }),
    mapVersion,
  );
}

const newId = () => ({
  blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }),
  index: 0,
});

async function started(...args: Parameters<typeof nodeOver>): Promise<World> {
  const world = nodeOver(...args);
  await world.node.start();
  await settleAll();
  return world;
}

test('a disk that comes back without what it acknowledged says so, once', async () => {
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
    expect(world.members[0]).toMatchObject({ disks: [{ cuts: 1 }] });
    expect(world.events.includes('disk-cut')).toBe(start === 0);
    await world.node.stop();
  }
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
  expect(other.members[0]).not.toMatchObject({ disks: [{ cuts: expect.any(Number) }] });
  expect(other.events).not.toContain('disk-cut');
});

test('serves its disks, tells who it is and how much they hold, and leaves before it stops', async () => {
  const folders = [folder('a'), folder('b')];
  const world = await started(folders);
  const disk = { id: expect.stringMatching(/^[0-9a-f]{32}$/), capacityBytes: 2e12 };
  expect(world.members).toEqual([
    { nodeId: 'n'.repeat(32), zone: 'cellar', address: world.node.address, disks: [disk, disk] },
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

describe('a disk', () => {
  test('stays who it is, and is another once it was emptied (R40)', async () => {
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

  test('of another cluster is refused, and so are all others with it', async () => {
    const theirs = folder('theirs');
    await (await started([theirs], { clusterId: 'e'.repeat(32) })).node.stop();
    const ours = folder('ours');
    const world = nodeOver([ours, theirs]);
    await expect(world.node.start()).rejects.toThrow('The disk theirs is of cluster eeee');
    expect([world.members, ours.closedCount, theirs.closedCount]).toEqual([[], 1, 2]);
  });

  test('with chunks of no cluster is refused', async () => {
    const single = folder('single');
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const store = await openChunkStore({ kv: single.kv, reserve, clock: systemClock, log });
    await store.put(newId(), randomBytes(10));
    await expect(nodeOver([single]).node.start()).rejects.toThrow('of no cluster');
  });

  test('that was copied is refused', async () => {
    const [one, other] = [folder('one'), folder('other')];
    await (await started([one])).node.stop();
    const [row] = await one.kv.getMany('index', [DISK_KEY]);
    await other.kv.commit([{ column: 'index', key: DISK_KEY, value: row ?? null }]);
    await expect(nodeOver([one, other]).node.start()).rejects.toThrow('copies of one');
  });

  test('that cannot be opened does not keep the others away', async () => {
    const broken: DiskToOpen = { name: 'broken', open: () => Promise.reject(new Error('no such device')) };
    const world = await started([broken, folder('good')]);
    expect(world.events).toContain('disk-not-opened');
    await chunksOf(world).put(newId(), randomBytes(10));
    await expect(nodeOver([broken]).node.start()).rejects.toThrow('None of the disks');
  });

  test('that fails is served no more, and that is told; the last one ends the node', async () => {
    const [one, other] = [folder('one'), folder('other')];
    const world = await started([one, other]);
    const [first, second] = [chunksOf(world, 0), chunksOf(world, 1)];
    one.kv.fail(new Error('the disk is gone'));
    await settleAll();
    expect(world.events).toContain('disk-failed');
    expect(world.members.at(-1)).toMatchObject({ disks: [{ capacityBytes: 2e12 }] });
    await expect(first.get(newId())).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    expect(await second.get(newId())).toEqual({ kind: 'missing' });
    other.kv.fail(new Error('and the other one'));
    expect((await world.node.failed).message).toBe('and the other one');
    await settleAll();
    expect(world.members.at(-1)).toMatchObject({ disks: [] });
  });
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
