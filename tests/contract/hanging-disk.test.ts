// A node of several disks, of which one does not answer: neither do its own orders wait for that, nor the other disks.
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import type { ChunkId, ChunkPort } from '../../src/ports/chunks.ts';
import type { DiskChunks } from '../../src/ports/disk-chunks.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { makeBlobId } from '../../src/types/names.ts';
import { connectTo, memoryNode, serveNode } from '../support/disks/chunk-nodes.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const HANGING = 'd'.repeat(32);
const OTHER = 'e'.repeat(32);
const putsMax = LIMITS.chunkPutsBytesMax / LIMITS.chunkBytesMax;
const never = new AbortController().signal;
const newId = (): ChunkId => ({
  blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }),
  index: 0,
});

/** A disk that keeps bytes in a map; its calls can be replaced. */
function memoryDisk(instead: Partial<ChunkPort> = {}): ChunkPort {
  const stored = new Map<string, Uint8Array>();
  const unused = () => Promise.reject(new Error('not of this test'));
  return {
    async put({ blobId }, bytes) {
      stored.set(blobId, bytes);
    },
    async get({ blobId }) {
      const bytes = stored.get(blobId);
      return bytes === undefined ? { kind: 'missing' } : { kind: 'found', bytes: Uint8Array.from(bytes) };
    },
    have: unused,
    drop: unused,
    list: unused,
    usage: unused,
    recount: unused,
    ...instead,
  };
}

function put(disk: DiskChunks, bytes: Uint8Array, id = newId()): Promise<void> {
  return disk.put(id, bytes, { checksum: crc32(bytes), mapVersion: 1, signal: never });
}

/** A call that never ends, and when there have been so many of it. */
function hanging(count: number) {
  const reached = Promise.withResolvers<void>();
  let callCount = 0;
  const call = () => {
    if (++callCount === count) reached.resolve();
    return new Promise<never>(() => {});
  };
  return { call, reached: reached.promise };
}

async function serveTwo(instead: Partial<ChunkPort>) {
  const node = memoryNode([
    [HANGING, memoryDisk(instead)],
    [OTHER, memoryDisk()],
  ]);
  const server = await serveNode(node);
  // Not waited for: what hangs in it never ends.
  closers.push(async () => void server.stop());
  return (id = HANGING): DiskChunks => {
    const client = connectTo();
    closers.push(() => client.close());
    return client.chunksOf({ id, nodeId: 'n', zone: 'z', capacityBytes: 1, address: server.address });
  };
}

function fill(disk: DiskChunks): void {
  for (let count = 0; count <= putsMax; count++) put(disk, randomBytes(LIMITS.chunkBytesMax)).catch(() => {});
}

test('a hanging disk does not stop others from taking and giving chunks', async () => {
  const [puts, gets] = [hanging(putsMax), hanging(LIMITS.chunkReadsInFlightMax)];
  const connect = await serveTwo({ put: puts.call, get: gets.call });
  fill(connect());
  for (const disk of [connect(), connect()])
    for (let count = 0; count < LIMITS.chunkConnectionsPerNode; count++)
      disk.get(newId(), { isProven: false, signal: never }).catch(() => {});
  await Promise.all([puts.reached, gets.reached]);
  const id = newId();
  const well = connect(OTHER);
  await put(well, randomBytes(1000), id);
  expect(await well.get(id, { isProven: false, signal: never })).toMatchObject({ kind: 'found' });
});

test('a disk that hangs in its writes still accepts orders', async () => {
  const puts = hanging(putsMax);
  const dropped: ChunkId[] = [];
  const connect = await serveTwo({ put: puts.call, drop: async (ids) => void dropped.push(...ids) });
  fill(connect());
  await puts.reached;
  const ids = [newId(), newId()];
  await connect().drop(ids, { shard: 1, incarnation: 1, epoch: 1 });
  expect(dropped).toEqual(ids);
});
