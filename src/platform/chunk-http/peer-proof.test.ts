import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import {
  connectTo,
  memoryNode,
  QUIET,
  TEST_CLUSTER,
  TEST_SECRET,
} from '../../../tests/support/disks/chunk-nodes.ts';
import type { ChunkId, ChunkPort } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import { makeBlobId } from '../../types/names.ts';
import { systemClock } from '../system-clock.ts';
import { createChunkClient } from './client.ts';
import { createProver } from './peer-proof.ts';
import { createChunkServer } from './server.ts';
import { chunkPath, formatChecksum, HEADER } from './wire.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const DISK = 'd'.repeat(32);
const placed = (address: string) => ({ id: DISK, nodeId: 'n', zone: 'z', capacityBytes: 1, address });
const newId = (): ChunkId => ({
  blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }),
  index: 0,
});
const never = new AbortController().signal;

async function serve(options: { clock?: ClockPort; advertise?: string } = {}) {
  const stored = new Set<string>();
  const unused = () => Promise.reject(new Error('not of this test'));
  const chunks: ChunkPort = {
    put: async ({ blobId }) => void stored.add(blobId),
    get: async () => ({ kind: 'missing' }),
    have: unused,
    drop: unused,
    list: unused,
    usage: unused,
    recount: unused,
  };
  const server = await createChunkServer({
    listen: { host: '127.0.0.1', port: 0 },
    clusterId: TEST_CLUSTER,
    credentials: TEST_SECRET,
    clock: systemClock,
    log: QUIET,
    ...options,
  }).serve(memoryNode([[DISK, chunks]]));
  closers.push(() => server.stop());
  return { server, stored };
}

test('a proof is valid for one request to one address, for a minute, and for one process', async () => {
  const { server, stored } = await serve();
  const startedBeforeMs = Date.now();
  const id = newId();
  const proofOf = (timeMs: number, path: string, address: string) =>
    createProver(TEST_SECRET.kind === 'secret' ? TEST_SECRET.secret : '').request({
      address,
      clusterId: TEST_CLUSTER,
      method: 'PUT',
      path,
      sizeBytes: 3,
      fence: '',
      checksum: formatChecksum(crc32('abc')),
      map: '1',
      timeMs: String(timeMs),
    });
  const send = async (timeMs: number, provenPath: string, address = server.address) => {
    const response = await fetch(`http://${server.address}${chunkPath(DISK, id)}`, {
      method: 'PUT',
      body: 'abc',
      headers: {
        [HEADER.cluster]: TEST_CLUSTER,
        [HEADER.checksum]: formatChecksum(crc32('abc')),
        [HEADER.map]: '1',
        [HEADER.timeMs]: String(timeMs),
        [HEADER.proof]: proofOf(timeMs, provenPath, address),
      },
    });
    return response.status;
  };
  const nowMs = Date.now();
  expect(await send(nowMs, chunkPath(DISK, newId()))).toBe(401);
  expect(await send(nowMs, chunkPath(DISK, id), '127.0.0.1:1')).toBe(401);
  expect(await send(startedBeforeMs - 1000, chunkPath(DISK, id))).toBe(401);
  expect(await send(nowMs + LIMITS.peerProofAgeMaxMs + 5000, chunkPath(DISK, id))).toBe(401);
  expect(stored.size).toBe(0);
  expect(await send(nowMs, chunkPath(DISK, id))).toBe(201);
});

test('an old proof is refused by a node that has run for longer', async () => {
  const clock = { ...systemClock, monotonicMs: () => 0 };
  const { server } = await serve({ clock });
  clock.monotonicMs = () => 2 * LIMITS.peerProofAgeMaxMs;
  const ask = (agoMs: number) => {
    const client = createChunkClient({
      clusterId: TEST_CLUSTER,
      credentials: TEST_SECRET,
      clock: { ...systemClock, wallMs: () => Date.now() - agoMs },
    });
    closers.push(() => client.close());
    return client.chunksOf(placed(server.address)).get(newId(), { isProven: false, signal: never });
  };
  expect(await ask(LIMITS.peerProofAgeMaxMs - 5000)).toEqual({ kind: 'missing' });
  await expect(ask(LIMITS.peerProofAgeMaxMs + 5000)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
});

test('a node that is announced under another address is not reached at its own', async () => {
  const { server } = await serve({ advertise: 'localhost:1' });
  const client = connectTo();
  closers.push(() => client.close());
  const direct = client.chunksOf(placed(server.address)).get(newId(), { isProven: false, signal: never });
  await expect(direct).rejects.toMatchObject({ code: 'ServiceUnavailable' });
});

test('the secret is for loopback only', () => {
  const options = { clusterId: TEST_CLUSTER, credentials: TEST_SECRET, clock: systemClock, log: QUIET };
  expect(() => createChunkServer({ ...options, listen: { host: '0.0.0.0', port: 0 } })).toThrow('loopback');
  expect(() => connectTo().chunksOf(placed('192.0.2.7:7000'))).toThrow('loopback');
});
