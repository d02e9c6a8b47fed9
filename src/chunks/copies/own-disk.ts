// Serves a disk of this process as a disk of the cluster: where storage and gateway are one process, and in simulations.

import type { ServedDisk, ServedDisks } from '../../ports/chunk-server.ts';
import type { DiskChunks } from '../../ports/disk-chunks.ts';
import type { DiskOrders } from '../../ports/disk-orders.ts';
import { StaleMap } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';

/** `node`: stores the placement version that the disk's node knows. */
export function ownDisk(
  chunks: ServedDisk,
  node: Pick<ServedDisks, 'mapVersion' | 'adopt'>,
): DiskChunks & DiskOrders {
  return {
    async put(id, bytes, { checksum, mapVersion }) {
      if (mapVersion > node.mapVersion()) await node.adopt(mapVersion);
      if (mapVersion < node.mapVersion()) throw new StaleMap(node.mapVersion());
      // The store takes over the bytes, and these are sent to other disks as well.
      await chunks.put(id, Uint8Array.from(bytes), checksum);
    },
    async get(id, { isProven, part, signal }) {
      const read = await chunks.get(id, { isProven: isProven && part !== undefined, part });
      if (signal.aborted) throw new AppError('ServiceUnavailable', { cause: signal.reason });
      return read;
    },
    have: (ids) => chunks.have(ids),
    drop: (ids, fence) => chunks.drop(ids, fence),
    list: (options) => chunks.list(options),
    usage: () => chunks.usage(),
    recount: () => chunks.recount(),
    inspect: (ids, order, how) => chunks.inspect(ids, order, how),
    pull: (chunk, order, signal) => chunks.pull(chunk, order, signal),
    dropMisplaced: (ids, order) => chunks.dropMisplaced(ids, order),
    dropQuarantined: (ids, order) => chunks.dropQuarantined(ids, order),
    listQuarantined: (options) => chunks.listQuarantined(options),
    listOf: (options) => chunks.listOf(options),
  };
}
