// A storage node of the simulated world: the product's own, with some simulated disks, behind the simulated network.

import { equalBytes } from '../../src/base/bytes/bytes.ts';
import { decodeDiskIdentity } from '../../src/chunks/disk/disk-identity.ts';
import {
  CHUNK_COLUMNS,
  CHUNK_PLACES,
  DISK_KEY,
  dataKey,
  decodeIndexRow,
  indexKey,
} from '../../src/chunks/disk/keyspace.ts';
import type { OpenedStore } from '../../src/chunks/disk/node-disks.ts';
import { createStorageNode, type StorageNode } from '../../src/chunks/disk/storage-node.ts';
import { knownOwners } from '../../src/chunks/placement/placement.ts';
import type { PieceMemory } from '../../src/platform/extents/aligned-memory.ts';
import { decodePlace, type RecordPlace, roundUp } from '../../src/platform/extents/extent-record.ts';
import { Extents } from '../../src/platform/extents/extents.ts';
import { livePlaces, SeparatedKv } from '../../src/platform/extents/separated-kv.ts';
import { createWorkerRunner } from '../../src/platform/worker-runner.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { DiskReservePort } from '../../src/ports/disk-reserve.ts';
import type { DiskId, PlacedDisk } from '../../src/ports/placement.ts';
import type { ChunkNetwork } from './chunk-network.ts';
import type { SimulatedProcess } from './clock.ts';
import { SimulatedDisk } from './disk.ts';
import { hurried } from './hurried.ts';
import type { PlacementBoard } from './placement-board.ts';
import { type Ground, loggerOf, Site } from './sites.ts';

