import { randomBytes } from 'node:crypto';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { crc32 } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createProver,
  type PeerCertificates,
  type PeerCredentials,
} from '../../src/platform/chunk-http/peer-proof.ts';
import {
  CHUNK_BODY_BYTES_MAX,
  chunkPath,
  formatChecksum,
  HEADER,
} from '../../src/platform/chunk-http/wire.ts';
import { AT_ONCE_MAX } from '../../src/platform/few-at-once.ts';
import type { RunningChunkServer } from '../../src/ports/chunk-server.ts';
import type { ChunkId, ChunkPort } from '../../src/ports/chunks.ts';
import type { DiskChunks } from '../../src/ports/disk-chunks.ts';
import { DiskBusy, StaleMap } from '../../src/types/chunk-refusals.ts';
import { AppError } from '../../src/types/errors.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { makeBlobId } from '../../src/types/names.ts';
import { createPeerAuthority } from '../support/coordination/peer-certificates.ts';
import { connectTo, memoryNode, serveNode, TEST_CLUSTER, TEST_SECRET } from '../support/disks/chunk-nodes.ts';
import { watchTlsWrites } from '../support/run/tls-writes.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const DISK = 'd'.repeat(32);
const newId = (): ChunkId => ({
  blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }),
  index: 0,
});
const never = new AbortController().signal;

/** A disk that keeps bytes in a map; its calls can be replaced. */
function memoryDisk(instead: Partial<ChunkPort> = {}): ChunkPort & { stored: Map<string, Uint8Array> } {
  const stored = new Map<string, Uint8Array>();
  const unused = () => Promise.reject(new Error('not of this test'));
  return {
    stored,
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

interface Served {
  disk: DiskChunks;
  server: RunningChunkServer;
  stored: Map<string, Uint8Array>;
  node: ReturnType<typeof memoryNode>;
}

async function serve(
  options: {
    instead?: Partial<ChunkPort>;
    server?: Parameters<typeof serveNode>[1];
    client?: { credentials?: PeerCredentials; clusterId?: string; onMapVersion?(version: number): void };
    mapVersion?: number;
  } = {},
): Promise<Served> {
  const chunks = memoryDisk(options.instead);
  const node = memoryNode([[DISK, chunks]], options.mapVersion);
  const server = await serveNode(node, options.server);
  closers.push(() => server.stop());
  const client = connectTo(options.client);
  closers.push(() => client.close());
  return { disk: client.chunksOf(placed(server.address)), server, stored: chunks.stored, node };
}

const placed = (address: string) => ({ id: DISK, nodeId: 'n', zone: 'z', capacityBytes: 1, address });

function put(
  disk: DiskChunks,
  id: ChunkId,
  bytes: Uint8Array,
  mapVersion = 1,
  signal = never,
): Promise<void> {
  return disk.put(id, bytes, { checksum: crc32(bytes), mapVersion, signal });
}

describe('strangers are refused', () => {
  const otherSecret: PeerCredentials = { kind: 'secret', secret: 'another secret' };

  test.each([
    ['another secret', { credentials: otherSecret }],
    ['another cluster', { clusterId: 'e'.repeat(32) }],
  ])('%s', async (_name, client) => {
    const { disk, stored } = await serve({ client });
    await expect(put(disk, newId(), randomBytes(100_000))).rejects.toMatchObject({
      code: 'ServiceUnavailable',
      cause: { cause: { message: expect.stringContaining('stranger') } },
    });
    expect(stored.size).toBe(0);
  });

  test('thousands of requests in one read: a few are looked at', async () => {
    const { server } = await serve();
    const made: unknown[] = [];
    const note = (message: unknown) => made.push(message);
    diagnostics.subscribe('http.server.request.start', note);
    const [host, port] = server.address.split(':');
    const socket = connect(Number(port), host);
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2000));
    await once(socket.resume(), 'close');
    diagnostics.unsubscribe('http.server.request.start', note);
    expect(made).toHaveLength(AT_ONCE_MAX);
  });

  test('no certificate, and one of another authority', async () => {
    const authority = await createPeerAuthority();
    const { server, stored } = await serve({ server: { credentials: await authority.issue() } });
    const foreign = await (await createPeerAuthority()).issue();
    for (const credentials of [TEST_SECRET, foreign, { ...foreign, ca: authority.ca }]) {
      const client = connectTo({ credentials });
      const chunks = client.chunksOf(placed(server.address));
      await expect(put(chunks, newId(), randomBytes(10))).rejects.toMatchObject({
        code: 'ServiceUnavailable',
      });
      await client.close();
    }
    expect(stored.size).toBe(0);
  });

  test('a member of the authority, but of another cluster', async () => {
    const authority = await createPeerAuthority();
    const credentials = await authority.issue();
    const { disk, stored } = await serve({
      server: { credentials },
      client: { credentials: await authority.issue(), clusterId: 'e'.repeat(32) },
    });
    await expect(put(disk, newId(), randomBytes(10))).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    expect(stored.size).toBe(0);
  });

  test('a server that cannot prove that it knows the secret is not trusted', async () => {
    const impostor = createServer((request, response) => {
      request.resume();
      request.on('end', () => response.writeHead(201).end());
    }).listen(0, '127.0.0.1');
    await once(impostor, 'listening');
    closers.push(async () => void impostor.close());
    const client = connectTo();
    closers.push(() => client.close());
    const { port } = impostor.address() as AddressInfo;
    const disk = client.chunksOf(placed(`127.0.0.1:${port}`));
    await expect(put(disk, newId(), randomBytes(10))).rejects.toMatchObject({
      cause: { cause: { message: expect.stringContaining('not proven') } },
    });
  });
});

