// What the chunk store itself does on this disk: puts of whole chunks, synced, and reads, at several depths. Run:
// npx node bench/chunk-store.ts [--folder PATH] [--mib N] [--chunk KIB] [--separate-from KIB] [--delete-half]
// --separate-from 0: no chunk lies in an extent.
// With --delete-half it then deletes half of the chunks at random, goes on writing, and tells when 90 % of that room is back.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { crc32 } from '../src/base/crypto/crc32.ts';
import { openChunkStore } from '../src/chunks/disk/chunk-store.ts';
import { createDiskReserve } from '../src/chunks/disk/disk-reserve.ts';
import { CHUNK_PLACES } from '../src/chunks/disk/keyspace.ts';
import { createReclaim } from '../src/chunks/disk/reclaim.ts';
import { createChunkBuffers } from '../src/objects/chunk-buffers.ts';
import { readDiskSpace } from '../src/platform/disk/disk-space.ts';
import { openSeparatedKv } from '../src/platform/extents/open-separated.ts';
import { RecordMemory } from '../src/platform/extents/record-memory.ts';
import { systemClock } from '../src/platform/system-clock.ts';
import type { ChunkId } from '../src/ports/chunks.ts';
import { makeBlobId } from '../src/types/names.ts';

const MiB = 1024 * 1024;
const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    mib: { type: 'string', default: '1024' },
    chunk: { type: 'string', default: '1024' },
    'separate-from': { type: 'string', default: '256' },
    'delete-half': { type: 'boolean', default: false },
  },
});
const totalMiB = Number(values.mib);
const chunkBytes = Number(values.chunk) * 1024;
const chunkCount = (totalMiB * MiB) / chunkBytes;
const folder = await mkdtemp(join(values.folder ?? tmpdir(), 'holdfast-bench-chunks-'));

const received = new RecordMemory(64 * MiB);
const buffers = createChunkBuffers({
  chunkSizeBytes: chunkBytes,
  pooledBytesMax: 64 * MiB,
  records: {
    fromBytes: Number(values['separate-from']) * 1024,
    take: (sizeBytes) => received.take(sizeBytes),
  },
});
const kv = await openSeparatedKv({
  folder: join(folder, 'chunks'),
  columns: { data: { reads: 'async', content: 'ciphertext' }, index: { reads: 'sync', content: 'rows' } },
  separated: CHUNK_PLACES,
  separateFromBytes: Number(values['separate-from']) * 1024,
  onReleased: (buffer) => buffers.give(buffer),
  received,
});
const log = { debug() {}, info() {}, warn: console.warn, error: console.error };
const reserve = createDiskReserve({ readSpace: () => readDiskSpace(folder), clock: systemClock });
const store = await openChunkStore({ kv, reserve, clock: systemClock, log });

const content = randomBytes(buffers.sizeBytes);
const contentChecksum = crc32(content);
/** Where memory is compared with it. */
const EDGES = Array.from({ length: 16 }, (_, index) => Math.floor((index * (content.length - 1)) / 15));
const ids: ChunkId[] = [];

async function put(): Promise<void> {
  const id = {
    blobId: makeBlobId({ timeMs: Date.now(), homeShard: 0, random: randomBytes(8) }),
    index: 0,
  };
  const memory = buffers.lease(content.length);
  // Memory that is used again has its bytes already, as a server's codec has taken their checksum.
  if (!EDGES.every((at) => memory.bytes[at] === content[at])) memory.bytes.set(content);
  await store.put(id, memory.bytes, contentChecksum);
  memory.release();
  ids.push(id);
}

async function measure(name: string, depth: number, act: () => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  let next = 0;
  const loop = async () => {
    while (next++ < chunkCount) await act();
  };
  await Promise.all(Array.from({ length: depth }, loop));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const perGiB = (microseconds: number) => (microseconds / 1e6 / (totalMiB / 1024)).toFixed(2);
  console.log(
    `${name.padEnd(4)} depth ${String(depth).padStart(2)}  ${(totalMiB / seconds).toFixed(0).padStart(5)} MiB/s  ` +
      `user ${perGiB(user)} s/GiB, system ${perGiB(system)} s/GiB`,
  );
}

/** As a server does: what waits to be given back is looked at every 5 s, while two writers go on. */
async function deleteHalf(): Promise<void> {
  const before = ids.splice(0);
  const gone = before.filter(() => Math.random() < 0.5);
  for (let from = 0; from < gone.length; from += 100)
    await store.drop(gone.slice(from, from + 100), { shard: 0, incarnation: 1, epoch: 1 });
  const pendingBytes = async () => (await store.usage()).pendingReclaimBytes;
  const firstBytes = await pendingBytes();
  const startedAt = performance.now();
  let isOver = false;
  const write = async () => {
    while (!isOver) await put();
  };
  const writers = [write(), write()];
  const how = { name: 'reclaim', afterBytes: 64 * MiB, delayMs: 60_000 };
  const worker = createReclaim({ ...how, kv, pendingBytes, reserve, clock: systemClock, log });
  while ((await pendingBytes()) > 0.1 * firstBytes) {
    const { idleMs } = (await worker.work(new AbortController().signal)) as { idleMs: number };
    if ((await pendingBytes()) > 0.1 * firstBytes) await systemClock.sleep(idleMs);
  }
  isOver = true;
  await Promise.all(writers);
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(
    `of ${(firstBytes / MiB).toFixed(0)} MiB deleted at random 90 % were given back after ${seconds.toFixed(0)} s; ` +
      `${((ids.length * chunkBytes) / MiB / seconds).toFixed(0)} MiB/s were written meanwhile`,
  );
}

try {
  for (const depth of [1, 4, 8, 16]) await measure('put', depth, put);
  for (const depth of [1, 4, 8]) {
    await measure('get', depth, async () => {
      const id = ids[Math.floor(Math.random() * ids.length)];
      if (id === undefined || (await store.get(id)).kind !== 'found') throw new Error('a chunk is missing');
    });
  }
  if (values['delete-half']) await deleteHalf();
  const usage = await store.usage();
  console.log(
    `${usage.chunkCount} chunks, ${usage.liveBytes} bytes live, ${usage.pendingReclaimBytes} beside them`,
  );
} finally {
  await kv.close();
  await rm(folder, { recursive: true });
}
