// Home shards with their background work over disks that obey (order-disks.ts): for repair, audit, damage and the sweep.
// Disks have names of one letter; all partitions have the same owners.

import { createKnownPlacement, type KnownPlacement } from '../../../src/chunks/placement/known-placement.ts';
import { createHomeDisks } from '../../../src/chunks/repair/home-disks.ts';
import { createBlobAudit } from '../../../src/metadata/blobs/audit-blobs.ts';
import { createCorruptionCollector } from '../../../src/metadata/blobs/collect-corruption.ts';
import {
  createDamageNamer,
  DamageNames,
  listLostBlobs,
} from '../../../src/metadata/blobs/name-damage-worker.ts';
import { createRepairWorker } from '../../../src/metadata/blobs/repair-chunks-worker.ts';
import { createDiskSweep } from '../../../src/metadata/blobs/sweep-disks.ts';
import { createRepairWatch } from '../../../src/metadata/blobs/watch-repairs.ts';
import type { ChunkId, Fence } from '../../../src/ports/chunks.ts';
import type { HomeDisks } from '../../../src/ports/home-disks.ts';
import type { DiskId, PlacementMap } from '../../../src/ports/placement.ts';
import type { Worker } from '../../../src/ports/worker.ts';
import { LIMITS } from '../../../src/types/limits.ts';
import { chunkCount } from '../../../src/types/version.ts';
import { type MetadataShards, type NewData, openMetadata } from '../metadata/metadata-shards.ts';
import { runUntilIdle } from '../metadata/run-worker.ts';
import { createOrderDisks, nameOf, type OrderDisk } from './order-disks.ts';

export const HOUR = 3600_000;
export const DAY = 24 * HOUR;
const MiB = 1024 * 1024;

export type HomeWorkerName = 'name' | 'repair' | 'audit' | 'damage' | 'sweep' | 'watch';

export interface HomeWorld {
  world: MetadataShards;
  placement: KnownPlacement;
  disks: HomeDisks;
  /** What the worker `name` has found. */
  names: DamageNames;
  disk(id: DiskId): OrderDisk;
  /** The epoch in whose name orders are given. */
  epoch: number;
  /** Shard 0 is led here. */
  leads: boolean;
  /** Fixed event names that were logged as warnings or errors. */
  warnings: string[];
  counts: Map<string, number>;
  gauges: Map<string, number>;
  workers: Record<HomeWorkerName, Worker>;
  /** Each until it is idle, in this order. */
  run(...names: HomeWorkerName[]): Promise<void>;
  /** As after a start of the process. */
  reopen(): void;
  /** Owners of all partitions from now on; `previous` owners are those before, by default. */
  changeOwners(owners: string, options?: { previous?: string; without?: string }): PlacementMap;
  /** A blob with its chunks on these disks, committed with its repair entry, under `key`. */
  newBlob(key: string, on: string, options?: { chunks?: number; mapVersion?: number }): Promise<NewData>;
  /** The disks that have each chunk. */
  where(data: NewData): string[];
  /** Copies of the repair entries there are, in their order. */
  debts(): Promise<number[]>;
}

export function mapOf(options: {
  disks: string;
  owners: string;
  previous?: string;
  version?: number;
  auditFrom?: number;
}): PlacementMap {
  const { disks, owners, previous = '', version = 1, auditFrom = version } = options;
  const all = (names: string) => Array.from({ length: LIMITS.partitionCount }, () => [...names]);
  const placed = [...disks].map((id) => ({
    id,
    nodeId: `node-${id}`,
    zone: `zone-${id}`,
    capacityBytes: 1024 ** 4,
    address: `${id}:1`,
  }));
  return {
    version,
    auditFrom,
    copies: owners.length,
    disks: placed,
    owners: all(owners),
    previous: all(previous),
    former: all(''),
    retired: [],
  };
}