describe('the map', () => {
  test('a write by an older one is refused with the known version (R34)', async () => {
    const { disk, stored } = await serve({ mapVersion: 7 });
    const refused = await put(disk, newId(), randomBytes(300_000), 6).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StaleMap);
    expect(refused).toMatchObject({ version: 7, code: 'ServiceUnavailable' });
    expect(stored.size).toBe(0);
    await put(disk, newId(), randomBytes(300_000), 7);
    expect(stored.size).toBe(1);
  });

  test('a newer one is announced, and then counts', async () => {
    const heard: number[] = [];
    const onMapVersion = (version: number) => void heard.push(version);
    const { disk, node } = await serve({ client: { onMapVersion } });
    await put(disk, newId(), randomBytes(10), 5);
    expect(node.mapVersion()).toBe(5);
    await expect(put(disk, newId(), randomBytes(10), 4)).rejects.toBeInstanceOf(StaleMap);
    expect(heard).toEqual([5, 5]);
  });
});

describe('bodies', () => {
  test('with a wrong checksum are refused', async () => {
    const { disk, stored } = await serve();
    const how = { checksum: 1, mapVersion: 1, signal: never };
    await expect(disk.put(newId(), randomBytes(10), how)).rejects.toMatchObject({
      code: 'ServiceUnavailable',
    });
    expect(stored.size).toBe(0);
  });

  test('larger than a chunk are refused', async () => {
    const { disk, stored } = await serve();
    const large = Buffer.alloc(LIMITS.chunkBytesMax + 64 * 1024);
    await expect(put(disk, newId(), large)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    expect(stored.size).toBe(0);
  });

  test('are read beside many others, in bounded memory, and end where they were sent', async () => {
    const { disk, stored } = await serve();
    const bodies = Array.from({ length: 100 }, () => randomBytes(1024 * 1024));
    const ids = bodies.map(newId);
    await Promise.all(bodies.map((body, at) => put(disk, ids[at] ?? newId(), body)));
    expect(stored.size).toBe(100);
    const reads = await Promise.all(ids.map((id) => disk.get(id, { isProven: false, signal: never })));
    for (const [at, read] of reads.entries())
      expect(read.kind === 'found' && bodies[at]?.equals(read.bytes)).toBe(true);
  });

  test('that changed on their way are damaged, unless the reader verifies them itself', async () => {
    const bytes = randomBytes(1000);
    const wrong = { kind: 'found', bytes, checksum: (crc32(bytes) ^ 1) >>> 0 } as const;
    const { disk } = await serve({
      instead: { get: async () => ({ ...wrong, bytes: Uint8Array.from(bytes) }) },
    });
    expect(await disk.get(newId(), { isProven: false, signal: never })).toEqual({ kind: 'damaged' });
    expect(await disk.get(newId(), { isProven: true, signal: never })).toMatchObject({ kind: 'found' });
  });
});

describe.each(['secret', 'certificates'])('memory of bodies, by %s', (kind) => {
  async function serveInto(bytes: Uint8Array, instead: Partial<ChunkPort>) {
    const authority = kind === 'secret' ? undefined : await createPeerAuthority();
    const credentials = authority === undefined ? TEST_SECRET : await authority.issue();
    const released = Promise.withResolvers<void>();
    const takeMemory = (sizeBytes: number) => ({
      bytes: bytes.subarray(0, sizeBytes),
      release: () => released.resolve(),
    });
    const client = { credentials: authority === undefined ? TEST_SECRET : await authority.issue() };
    const served = await serve({ instead, server: { credentials, takeMemory }, client });
    return { ...served, credentials: client.credentials, released: released.promise };
  }

  test('one arrives in what the node gives, and that is given back behind the answer of the disk', async () => {
    const memory = Buffer.alloc(LARGE);
    const bytes = randomBytes(LARGE - 1);
    const mayEnd = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<Uint8Array>();
    const slowly = async (_: ChunkId, given: Uint8Array): Promise<undefined> => {
      arrived.resolve(given);
      await mayEnd.promise;
    };
    const { disk, released } = await serveInto(memory, { put: slowly });
    let isReleased = false;
    void released.then(() => {
      isReleased = true;
    });
    const putting = put(disk, newId(), bytes);
    const given = await arrived.promise;
    expect(given.buffer).toBe(memory.buffer);
    expect(bytes.equals(given)).toBe(true);
    expect(isReleased).toBe(false);
    mayEnd.resolve();
    await putting;
    await released;
    // The connection goes on.
    await put(disk, newId(), bytes.subarray(1));
    expect(bytes.subarray(1).equals(memory.subarray(0, LARGE - 2))).toBe(true);
  });

  test('one that ends early leaves it alone when it is given back', async () => {
    const memory = Buffer.alloc(LARGE);
    const { server, credentials, released, stored } = await serveInto(memory, {});
    const id = newId();
    const head = provenHead(server.address, id, { credentials, sizeBytes: LARGE });
    const socket = await connectRaw(server.address, credentials);
    socket.on('error', () => {}).resume();
    socket.write(head);
    socket.write(Buffer.alloc(LARGE / 2, 1));
    while (memory[LARGE / 2 - 1] !== 1) await new Promise((resolve) => setTimeout(resolve, 1));
    socket.end();
    await released;
    // Bytes that were on their way, too.
    memory.fill(0);
    await once(socket, 'close');
    expect(memory.every((byte) => byte === 0)).toBe(true);
    expect(stored.size).toBe(0);
  });
});

const LARGE = 1024 * 1024;

function provenHead(
  address: string,
  id: ChunkId,
  { credentials, sizeBytes }: { credentials: PeerCredentials; sizeBytes: number },
): string {
  const facts = {
    address,
    clusterId: TEST_CLUSTER,
    method: 'PUT',
    path: chunkPath(DISK, id),
    sizeBytes,
    fence: '',
    checksum: formatChecksum(0),
    map: '1',
    timeMs: String(Date.now()),
  };
  const lines = [
    `PUT ${facts.path} HTTP/1.1`,
    `host: ${address}`,
    `content-length: ${sizeBytes}`,
    `${HEADER.cluster}: ${TEST_CLUSTER}`,
    `${HEADER.checksum}: ${facts.checksum}`,
    `${HEADER.map}: 1`,
  ];
  if (credentials.kind === 'secret') {
    const proof = createProver(credentials.secret).request(facts);
    lines.push(`${HEADER.timeMs}: ${facts.timeMs}`, `${HEADER.proof}: ${proof}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

async function connectRaw(address: string, credentials: PeerCredentials): Promise<Socket> {
  const [host = '', port] = address.split(':');
  if (credentials.kind === 'secret') return connect(Number(port), host);
  const { ca, cert, key } = credentials;
  const socket = connectTls({ host, port: Number(port), ca, cert, key });
  await once(socket, 'secureConnect');
  return socket;
}

test('a node that does not know parts of chunks gives all of one, and what is no part is malformed', async () => {
  const asked: unknown[] = [];
  const bytes = randomBytes(1000);
  const { disk, server } = await serve({
    instead: {
      async get(_id, how) {
        asked.push(how?.part);
        return { kind: 'found', bytes: Uint8Array.from(bytes), checksum: crc32(bytes) };
      },
    },
  });
  const part = { offsetBytes: 10, sizeBytes: 20 };
  const read = await disk.get(newId(), { isProven: true, part, signal: never });
  expect(read.kind === 'found' && bytes.equals(read.bytes)).toBe(true);
  expect(asked).toEqual([part]);
  for (const sizeBytes of [0, CHUNK_BODY_BYTES_MAX + 1]) {
    const wrong = disk.get(newId(), { isProven: true, part: { ...part, sizeBytes }, signal: never });
    await expect(wrong).rejects.toMatchObject({ cause: { message: expect.stringContaining('malformed') } });
  }
  await server.stop();
});

test('a disk that the node does not have is not a missing chunk (R37)', async () => {
  const { disk, node } = await serve();
  expect(await disk.get(newId(), { isProven: false, signal: never })).toEqual({ kind: 'missing' });
  node.disks.clear();
  await expect(disk.get(newId(), { isProven: false, signal: never })).rejects.toMatchObject({
    code: 'ServiceUnavailable',
    cause: { message: expect.stringContaining('no-disk') },
  });
});

test('a cancelled request waits no longer, even if nothing has been sent', async () => {
  const { disk } = await serve({ instead: { get: () => new Promise(() => {}) } });
  const giveUp = new AbortController();
  const reads = Array.from({ length: LIMITS.chunkConnectionsPerNode + 1 }, () =>
    disk.get(newId(), { isProven: false, signal: giveUp.signal }),
  );
  const settled = Promise.allSettled(reads);
  giveUp.abort();
  expect((await settled).every(({ status }) => status === 'rejected')).toBe(true);
});

test('more than may wait is SlowDown', async () => {
  const { disk } = await serve({ instead: { get: () => new Promise(() => {}) } });
  const giveUp = new AbortController();
  const read = () => disk.get(newId(), { isProven: false, signal: giveUp.signal });
  const all = LIMITS.chunkConnectionsPerNode + LIMITS.chunkRequestsWaitingMax;
  const waiting = Promise.allSettled(Array.from({ length: all }, read));
  // Nobody has been asked: it says nothing of the disk.
  const refused: unknown = await read().catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 'SlowDown' });
  expect(refused).not.toBeInstanceOf(DiskBusy);
  giveUp.abort();
  await waiting;
});

test('a disk that is too busy has answered', async () => {
  const { disk } = await serve({ instead: { put: () => Promise.reject(new AppError('SlowDown')) } });
  await expect(put(disk, newId(), randomBytes(10))).rejects.toBeInstanceOf(DiskBusy);
});

test('an unreachable node is ServiceUnavailable', async () => {
  const { disk, server } = await serve();
  await server.stop();
  await expect(put(disk, newId(), randomBytes(10))).rejects.toMatchObject({ code: 'ServiceUnavailable' });
});

test('a port in use is reported', async () => {
  const { server } = await serve();
  const { port } = new URL(`http://${server.address}`);
  await expect(serve({ server: { port: Number(port) } })).rejects.toThrow(
    `cannot listen on 127.0.0.1:${port}: another program listens there`,
  );
});

test('requests under way are answered when the server stops, and new connections are refused', async () => {
  const hasBegun = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  const slowly = async (): Promise<undefined> => {
    hasBegun.resolve();
    await mayEnd.promise;
  };
  const { disk, server } = await serve({ instead: { put: slowly } });
  const putting = put(disk, newId(), randomBytes(100_000));
  await hasBegun.promise;
  const stopping = server.stop();
  const [host = '', port] = server.address.split(':');
  const late = connect(Number(port), host);
  await expect(once(late, 'connect')).rejects.toThrow('ECONNREFUSED');
  mayEnd.resolve();
  await putting;
  await stopping;
});

test('changed certificates are used while nodes run, at both ends', async () => {
  const [before, after] = [await createPeerAuthority(), await createPeerAuthority()];
  const first = await before.issue();
  const followers: ((now: PeerCertificates) => void)[] = [];
  const renewed = { ...first, follow: (tell: (now: PeerCertificates) => void) => void followers.push(tell) };
  const { server, disk } = await serve({
    server: { credentials: renewed },
    client: { credentials: renewed },
  });
  await put(disk, newId(), randomBytes(10));
  const next = await after.issue();
  for (const tell of followers) tell(next);
  const reaches = async (credentials: PeerCredentials) => {
    const client = connectTo({ credentials });
    closers.push(() => client.close());
    const chunks = client.chunksOf(placed(server.address));
    return put(chunks, newId(), randomBytes(10)).then(
      () => true,
      () => false,
    );
  };
  expect([await reaches(await after.issue()), await reaches(first)]).toEqual([true, false]);
  // The client's own: to a server that knows the new authority alone.
  const other = await serve({
    server: { credentials: await after.issue() },
    client: { credentials: renewed },
  });
  expect(followers).toHaveLength(3);
  followers[2]?.(next);
  await put(other.disk, newId(), randomBytes(10));
});

test('over TLS chunks are written in parts, at both ends: a connection keeps memory for its longest write', async () => {
  const credentials = await (await createPeerAuthority()).issue();
  const { disk } = await serve({ server: { credentials }, client: { credentials } });
  const [id, bytes] = [newId(), randomBytes(4 * 1024 * 1024)];
  const written = watchTlsWrites();
  await put(disk, id, bytes);
  expect(await disk.get(id, { isProven: false, signal: never })).toMatchObject({ kind: 'found', bytes });
  written.stop();
  expect(Math.max(...written.sizes)).toBeLessThan(140 * 1024);
  expect(written.sizes.reduce((sum, size) => sum + size)).toBeGreaterThan(2 * bytes.length);
});

test('requests outside the protocol are refused', async () => {
  const authority = await createPeerAuthority();
  const credentials = await authority.issue();
  const { server } = await serve({ server: { credentials } });
  const { Agent, request } = await import('undici');
  const dispatcher = new Agent({
    connect: { ca: credentials.ca, cert: credentials.cert, key: credentials.key },
  });
  closers.push(() => dispatcher.close());
  const blob = 'a'.repeat(32);
  const send = async (method: 'PUT' | 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, more = {}) => {
    const { body, ...headers } = { body: undefined as string | undefined, ...more };
    const answer = await request(`https://${server.address}${path}`, {
      dispatcher,
      method,
      body: body ?? null,
      headers: { [HEADER.cluster]: TEST_CLUSTER, ...headers },
    });
    await answer.body.dump();
    return `${answer.statusCode} ${answer.headers[HEADER.error] ?? ''}`;
  };
  const disk = `/disks/${DISK}`;
  const chunk = `${disk}/chunks/${blob}.0`;
  const unknown = ['/', `${disk}/chunks/${blob}`, `${disk}/chunks/${blob}.4294967296`, `${disk}/usage`];
  for (const path of unknown) expect(await send('GET', path), path).toBe('400 malformed');
  expect(await send('PATCH', chunk)).toBe('400 malformed');
  expect(await send('POST', `${disk}/nothing`)).toBe('400 malformed');
  expect(await send('GET', chunk, { [HEADER.map]: '-1' })).toBe('400 malformed');
  expect(await send('PUT', chunk, { body: 'x', [HEADER.map]: '1' })).toBe('400 malformed');
  expect(await send('DELETE', chunk, { [HEADER.fence]: '1.2' })).toBe('400 malformed');
  const junk = 'not packed';
  const checksum = { [HEADER.checksum]: formatChecksum(crc32(junk)) };
  expect(await send('POST', `${disk}/have`, { body: junk, ...checksum })).toBe('400 malformed');
  expect(await send('GET', `/disks/${'e'.repeat(32)}/chunks/${blob}.0`)).toBe('421 no-disk');
  expect(await send('GET', chunk)).toBe('404 missing');
});
