// The disks of the cluster as home shards order them about: by the newest placement map, with disks that do not answer
// left alone for a while. How chunks are mended and looked at is in the files beside this one.

import type { Fence } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { DiskOrders } from '../../ports/disk-orders.ts';
import type { ChunkState, ChunkStates, HomeDisks } from '../../ports/home-disks.ts';
import type { DiskId, PlacementPort } from '../../ports/placement.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { StaleMap } from '../../types/chunk-refusals.ts';
import { LIMITS } from '../../types/limits.ts';
import { disksById, ownersOf } from '../placement/placement.ts';
import { attempt, type Inquiry, isRefusal } from './chunk-copies.ts';
import { createDiskRests } from './disk-rests.ts';
import { lookAtChunks } from './look-at-chunks.ts';
import { mendChunks } from './mend-chunks.ts';
import { createRepairThrottle } from './repair-throttle.ts';

export interface HomeDisksDeps {
  placement: PlacementPort;
  directory: DiskDirectory;
  clock: ClockPort;
  log: Logger;
  telemetry: TelemetryPort;
  /** Of repair, by this process; 0: as fast as it goes. */
  repairBytesPerSecond: number;
}

export interface AskedDisks extends HomeDisks {
  /** To be told of each disk whose node is there again: what waits for it need not wait longer. */
  returned(disk: DiskId): void;
  /** Disks that did not answer when they were last asked. */
  silent(): DiskId[];
}

export function createHomeDisks(deps: HomeDisksDeps): AskedDisks {
  const { placement, directory, clock, log, telemetry } = deps;
  const rests = createDiskRests(clock);
  const gate = createRepairThrottle({
    ...{ clock, inFlightMax: LIMITS.repairPullsMax, bytesPerSecond: deps.repairBytesPerSecond },
  });
  const parts = { directory, rests, gate, log, telemetry };

  async function byOneMap(
    { fence, signal }: { fence: Fence; signal: AbortSignal },
    act: (inquiry: Inquiry) => Promise<ChunkState[]>,
  ): Promise<ChunkStates | undefined> {
    const map = placement.current();
    const { version: mapVersion } = map;
    const states = await ifCurrent(() => act({ map, order: { fence, mapVersion }, signal }));
    return states && { mapVersion, states };
  }

  /** What an order out of date began is begun anew by whoever asked for it. */
  async function ifCurrent<T>(act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof StaleMap) placement.hear(error.version);
      else if (!isRefusal(error)) throw error;
      return undefined;
    }
  }

  /** undefined also where the disk rests, or is no more in the map. */
  async function atDisk<T>(diskId: DiskId, act: (orders: DiskOrders) => Promise<T>): Promise<T | undefined> {
    const disk = disksById(placement.current()).get(diskId);
    if (disk === undefined || rests.isResting(diskId, 'ask')) return undefined;
    return ifCurrent(() => attempt(rests, diskId, () => act(directory.chunksOf(disk))));
  }

  return {
    mapVersion: () => placement.current().version,
    auditFrom: () => placement.current().auditFrom,
    mend: (chunks, how) => byOneMap(how, (by) => mendChunks(parts, by, chunks)),
    look: (ids, { of: disks, owesSilence = false, ...how }) =>
      byOneMap(how, (by) => lookAtChunks(parts, by, { ids, disks, owesSilence })),
    disks: () => placement.current().disks.map(({ id }) => id),
    isOwner: (diskId, id) => ownersOf(placement.current(), id).includes(diskId),
    returned: (diskId) => rests.returned(diskId),
    silent: () => rests.silent(),
    returnsOf: (diskId) => rests.returnsOf(diskId),
    listAside: (diskId, options) => atDisk(diskId, (orders) => orders.listAside(options)),
    listOf: (diskId, options) => atDisk(diskId, (orders) => orders.listOf(options)),
    async drop(diskId, ids, fence) {
      const disk = disksById(placement.current()).get(diskId);
      if (disk === undefined || rests.isResting(diskId, 'ask')) return false;
      const drop = () =>
        attempt(rests, diskId, () =>
          directory
            .chunksOf(disk)
            .drop(ids, fence)
            .then(() => true),
        );
      return (await ifCurrent(drop)) ?? false;
    },
    async dropAside(diskId, ids, fence) {
      const order = { fence, mapVersion: placement.current().version };
      const isDone = await atDisk(diskId, (orders) => orders.dropAside(ids, order).then(() => true));
      return isDone ?? false;
    },
  };
}
