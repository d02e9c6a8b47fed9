// The storage node of chunk-http.ts: one disk behind the chunk server, in a process of its own.

import { openChunkStore } from '../src/chunks/disk/chunk-store.ts';
import { createDiskReserve } from '../src/chunks/disk/disk-reserve.ts';
import type { PeerCredentials } from '../src/platform/chunk-http/peer-proof.ts';
import { createChunkServer } from '../src/platform/chunk-http/server.ts';
import { readDiskSpace } from '../src/platform/disk/disk-space.ts';
import { openRocksdbKv } from '../src/platform/rocksdb/rocksdb-kv.ts';
import { systemClock } from '../src/platform/system-clock.ts';
import type { ChunkPort } from '../src/ports/chunks.ts';
import { withoutOrders } from '../tests/support/disks/no-orders.ts';

export interface ChunkNodeStart {
  clusterId: string;
  diskId: string;
  credentials: PeerCredentials;
  /** Absent: chunks go nowhere, and reads give the same bytes again and again. */
  folder?: string;
}

const MiB = 1024 * 1024;
const KEPT_BYTES = 32 * MiB;
const log = { debug() {}, info() {}, warn: console.warn, error: console.error };
// Bodies are of 1 MiB here, without the tags that sealed chunks have.
const kept: ArrayBuffer[] = [];
const give = (buffer: ArrayBuffer) => {
  if (buffer.byteLength === MiB && kept.length * MiB < KEPT_BYTES) kept.push(buffer);
};
const takeMemory = (sizeBytes: number) => ({
  bytes: new Uint8Array(
    (sizeBytes === MiB ? kept.pop() : undefined) ?? Buffer.allocUnsafeSlow(sizeBytes).buffer,
  ),
});

function keepNothing(): ChunkPort {
  const unused = () => Promise.reject(new Error('not of this benchmark'));
  // A part of a larger buffer: what is sent is given back, and this is sent again.
  const bytes = Buffer.allocUnsafeSlow(MiB + 1).subarray(1);
  return {
    async put(_id, given): Promise<undefined> {
      give(given.buffer as ArrayBuffer);
    },
    get: async () => ({ kind: 'found', bytes, checksum: 0 }),
    have: unused,
    drop: unused,
    list: unused,
    usage: unused,
    recount: unused,
  };
}

async function openStore(folder: string): Promise<ChunkPort> {
  const kv = await openRocksdbKv({
    folder,
    columns: { data: { reads: 'async', content: 'ciphertext' }, index: { reads: 'sync', content: 'rows' } },
    onReleased: give,
  });
  const reserve = createDiskReserve({ readSpace: () => readDiskSpace(folder), clock: systemClock });
  return openChunkStore({ kv, reserve, clock: systemClock, log });
}

async function run({ clusterId, diskId, credentials, folder }: ChunkNodeStart): Promise<void> {
  const chunks = folder === undefined ? keepNothing() : await openStore(folder);
  const server = await createChunkServer({
    listen: { host: '127.0.0.1', port: 0 },
    clusterId,
    credentials,
    clock: systemClock,
    log,
    takeMemory,
  }).serve({
    chunksOf: (id) => (id === diskId ? withoutOrders(chunks) : undefined),
    mapVersion: () => 1,
    adopt: async () => {},
  });
  const cpu = process.cpuUsage();
  process.send?.(server.address);
  process.once('message', () => {
    const { user, system } = process.cpuUsage(cpu);
    process.send?.(`user ${(user / 1e6).toFixed(1)} s, system ${(system / 1e6).toFixed(1)} s in all`);
  });
}

process.once('message', (start) => void run(start as ChunkNodeStart));
