// What chunks over loopback HTTP cost beside the store itself: PUT and GET of 1 MiB at several depths, to a storage node in
// a process of its own, with the store in RocksDB and with a disk that keeps nothing (the way alone); by the secret and by
// certificates. Run: npx node bench/chunk-http.ts [--folder PATH] [--mib N]
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { crc32 } from '../src/base/crypto/crc32.ts';
import { freeMemory } from '../src/base/free-memory.ts';
import { createChunkClient } from '../src/platform/chunk-http/client.ts';
import type { PeerCredentials } from '../src/platform/chunk-http/peer-proof.ts';
import { systemClock } from '../src/platform/system-clock.ts';
import type { ChunkId } from '../src/ports/chunks.ts';
import type { DiskChunks } from '../src/ports/disk-chunks.ts';
import { makeBlobId } from '../src/types/names.ts';
import { createPeerAuthority } from '../tests/support/coordination/peer-certificates.ts';
import type { ChunkNodeStart } from './chunk-node.ts';

const MiB = 1024 * 1024;
const { values } = parseArgs({
  options: { folder: { type: 'string' }, mib: { type: 'string', default: '1024' } },
});
const totalMiB = Number(values.mib);
const content = randomBytes(MiB);
const checksum = crc32(content);
const { signal } = new AbortController();
const clusterId = 'c'.repeat(32);
const diskId = 'd'.repeat(32);

async function measure(name: string, depth: number, act: (at: number) => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  let next = 0;
  const loop = async () => {
    for (let at = next++; at < totalMiB; at = next++) await act(at);
  };
  await Promise.all(Array.from({ length: depth }, loop));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const perGiB = (microseconds: number) => (microseconds / 1e6 / (totalMiB / 1024)).toFixed(2);
  console.log(
    `  ${name} depth ${String(depth).padStart(2)}  ${(totalMiB / seconds).toFixed(0).padStart(5)} MiB/s  ` +
      `client: user ${perGiB(user)} s/GiB, system ${perGiB(system)} s/GiB`,
  );
}

async function measureDisk(disk: DiskChunks): Promise<void> {
  for (const depth of [1, 8]) {
    const ids: ChunkId[] = [];
    await measure('PUT', depth, async () => {
      const id = {
        blobId: makeBlobId({ timeMs: Date.now(), homeShard: 0, random: randomBytes(8) }),
        index: 0,
      };
      await disk.put(id, content, { checksum, mapVersion: 1, signal });
      ids.push(id);
    });
    await measure('GET', depth, async (at) => {
      const id = ids[at % ids.length];
      const read = id && (await disk.get(id, { isProven: true, signal }));
      if (read?.kind !== 'found') throw new Error('a chunk is missing');
      // As who has opened it does.
      freeMemory(read.bytes);
    });
  }
}

async function measureNode(
  title: string,
  start: Omit<ChunkNodeStart, 'clusterId' | 'diskId'>,
): Promise<void> {
  const node = fork(new URL('./chunk-node.ts', import.meta.url), { serialization: 'advanced' });
  try {
    node.send({ clusterId, diskId, ...start } satisfies ChunkNodeStart);
    const [address] = (await once(node, 'message')) as [string];
    const { credentials } = start;
    const client = createChunkClient({ clusterId, credentials, clock: systemClock });
    const disk = { id: diskId, nodeId: '', zone: '', capacityBytes: 1, address };
    console.log(title);
    await measureDisk(client.chunksOf(disk));
    await client.close();
    const ended = once(node, 'message');
    node.send('end');
    console.log(`  node: ${((await ended) as [string])[0]}`);
  } finally {
    node.kill();
  }
}

const folder = await mkdtemp(join(values.folder ?? tmpdir(), 'holdfast-bench-chunk-http-'));
try {
  const secret: PeerCredentials = { kind: 'secret', secret: randomBytes(32).toString('hex') };
  const certificates = await (await createPeerAuthority()).issue();
  await measureNode('the way alone, by the secret', { credentials: secret });
  await measureNode('the way alone, by certificates', { credentials: certificates });
  await measureNode('to RocksDB, synced, by the secret', {
    credentials: secret,
    folder: join(folder, 'chunks'),
  });
} finally {
  await rm(folder, { recursive: true });
}
