import { expect, test } from 'vitest';
import type { ChunkId, ChunkPort } from '../../ports/chunks.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BlobId, makeBlobId } from '../../types/names.ts';
import { createChunkSweep } from './sweep-chunks.ts';

const NOW = 10 * LIMITS.sweepAfterMs;
const HOUR = 60 * 60 * 1000;
let serial = 0;

function blobOf(ageMs: number, homeShard = 1): BlobId {
  return makeBlobId({
    timeMs: NOW - ageMs,
    homeShard,
    random: Buffer.from(String(serial++).padStart(8, '0')),
  });
}

/** A disk and shards as lists, with the messages that the sweep uses. */
function setUp(options: { shardTimeMs?: number; isBusy?: boolean | number; undroppable?: ChunkId[] } = {}) {
  const stored = new Map<string, { id: ChunkId; sizeBytes: number; receivedAtMs: number }>();
  const known = new Map<BlobId, object>();
  const dropped: ChunkId[] = [];
  const asked: string[] = [];
  const chunks = {
    async list({ after, limit }: { after?: ChunkId; limit: number }) {
      const rows = [...stored].sort(([a], [b]) => (a < b ? -1 : 1));
      const from = after === undefined ? 0 : rows.findIndex(([name]) => name > nameOf(after));
      return from === -1 ? [] : rows.slice(from, from + limit).map(([, row]) => row);
    },
    async drop(ids: readonly ChunkId[]) {
      if (ids.some((id) => options.undroppable?.includes(id))) throw new Error('it stays');
      dropped.push(...ids);
      for (const id of ids) stored.delete(nameOf(id));
    },
  };
  const metadata = {
    async execute({ shard }: { shard: number }, name: string) {
      asked.push(`${name} ${shard}`);
      if (options.isBusy === true || options.isBusy === shard) return { kind: 'busy' };
      return { kind: 'done', value: { kind: 'ticked' }, timeMs: options.shardTimeMs ?? NOW };
    },
    async query({ shard }: { shard: number }, name: string, { blobIds }: { blobIds: BlobId[] }) {
      asked.push(`${name} ${shard}`);
      return {
        kind: 'done',
        value: { blobs: blobIds.map((id) => known.get(id) ?? null) },
        timeMs: NOW + HOUR,
      };
    },
  };
  const sweep = createChunkSweep({
    chunks: chunks as unknown as ChunkPort,
    metadata: metadata as unknown as MetadataPort,
    clock: { wallMs: () => NOW, monotonicMs: () => 0, sleep: async () => {} },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    fenceOf: (shard) => ({ shard, incarnation: 1, epoch: 1 }),
  });
  const add = (blobId: BlobId, index = 0, receivedAtMs = NOW - LIMITS.sweepAfterMs - HOUR) => {
    const id = { blobId, index };
    stored.set(nameOf(id), { id, sizeBytes: 1, receivedAtMs });
    return id;
  };
  const work = () => sweep.work(new AbortController().signal);
  return { add, known, dropped, asked, work, options };
}

function nameOf({ blobId, index }: ChunkId): string {
  return `${blobId}.${String(index).padStart(4, '0')}`;
}

const OLD = LIMITS.sweepAfterMs + 2 * HOUR;

test('drops a chunk that is old, unknown to its home shard and too late to be committed', async () => {
  const { add, known, dropped, work } = setUp();
  const orphan = blobOf(OLD);
  const orphans = [add(orphan, 0), add(orphan, 1)];
  const live = blobOf(OLD);
  add(live);
  known.set(live, {});
  const condemned = blobOf(OLD);
  add(condemned);
  known.set(condemned, { condemnedAtMs: 1 });
  add(blobOf(HOUR), 0, NOW - HOUR);
  expect(await work()).toMatchObject({ state: 'idle' });
  expect(dropped).toEqual(orphans);
});

test('asks each home shard about its own blobs', async () => {
  const { add, dropped, asked, work } = setUp();
  const orphans = [add(blobOf(OLD, 1)), add(blobOf(OLD, 2))];
  await work();
  expect(asked.sort()).toEqual(['get-blobs 1', 'get-blobs 2', 'tick 1', 'tick 2']);
  expect(new Set(dropped)).toEqual(new Set(orphans));
});

test('keeps a chunk that is young, or that the shard might still commit by its own clock', async () => {
  const late = setUp({ shardTimeMs: NOW - 3 * HOUR });
  late.add(blobOf(OLD));
  await late.work();
  expect(late.dropped).toEqual([]);
  expect(late.asked).toEqual(['tick 1']);
  const young = setUp();
  young.add(blobOf(OLD), 0, NOW - HOUR);
  await young.work();
  expect(young.asked).toEqual([]);
});

test('asks a busy shard again later, from the same place', async () => {
  const { add, dropped, work } = setUp({ isBusy: true });
  add(blobOf(OLD));
  expect(await work()).toMatchObject({ state: 'idle' });
  expect(await work()).toMatchObject({ state: 'idle' });
  expect(dropped).toEqual([]);
});

test('goes through a large disk page by page', async () => {
  const { add, dropped, work } = setUp();
  for (let count = 0; count < 1200; count++) add(blobOf(OLD));
  expect(await work()).toEqual({ state: 'busy' });
  expect(await work()).toEqual({ state: 'busy' });
  expect(await work()).toMatchObject({ state: 'idle' });
  expect(dropped).toHaveLength(1200);
});

test('sweeps other shards while one is busy, and asks that one again from where it was', async () => {
  const { add, dropped, asked, work, options } = setUp({ isBusy: 1 });
  for (let count = 0; count < 600; count++) add(blobOf(OLD, 2));
  add(blobOf(OLD - 1000, 1));
  for (let count = 0; count < 600; count++) add(blobOf(OLD - 2000, 2));
  const pauses: unknown[] = [];
  while (pauses.length < 3) {
    const outcome = await work();
    if (outcome.state === 'idle') pauses.push(outcome.idleMs);
  }
  expect(dropped).toHaveLength(1200);
  expect(pauses).toEqual([10_000, 20_000, 40_000]);
  options.isBusy = false;
  asked.length = 0;
  expect(await work()).toEqual({ state: 'idle', idleMs: HOUR });
  expect(asked).toEqual(['tick 1', 'get-blobs 1']);
  expect(dropped).toHaveLength(1201);
});

test('continues behind a chunk that cannot be dropped', async () => {
  const stays = blobOf(OLD, 1);
  const undroppable: ChunkId[] = [];
  const { add, dropped, work } = setUp({ undroppable });
  undroppable.push(add(stays));
  for (let count = 0; count < 600; count++) add(blobOf(OLD - 1000, 2));
  expect(await work()).toEqual({ state: 'busy' });
  expect(await work()).toEqual({ state: 'idle', idleMs: 10_000 });
  expect(dropped).toHaveLength(600);
});