const CAPACITY_BYTES = 1e12;
const CLUSTER_ID = 'simulated';
const REPLACED_MIN_MS = 1000;
const REPLACED_MAX_MS = 6000;
/** So fast that damage is found in a seed. */
const SCRUB = { bytesPerSecond: 1e6, periodMs: 12_000 };
/** So soon that files of extents are copied forward, and used again, in a seed. */
const RECLAIM = { afterBytes: 64 * 1024, delayMs: 4000 };
/** Of some ten records. */
const EXTENT_BYTES = 80 * 1024;
/** Chunks from so many bytes on lie in extents: most, or none. */
const SEPARATE_FROM_BYTES = [64, 64, 64, Number.POSITIVE_INFINITY];
const MEMORY: PieceMemory = {
  take: async (sizeBytes) => ({ bytes: Buffer.alloc(roundUp(sizeBytes)), release() {} }),
};
const SILENT = { count() {}, observe() {}, gauge() {}, gaugeAll() {} };

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
  readonly disks: readonly SimulatedDisk[];
  readonly zone: string;
  node: StorageNode | undefined;
  /** Disks that work no more until the node is started again. */
  failedCount = 0;
  readonly #chunks: ChunkNetwork;
  readonly #board: PlacementBoard;

  constructor(
    name: string,
    options: { ground: Ground; zone: string; diskCount: number; chunks: ChunkNetwork; board: PlacementBoard },
  ) {
    super(name, options.ground);
    this.disks = Array.from(
      { length: options.diskCount },
      (_, at) => new SimulatedDisk(CHUNK_COLUMNS, this.chance.fork(`disk ${at}`)),
    );
    this.zone = options.zone;
    this.#chunks = options.chunks;
    this.#board = options.board;
  }

  /** Who it is to the cluster; undefined before it was ever opened. */
  static idOf(disk: SimulatedDisk): DiskId | undefined {
    const row = disk.column('index').get(DISK_KEY)?.value;
    return row && decodeDiskIdentity(row).diskId;
  }

  /** When a disk received a chunk, by the clock that it had then; undefined: it has none. */
  static receivedAtMsOf(disk: SimulatedDisk, id: ChunkId): number | undefined {
    const row = disk.column('index').get(indexKey(id))?.value;
    return row && decodeIndexRow(row).receivedAtMs;
  }

  /** Where the bytes are of what is under a key of column `data`; undefined: in the column, or nowhere. */
  static placeOf(disk: SimulatedDisk, key: Uint8Array): RecordPlace | undefined {
    const row = disk.column(CHUNK_PLACES.placeColumn).get(placeKey(key))?.value;
    return row && decodePlace(row);
  }

  /** Rots a chunk where no checksum of the store's sees it: another bit than was written. */
  rot(disk: SimulatedDisk, id: ChunkId): void {
    const key = dataKey(id);
    const place = StorageSite.placeOf(disk, key);
    if (place !== undefined) {
      disk.extents.flipBit(place, 'body');
      return;
    }
    const value = disk.column('data').get(key)?.value;
    if (value === undefined) return;
    const rotten = Uint8Array.from(value);
    const at = this.chance.int(0, rotten.length - 1);
    rotten[at] = (rotten[at] ?? 0) ^ (1 << this.chance.int(0, 7));
    disk.apply(disk.append([{ column: 'data', key, value: rotten }]), true);
  }

  /** The block of a chunk, or of what is known of it, cannot be read any more. */
  flipBit(disk: SimulatedDisk, id: ChunkId): void {
    const what = this.chance.pick(['bytes', 'place', 'index'] as const);
    const place = StorageSite.placeOf(disk, dataKey(id));
    if (what === 'bytes' && place !== undefined) {
      disk.extents.flipBit(place, 'head');
      return;
    }
    const isOfData = what !== 'index' && place === undefined;
    const wanted = isOfData ? dataKey(id) : what === 'index' ? indexKey(id) : placeKey(dataKey(id));
    disk.corrupt(isOfData ? 'data' : 'index', (key) => equalBytes(key, wanted));
  }

  async #open(disk: SimulatedDisk, process: SimulatedProcess): Promise<OpenedStore> {
    const rows = disk.open(process);
    const extents = await Extents.open({
      io: disk.extents.open(process),
      memory: MEMORY,
      fileBytes: EXTENT_BYTES,
      live: livePlaces(rows, CHUNK_PLACES),
    });
    const fromBytes = this.chance.pick(SEPARATE_FROM_BYTES);
    const options = { fromBytes, clock: process.clock };
    const kv = new SeparatedKv(rows, { extents, columns: CHUNK_PLACES, options });
    kv.failed.then(() => {
      this.failedCount++;
      this.ground.scheduler.after(this.chance.between(REPLACED_MIN_MS, REPLACED_MAX_MS), {
        name: `${this.name}: somebody looks after its disk`,
        run: () => {
          if (this.process === process) this.crash();
        },
      });
    });
    return { kv, reserve: RESERVE, witness: disk.openWitness(process) };
  }

  protected override ended(): void {
    this.node = undefined;
    this.failedCount = 0;
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
      address: this.name,
      process,
      onMapVersion: (version) => known.noteVersion(version),
    });
    const node = createStorageNode({
      owners: knownOwners(known),
      fetch: (from, id, signal) => directory.chunksOf(placed(from)).get(id, { isProven: false, signal }),
      telemetry: SILENT,
      clusterId: CLUSTER_ID,
      nodeId: this.name,
      zone: this.zone,
      clock: process.clock,
      random: process.random,
      log: loggerOf(process, scheduler),
      disks: this.disks.map((disk, at) => ({
        name: `${this.name}/${at}`,
        open: async () => this.#open(disk, process),
      })),
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
      reclaim: RECLAIM,
      scrub: SCRUB,
    });
    node.failed.then(end);
    node.start().then(() => {
      if (!process.isAlive) return;
      this.node = node;
      const { clock } = process;
      const log = loggerOf(process, scheduler);
      createWorkerRunner({ workers: node.workers.map(hurried), clock, log, telemetry: SILENT }).start();
    }, end);
  }
}

function placeKey(key: Uint8Array): Uint8Array {
  return Buffer.concat([CHUNK_PLACES.placePrefix, key]);
}
