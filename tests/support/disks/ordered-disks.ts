// Disks of storage nodes that take orders of home shards, each a node of its own with a map that the test gives: in this
// process or behind HTTP.
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { must } from '../../../src/base/assert.ts';
import { ownDisk } from '../../../src/chunks/copies/own-disk.ts';
import { createDiskReserve } from '../../../src/chunks/disk/disk-reserve.ts';
import { dataKey } from '../../../src/chunks/disk/keyspace.ts';
import { openNodeDisks } from '../../../src/chunks/disk/node-disks.ts';
import type { PeerCredentials } from '../../../src/platform/chunk-http/peer-proof.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';
import type { ChunkId } from '../../../src/ports/chunks.ts';
import type { DiskChunks } from '../../../src/ports/disk-chunks.ts';
import type { DiskOrders, FetchChunk, KnownOwners } from '../../../src/ports/disk-orders.ts';
import type { KvPort } from '../../../src/ports/kv.ts';
import { chunkName, makeBlobId } from '../../../src/types/names.ts';
import { createSeededRandom } from '../run/simulated.ts';
import { connectTo, serveNode, TEST_CLUSTER } from './chunk-nodes.ts';

export interface OrderedDisk {
  id: string;
  address: string;
  disk: DiskChunks & DiskOrders;
  kv: KvPort;
  /** Of its file system, as it is measured from now on. */
  space: { freeBytes: number; totalBytes: number };
  /** What the node knows of owners. */
  map: { version: number; owned: Set<string>; announced: number };
  /** What its log said, and how many copies it found damaged. */
  events: string[];
  damagedCount(): number;
  /** Every chunk that it fetched. */
  fetched: ChunkId[];
  /** The same store, after a restart of the node. */
  reopen(): Promise<OrderedDisk>;
}

export interface OrderedDisksOptions {
  openKv(): Promise<KvPort>;
  /** Absent: in this process. */
  credentials?: PeerCredentials;
}

export const nameOf = chunkName;

const DAMAGED = 'holdfast_disk_damaged_chunks_total';

export class OrderedDisks {
  readonly #options: OrderedDisksOptions;
  readonly #disks = new Map<string, OrderedDisk>();
  readonly #closers: (() => Promise<void>)[] = [];
  #seed = 1;

  constructor(options: OrderedDisksOptions) {
    this.#options = options;
  }

  async open(kv?: KvPort): Promise<OrderedDisk> {
    return this.#open(kv ?? (await this.#options.openKv()), this.#seed++);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  async #open(kv: KvPort, seed: number): Promise<OrderedDisk> {
    const space = { freeBytes: 1e12, totalBytes: 1e12 };
    const map = { version: 1, owned: new Set<string>(), announced: 0 };
    const owners: KnownOwners = {
      version: () => map.version,
      owns: (_disk, id) => map.owned.has(nameOf(id)),
      noteVersion(version) {
        map.announced = version;
      },
    };
    const fetched: ChunkId[] = [];
    const fetch: FetchChunk = (from, id, signal) => {
      fetched.push(id);
      const other = must(this.#disks.get(from.diskId), 'a disk of this world');
      return other.disk.get(id, { isProven: false, signal });
    };
    const events: string[] = [];
    const note = (_fields: object, event: string) => void events.push(event);
    let damagedCount = 0;
    const disks = await openNodeDisks({
      clusterId: TEST_CLUSTER,
      clock: systemClock,
      random: createSeededRandom(seed),
      owners,
      fetch,
      log: { debug: note, info: note, warn: note, error: note },
      telemetry: {
        observe() {},
        gauge() {},
        gaugeAll() {},
        count(name) {
          if (name === DAMAGED) damagedCount++;
        },
      },
      onChange() {},
      onFailed() {},
      disks: [
        {
          name: `disk-${seed}`,
          open: async () => ({
            kv: { ...bound(kv), close: async () => {} },
            reserve: createDiskReserve({
              readSpace: async () => space,
              clock: systemClock,
              reserveBytes: 1e6,
            }),
          }),
        },
      ],
    });
    this.#closers.push(() => disks.close());
    const id = must(disks.served()[0], 'it is open').identity.diskId;
    const served = must(disks.chunksOf(id), 'it is served');
    const reached = await this.#reach(id, served, disks);
    const disk: OrderedDisk = {
      id,
      kv,
      space,
      map,
      events,
      fetched,
      ...reached,
      damagedCount: () => damagedCount,
      reopen: () => this.#open(kv, seed),
    };
    this.#disks.set(id, disk);
    return disk;
  }

  async #reach(id: string, served: Parameters<typeof ownDisk>[0], disks: Parameters<typeof serveNode>[0]) {
    const { credentials } = this.#options;
    if (credentials === undefined) return { address: 'here:1', disk: ownDisk(served, disks) };
    const server = await serveNode(disks, { credentials });
    const client = connectTo({ credentials });
    this.#closers.push(() => server.stop());
    this.#closers.push(() => client.close());
    const { address } = server;
    return {
      address,
      disk: client.chunksOf({ id, address, nodeId: 'n', zone: 'z', capacityBytes: 1 }),
    };
  }
}

/** A store whose methods may be replaced. */
function bound(kv: KvPort): KvPort {
  return {
    getMany: (...args) => kv.getMany(...args),
    range: (...args) => kv.range(...args),
    cursor: (...args) => kv.cursor(...args),
    commit: (...args) => kv.commit(...args),
    clear: (...args) => kv.clear(...args),
    failed: kv.failed,
    usage: () => kv.usage(),
    turnOver: (...args) => kv.turnOver(...args),
    close: () => kv.close(),
  };
}

export function newId(homeShard = 7, index = 0): ChunkId {
  return { blobId: makeBlobId({ timeMs: 1000, homeShard, random: randomBytes(8) }), index };
}

export interface PutChunk {
  id: ChunkId;
  sizeBytes: number;
  checksum: number;
}

export async function putChunk(
  { disk }: Pick<OrderedDisk, 'disk'>,
  options: { id?: ChunkId; sizeBytes?: number; bytes?: Uint8Array; mapVersion?: number } = {},
): Promise<PutChunk & { bytes: Uint8Array }> {
  const { id = newId(), sizeBytes = 20_000, bytes = randomBytes(sizeBytes), mapVersion = 1 } = options;
  const checksum = crc32(bytes);
  await disk.put(id, bytes, { checksum, mapVersion, signal: new AbortController().signal });
  return { id, checksum, sizeBytes: bytes.length, bytes };
}

/** Other bytes than were written, as a checksum of the store's own does not see. */
export function rot({ kv }: Pick<OrderedDisk, 'kv'>, { id, sizeBytes }: PutChunk): Promise<void> {
  return kv.commit([{ column: 'data', key: dataKey(id), value: randomBytes(sizeBytes) }]);
}