export function chunkIds(data: NewData): ChunkId[] {
  return data.uses.flatMap((use) =>
    Array.from({ length: chunkCount(use) }, (_, index) => ({ blobId: use.blobId, index })),
  );
}

/** Disks a to e, owners a, b and c. */
export async function openHomeWorld(): Promise<HomeWorld> {
  const world = await openMetadata();
  await world.createBucket();
  const placement = createKnownPlacement(mapOf({ disks: 'abcde', owners: 'abc' }));
  const warnings: string[] = [];
  const [counts, gauges] = [new Map<string, number>(), new Map<string, number>()];
  const nothing = () => {};
  const warn = (_fields: object, event: string) => void warnings.push(event);
  const log = { debug: nothing, info: nothing, error: warn, warn };
  const telemetry = {
    count: (name: string, _labels?: object, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by),
    gauge: (name: string, value: number, labels: object = {}) =>
      void gauges.set([name, ...Object.values(labels)].join(' '), value),
    gaugeAll: nothing,
    observe: nothing,
  };
  const directory = createOrderDisks(() => placement.current());
  const { clock } = world;
  const names = new DamageNames();

  function openWorkers(): Pick<HomeWorld, 'disks' | 'workers'> {
    const disks = createHomeDisks({
      placement,
      directory,
      clock,
      log,
      telemetry,
      repairBytesPerSecond: 0,
    });
    const shards = () => (home.leads ? [0] : []);
    const fenceOf = (shard: number): Fence => ({ shard, incarnation: 1, epoch: home.epoch });
    const parts = { metadata: world.shards, disks, shards, fenceOf, clock, log, telemetry };
    return {
      disks,
      workers: {
        name: createDamageNamer({
          ...parts,
          damage: { names, lostBlobs: (shard) => listLostBlobs(world.shards, shard) },
        }),
        repair: createRepairWorker(parts),
        audit: createBlobAudit({ ...parts, auditEveryMs: 7 * DAY }),
        damage: createCorruptionCollector(parts),
        sweep: createDiskSweep({ ...parts, passEveryMs: HOUR }),
        watch: createRepairWatch(parts),
      },
    };
  }

  const home: HomeWorld = {
    world,
    placement,
    names,
    warnings,
    counts,
    gauges,
    epoch: 1,
    leads: true,
    ...openWorkers(),
    disk: (id) => directory.of(id),
    async run(...names) {
      for (const name of names) await runUntilIdle(home.workers[name]);
    },
    reopen: () => void Object.assign(home, openWorkers()),
    changeOwners(owners, { previous, without = '' } = {}) {
      const before = placement.current();
      const leaving = (before.owners[0] ?? []).filter((disk) => !owners.includes(disk));
      const map = mapOf({
        disks: [...'abcde'].filter((disk) => !without.includes(disk)).join(''),
        owners,
        previous: previous ?? leaving.join(''),
        version: before.version + 1,
      });
      placement.learn(map);
      return map;
    },
    async newBlob(key, on, { chunks = 1, mapVersion = placement.current().version } = {}) {
      const data = world.newData({ sizeBytes: chunks * MiB });
      for (const id of chunkIds(data)) for (const disk of on) directory.of(disk).receive(id, clock.wallMs());
      const isWhole = on === (placement.current().owners[0] ?? []).join('');
      const ranges = isWhole ? [] : [{ from: 0, to: chunks, holders: [...on] }];
      for (const birth of data.grant.births) birth.placed = { mapVersion, newestVersion: mapVersion, ranges };
      await world.put(key, { data });
      return data;
    },
    where: (data) =>
      chunkIds(data).map((id) =>
        [...'abcde'].filter((disk) => directory.of(disk).stored.has(nameOf(id))).join(''),
      ),
    async debts() {
      const { debts } = await world.query('list-debts', { limit: 1000 });
      return debts.map(({ debt }) => debt.copies);
    },
  };
  return home;
}
