// A member that asks for a chunk and does not take it: what is held for it is held for a bounded time.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createProver } from '../../src/platform/chunk-http/peer-proof.ts';
import { chunkPath, HEADER } from '../../src/platform/chunk-http/wire.ts';
import type { ChunkPort } from '../../src/ports/chunks.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { makeBlobId } from '../../src/types/names.ts';
import { memoryNode, serveNode, TEST_CLUSTER, TEST_SECRET } from '../support/disks/chunk-nodes.ts';
import { settleAll } from '../support/disks/replicated-world.ts';
import { createManualClock } from '../support/run/simulated.ts';

const MiB = 1024 * 1024;
const DISK = 'd'.repeat(32);
/** More than the system keeps of a connection. */
const SIZE_BYTES = 64 * MiB;
const PATH = chunkPath(DISK, {
  blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: new Uint8Array(8) }),
  index: 0,
});

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function ask(socket: Socket, address: string, timeMs: string): void {
  if (TEST_SECRET.kind !== 'secret') throw new Error('made so');
  const facts = { method: 'GET', path: PATH, sizeBytes: 0, checksum: '', map: '1', fence: '', timeMs };
  const proof = createProver(TEST_SECRET.secret).request({ clusterId: TEST_CLUSTER, address, ...facts });
  const headers = {
    host: address,
    [HEADER.cluster]: TEST_CLUSTER,
    [HEADER.map]: '1',
    [HEADER.timeMs]: timeMs,
    [HEADER.proof]: proof,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${PATH} HTTP/1.1\r\n${lines.join('')}\r\n`);
}

test('a client that reads an answer too slowly loses its connection when the request times out', async () => {
  const clock = createManualClock(Date.now());
  const unused = () => Promise.reject(new Error('not of this test'));
  const disk: ChunkPort = {
    get: async () => ({ kind: 'found', bytes: new Uint8Array(SIZE_BYTES), checksum: 0 }),
    put: unused,
    have: unused,
    drop: unused,
    list: unused,
    usage: unused,
    recount: unused,
  };
  const server = await serveNode(memoryNode([[DISK, disk]]), { clock });
  closers.push(() => server.stop());
  const [host = '', port] = server.address.split(':');
  const socket = connect(Number(port), host);
  closers.push(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  let takenBytes = 0;
  ask(socket, server.address, String(clock.wallMs()));
  const [first] = (await once(socket, 'data')) as [Buffer];
  takenBytes += first.length;
  expect(first.toString('latin1')).toMatch(/^HTTP\/1.1 200 /);
  socket.pause();
  clock.advance(LIMITS.chunkRequestMaxMs / 2);
  await settleAll();
  expect(socket.closed).toBe(false);
  clock.advance(LIMITS.chunkRequestMaxMs / 2);
  await settleAll();
  socket.on('data', (piece: Buffer) => {
    takenBytes += piece.length;
    if (takenBytes > SIZE_BYTES) socket.destroy();
  });
  const closed = once(socket, 'close');
  socket.resume();
  await closed;
  expect(takenBytes).toBeLessThan(SIZE_BYTES);
});
