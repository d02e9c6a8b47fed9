// Storage nodes as the cluster sees them, with their disks given: served over loopback, or in this process.
import { crc32 } from 'node:zlib';
import { must } from '../../../src/base/assert.ts';
import { ownDisk } from '../../../src/chunks/copies/own-disk.ts';
import { type ChunkClient, createChunkClient } from '../../../src/platform/chunk-http/client.ts';
import type { TakeMemory } from '../../../src/platform/chunk-http/exchange.ts';
import type { PeerCredentials } from '../../../src/platform/chunk-http/peer-proof.ts';
import { createChunkServer } from '../../../src/platform/chunk-http/server.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';
import type { RunningChunkServer, ServedDisk, ServedDisks } from '../../../src/ports/chunk-server.ts';
import type { ChunkPort } from '../../../src/ports/chunks.ts';
import type { ClockPort } from '../../../src/ports/clock.ts';
import type { DiskChunks, DiskDirectory } from '../../../src/ports/disk-chunks.ts';
import type { DiskOrders } from '../../../src/ports/disk-orders.ts';
import type { DiskId, PlacedDisk } from '../../../src/ports/placement.ts';
import type { Logger } from '../../../src/ports/telemetry.ts';
import { withoutOrders } from './no-orders.ts';

export const TEST_CLUSTER = 'c'.repeat(32);
export const TEST_SECRET: PeerCredentials = { kind: 'secret', secret: 'a secret of a made-up cluster' };
export const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export interface MemoryNode extends ServedDisks {
  readonly disks: Map<DiskId, ServedDisk>;
}

/** A node's disks, its placement version in memory. */
export function memoryNode(
  disks: Iterable<readonly [DiskId, ChunkPort | ServedDisk]>,
  firstVersion = 1,
): MemoryNode {
  const held = new Map(
    Array.from(disks, ([id, chunks]) => [id, 'inspect' in chunks ? chunks : withoutOrders(chunks)]),
  );
  let version = firstVersion;
  return {
    disks: held,
    chunksOf: (id) => held.get(id),
    mapVersion: () => version,
    async adopt(announced) {
      version = Math.max(version, announced);
    },
  };
}

export function serveNode(
  node: ServedDisks,
  options: {
    credentials?: PeerCredentials;
    log?: Logger;
    clusterId?: string;
    host?: string;
    port?: number;
    clock?: ClockPort;
    takeMemory?: TakeMemory;
  } = {},
): Promise<RunningChunkServer> {
  const { credentials = TEST_SECRET, log = QUIET, clusterId = TEST_CLUSTER, clock = systemClock } = options;
  const listen = { host: options.host ?? '127.0.0.1', port: options.port ?? 0 };
  const { takeMemory } = options;
  const memory = takeMemory && { takeMemory };
  return createChunkServer({ listen, clusterId, credentials, log, clock, ...memory }).serve(node);
}

export function connectTo(
  options: { credentials?: PeerCredentials; clusterId?: string; onMapVersion?(version: number): void } = {},
): ChunkClient {
  const { credentials = TEST_SECRET, clusterId = TEST_CLUSTER, onMapVersion } = options;
  return createChunkClient({
    credentials,
    clusterId,
    clock: systemClock,
    ...(onMapVersion && { onMapVersion }),
  });
}

/** As a chunk port of its own, for the contract of those. */
export function asChunkPort(disk: DiskChunks, mapVersion = 1): ChunkPort {
  const { signal } = new AbortController();
  return {
    async put(id, bytes, checksum = crc32(bytes)): Promise<undefined> {
      await disk.put(id, bytes, { checksum, mapVersion, signal });
    },
    get: (id, how = { isProven: false }) => disk.get(id, { ...how, signal }),
    have: (ids) => disk.have(ids),
    drop: (ids, fence) => disk.drop(ids, fence),
    list: (options) => disk.list(options),
    usage: () => disk.usage(),
    recount: () => disk.recount(),
  };
}

/** How the disks of several nodes are reached. */
export interface ReachedNodes {
  directory: DiskDirectory;
  /** Each node in a zone of its own, all disks alike. */
  disks: PlacedDisk[];
  close(): Promise<void>;
}

export function ownDirectory(nodes: readonly MemoryNode[]): ReachedNodes {
  const reached = new Map<DiskId, DiskChunks & DiskOrders>();
  for (const node of nodes) {
    for (const [id, chunks] of node.disks) reached.set(id, ownDisk(chunks, node));
  }
  return {
    directory: { chunksOf: ({ id }) => must(reached.get(id), 'a disk of a node') },
    disks: nodes.flatMap((node, at) => placeNode(node, at, 'own')),
    close: async () => {},
  };
}

export async function servedDirectory(nodes: readonly MemoryNode[], log = QUIET): Promise<ReachedNodes> {
  const servers = await Promise.all(nodes.map((node) => serveNode(node, { log })));
  const client = connectTo();
  return {
    directory: client,
    disks: nodes.flatMap((node, at) => placeNode(node, at, must(servers[at], 'a server').address)),
    async close() {
      await client.close();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

function placeNode(node: MemoryNode, at: number, address: string): PlacedDisk[] {
  return [...node.disks.keys()].map((id) => ({
    id,
    address,
    nodeId: `node-${at}`,
    zone: `zone-${at}`,
    capacityBytes: 1e12,
  }));
}
