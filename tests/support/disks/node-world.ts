// A storage node over disks in memory, behind its real server: what it logs and tells the members' list can be looked at.
import { randomBytes } from 'node:crypto';
import { createDiskReserve } from '../../../src/chunks/disk/disk-reserve.ts';
import { CHUNK_COLUMNS } from '../../../src/chunks/disk/keyspace.ts';
import type { DiskToOpen } from '../../../src/chunks/disk/node-disks.ts';
import { createStorageNode, type StorageNode } from '../../../src/chunks/disk/storage-node.ts';
import { createChunkServer } from '../../../src/platform/chunk-http/server.ts';
import { createMemoryKv, type MemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';
import type { ChunkServerPort } from '../../../src/ports/chunk-server.ts';
import type { StorageMember, StorageMembersPort } from '../../../src/ports/members.ts';
import type { TelemetryPort } from '../../../src/ports/telemetry.ts';
import { makeBlobId } from '../../../src/types/names.ts';
import { createManualClock, createSeededRandom } from '../run/simulated.ts';
import { asChunkPort, connectTo, TEST_CLUSTER, TEST_SECRET } from './chunk-nodes.ts';
import { settleAll } from './replicated-world.ts';

const closers: (() => Promise<void>)[] = [];

/** Behind each test: ends the nodes that it has made. */
export async function closeNodes(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

const random = createSeededRandom(5);
export const reserve = createDiskReserve({
  readSpace: async () => ({ freeBytes: 1e12, totalBytes: 2e12 }),
  clock: systemClock,
});

/** A folder that outlives the stores that are opened over it. */
export interface Folder extends DiskToOpen {
  kv: MemoryKv;
  closedCount: number;
}

export function folder(name: string): Folder {
  const kv = createMemoryKv(CHUNK_COLUMNS);
  const made: Folder = {
    name,
    kv,
    closedCount: 0,
    async open() {
      const close = async () => void made.closedCount++;
      return { kv: { ...kv, close }, reserve };
    },
  };
  return made;
}

export interface World {
  node: StorageNode;
  events: string[];
  members: (StorageMember | 'left')[];
  clock: ReturnType<typeof createManualClock>;
}

export function openNode(
  disks: readonly DiskToOpen[],
  options: {
    clusterId?: string;
    announce?: StorageMembersPort['announce'];
    server?: ChunkServerPort;
    telemetry?: TelemetryPort;
    isRemoved?(diskId: string): boolean;
  } = {},
): World {
  const { clusterId = TEST_CLUSTER } = options;
  const events: string[] = [];
  const members: World['members'] = [];
  const note = (_fields: object, event: string) => void events.push(event);
  const log = { debug: note, info: note, warn: note, error: note };
  const clock = createManualClock(1_700_000_000_000);
  const listen = { host: '127.0.0.1', port: 0 };
  const node = createStorageNode({
    clusterId,
    disks,
    random,
    log,
    clock,
    nodeId: 'n'.repeat(32),
    zone: 'cellar',
    server:
      options.server ??
      createChunkServer({ listen, clusterId, credentials: TEST_SECRET, log, clock: systemClock }),
    members: {
      announce: options.announce ?? (async (member) => void members.push(member)),
      leave: async () => void members.push('left'),
    },
    reclaim: { afterBytes: 1e9, delayMs: 1e6 },
    scrub: { bytesPerSecond: 1e6, periodMs: 1e9 },
    owners: { version: () => 0, owns: () => false, noteVersion() {} },
    fetch: async () => ({ kind: 'missing' }),
    ...(options.isRemoved && { isRemoved: options.isRemoved }),
    telemetry: options.telemetry ?? { count() {}, observe() {}, gauge() {}, gaugeAll() {} },
  });
  closers.push(() => node.stop());
  return { node, events, members, clock };
}

export function chunksOf(world: World, at = 0, mapVersion = 1) {
  const client = connectTo();
  closers.push(() => client.close());
  const member = world.members.findLast((one) => one !== 'left');
  const { id } = member?.disks[at] ?? { id: '' };
  return asChunkPort(
    client.chunksOf({ id, nodeId: 'n', zone: 'z', capacityBytes: 1, address: world.node.address }),
    mapVersion,
  );
}

/** How many it has told of, each time. */
export const announcedDisks = ({ members }: World) =>
  members.flatMap((member) => (member === 'left' ? [] : [member.disks.length]));

export const newId = () => ({
  blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }),
  index: 0,
});

export async function started(...args: Parameters<typeof openNode>): Promise<World> {
  const world = openNode(...args);
  await world.node.start();
  await settleAll();
  return world;
}
