// Gives orders of home shards to the disks of the cluster: by the newest placement map, and leaving alone disks that do not
// answer. Repair and inspection of chunks are in the files beside this one.

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
import { createDiskBackoffs } from './disk-backoffs.ts';
import { inspectChunks } from './inspect-chunks.ts';
import { repairChunks } from './repair-chunks.ts';
import { createRepairThrottle } from './repair-throttle.ts';

export interface HomeDisksDeps {
  placement: PlacementPort;
  directory: DiskDirectory;
  clock: ClockPort;
  log: Logger;
  telemetry: TelemetryPort;
  /** Bound for the repair of this process; 0: unlimited. */
  repairBytesPerSecond: number;
}

export interface AskedDisks extends HomeDisks {
  /** To be called for each disk whose node returns: work for it need not wait any longer. */
  returned(disk: DiskId): void;
  /** Disks that did not answer when they were last asked. */
  silent(): DiskId[];
}

export function createHomeDisks(deps: HomeDisksDeps): AskedDisks {
  const { placement, directory, clock, log, telemetry } = deps;
  const backoffs = createDiskBackoffs(clock);
  const gate = createRepairThrottle({
    clock,
    inFlightMax: LIMITS.repairPullsMax,
    bytesPerSecond: deps.repairBytesPerSecond,
  });
  const parts = { directory, backoffs, gate, log, telemetry };

  async function byOneMap(
    { fence, signal }: { fence: Fence; signal: AbortSignal },
    act: (inquiry: Inquiry) => Promise<ChunkState[]>,
  ): Promise<ChunkStates | undefined> {
    const map = placement.current();
    const { version: mapVersion } = map;
    const states = await ifCurrent(() => act({ map, order: { fence, mapVersion }, signal }));
    return states && { mapVersion, states };
  }

  /** An order that became outdated is started again by its caller. */
  async function ifCurrent<T>(act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof StaleMap) placement.noteVersion(error.version);
      else if (!isRefusal(error)) throw error;
      return undefined;
    }
  }

  /** undefined also while the disk is backed off, or when it is not in the map. */
  async function atDisk<T>(diskId: DiskId, act: (orders: DiskOrders) => Promise<T>): Promise<T | undefined> {
    const disk = disksById(placement.current()).get(diskId);
    if (disk === undefined || backoffs.isBackedOff(diskId, 'ask')) return undefined;
    return ifCurrent(() => attempt(backoffs, diskId, () => act(directory.chunksOf(disk))));
  }

  return {
    mapVersion: () => placement.current().version,
    auditFrom: () => placement.current().auditFrom,
    repair: (chunks, how) => byOneMap(how, (by) => repairChunks(parts, by, chunks)),
    look: (ids, { of: disks, countsSilentAsMissing = false, ...how }) =>
      byOneMap(how, (by) => inspectChunks(parts, by, { ids, disks, countsSilentAsMissing })),
    disks: () => placement.current().disks.map(({ id }) => id),
    isOwner: (diskId, id) => ownersOf(placement.current(), id).includes(diskId),
    returned: (diskId) => backoffs.returned(diskId),
    silent: () => backoffs.silent(),
    returnsOf: (diskId) => backoffs.returnsOf(diskId),
    listQuarantined: (diskId, options) => atDisk(diskId, (orders) => orders.listQuarantined(options)),
    listOf: (diskId, options) => atDisk(diskId, (orders) => orders.listOf(options)),
    async drop(diskId, ids, fence) {
      const disk = disksById(placement.current()).get(diskId);
      if (disk === undefined || backoffs.isBackedOff(diskId, 'ask')) return false;
      const drop = () =>
        attempt(backoffs, diskId, () =>
          directory
            .chunksOf(disk)
            .drop(ids, fence)
            .then(() => true),
        );
      return (await ifCurrent(drop)) ?? false;
    },
    async dropQuarantined(diskId, ids, fence) {
      const order = { fence, mapVersion: placement.current().version };
      const isDone = await atDisk(diskId, (orders) => orders.dropQuarantined(ids, order).then(() => true));
      return isDone ?? false;
    },
  };
}
