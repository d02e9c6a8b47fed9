// Nodes that listen on an IPv6 address, whose text has brackets: over both ways in which nodes speak, by secret and by
// certificates.
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import type { ChunkPort } from '../../src/ports/chunks.ts';
import { createPeerAuthority } from '../support/coordination/peer-certificates.ts';
import {
  type AddressBook,
  makeCertificates,
  nodeId,
  openCredentials,
  secretSecurity,
  startRpcNode,
} from '../support/coordination/rpc-nodes.ts';
import { connectTo, memoryNode, serveNode, TEST_SECRET } from '../support/disks/chunk-nodes.ts';
import { chunkId } from '../support/disks/replicated-world.ts';

const HOST = '::1';
const DISK = 'd'.repeat(32);

test.each(['secret', 'tls'] as const)('calls by %s', async (mode) => {
  const certificates = mode === 'tls' ? await makeCertificates('node', [HOST]) : undefined;
  const credentials = await openCredentials(certificates?.security ?? secretSecurity);
  const addresses: AddressBook = new Map();
  const handler = {
    ticket: () => ({ processId: 'p', monotonicMs: 1, wallMs: 1 }),
    handle: async () => ({ kind: 'done', value: 'heard', timeMs: 1 }) as const,
  };
  const [callee, caller] = [
    await startRpcNode({ nodeId: nodeId(1), credentials, addresses, handler, host: HOST }),
    await startRpcNode({ nodeId: nodeId(2), credentials, addresses, host: HOST }),
  ];
  expect(addresses.get(nodeId(1))).toMatch(/^\[::1\]:\d+$/);
  const call = { kind: 'query', envelope: { shard: 0 }, name: 'tick', body: null, budgetMs: 1000 } as const;
  const reply = await caller.calls.call(nodeId(1), call, AbortSignal.timeout(5000));
  expect(reply).toMatchObject({ kind: 'done', value: 'heard' });
  await Promise.all([caller.close(), callee.close()]);
  credentials.close();
  await certificates?.remove();
});

test.each(['secret', 'tls'] as const)('chunks by %s', async (mode) => {
  const credentials = mode === 'tls' ? await (await createPeerAuthority()).issue() : TEST_SECRET;
  const bytes = Buffer.from('a chunk');
  const chunks = {
    get: async () => ({ kind: 'found', bytes, checksum: crc32(bytes) }),
  } as unknown as ChunkPort;
  const server = await serveNode(memoryNode([[DISK, chunks]]), { credentials, host: HOST });
  expect(server.address).toMatch(/^\[::1\]:\d+$/);
  const client = connectTo({ credentials });
  const disk = { id: DISK, address: server.address, nodeId: 'n', zone: 'z', capacityBytes: 1 };
  const { signal } = new AbortController();
  const got = await client.chunksOf(disk).get(chunkId(1), { isProven: false, signal });
  expect(got).toMatchObject({ kind: 'found' });
  await client.close();
  await server.stop();
});
