// A storage node of the simulated world: the product's own, with one simulated disk, behind the simulated network.

import { knownOwners } from '../../src/cluster/known-owners.ts';
import { equalBytes } from '../../src/lib/bytes.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { DiskReservePort } from '../../src/ports/disk-reserve.ts';
import type { DiskId, PlacedDisk } from '../../src/ports/placement.ts';
import { CHUNK_COLUMNS, dataKey, indexKey } from '../../src/storage/keyspace.ts';
import { createStorageNode, type StorageNode } from '../../src/storage/storage-node.ts';
import type { ChunkNetwork } from './chunk-network.ts';
import type { SimulatedProcess } from './clock.ts';
import { SimulatedDisk } from './disk.ts';
import type { PlacementBoard } from './placement-board.ts';
import { type Ground, loggerOf, Site } from './sites.ts';

const CAPACITY_BYTES = 1e12;
const CLUSTER_ID = 'simulated';

/** There is always room. */
const RESERVE: DiskReservePort = {
  hold: async () => ({ release() {} }),
  measure: async () => ({ freeBytes: CAPACITY_BYTES, totalBytes: CAPACITY_BYTES }),
};

/** A disk as it is reached; what else a map says of it is nothing to that. */
function placed({ diskId, address }: { diskId: DiskId; address: string }): PlacedDisk {
  return { id: diskId, address, nodeId: '', zone: '', capacityBytes: 0 };
}

export class StorageSite extends Site {
  readonly disk: SimulatedDisk;
  node: StorageNode | undefined;
  readonly #zone: string;
  readonly #chunks: ChunkNetwork;
  readonly #board: PlacementBoard;

  constructor(
    name: string,
    options: { ground: Ground; zone: string; chunks: ChunkNetwork; board: PlacementBoard },
  ) {
    super(name, options.ground);
    this.disk = new SimulatedDisk(CHUNK_COLUMNS, this.chance.fork('disk'));
    this.#zone = options.zone;
    this.#chunks = options.chunks;
    this.#board = options.board;
  }

  /** Whether its disk has the chunk, and synced. */
  has(id: ChunkId): boolean {
    return this.disk.column('data').get(dataKey(id)) !== undefined;
  }

  /** Rots a chunk where no checksum of the store's sees it: another bit than was written. */
  rot(id: ChunkId): void {
    const key = dataKey(id);
    const value = this.disk.column('data').get(key)?.value;
    if (value === undefined) return;
    const rotten = Uint8Array.from(value);
    const at = this.chance.int(0, rotten.length - 1);
    rotten[at] = (rotten[at] ?? 0) ^ (1 << this.chance.int(0, 7));
    this.disk.apply(this.disk.append([{ column: 'data', key, value: rotten }]), true);
  }

  /** The block of a chunk, or of what is known of it, cannot be read any more. */
  flipBit(id: ChunkId): void {
    const column = this.chance.pick(CHUNK_COLUMNS);
    const wanted = column === 'data' ? dataKey(id) : indexKey(id);
    this.disk.corrupt(column, (key) => equalBytes(key, wanted));
  }

  protected override ended(): void {
    this.node = undefined;
  }

  protected override run(process: SimulatedProcess): void {
    const { scheduler } = this.ground;
    const end = (error: Error) => {
      scheduler.trace(`${process.name} ends: ${error.message}`);
      this.ground.onSelfEnded();
      process.kill();
    };
    const known = this.#board.known(process);
    const directory = this.#chunks.directory({
      ...{ address: this.name, process },
      onMapVersion: (version) => known.hear(version),
    });
    const node = createStorageNode({
      owners: knownOwners(known),
      fetch: (from, id, signal) => directory.chunksOf(placed(from)).get(id, { isProven: false, signal }),
      telemetry: { count() {}, observe() {}, gauge() {} },
      ...{ clusterId: CLUSTER_ID, nodeId: this.name, zone: this.#zone },
      ...{ clock: process.clock, random: process.random, log: loggerOf(process, scheduler) },
      disks: [{ name: this.name, open: async () => ({ kv: this.disk.open(process), reserve: RESERVE }) }],
      server: {
        serve: async (disks) => {
          this.#chunks.serve(process, disks);
          return { address: this.name, stop: async () => undefined };
        },
      },
      members: {
        announce: (member) => this.#board.announce(process, member),
        leave: async () => undefined,
      },
      reclaim: { afterBytes: Number.POSITIVE_INFINITY, delayMs: 0 },
      scrub: { bytesPerSecond: 1, periodMs: 1e12 },
    });
    node.failed.then(end);
    node.start().then(() => {
      if (process.isAlive) this.node = node;
    }, end);
  }
}
