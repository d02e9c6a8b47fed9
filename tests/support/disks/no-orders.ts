// Disks to which nobody gives orders (src/ports/disk-orders.ts): an order is a failure of the test.
import type { ServedDisk } from '../../../src/ports/chunk-server.ts';
import type { ChunkPort } from '../../../src/ports/chunks.ts';
import type { DiskOrders } from '../../../src/ports/disk-orders.ts';

export class NoOrders implements DiskOrders {
  inspect: DiskOrders['inspect'] = unexpected;
  pull: DiskOrders['pull'] = unexpected;
  dropMisplaced: DiskOrders['dropMisplaced'] = unexpected;
  dropQuarantined: DiskOrders['dropQuarantined'] = unexpected;
  listQuarantined: DiskOrders['listQuarantined'] = unexpected;
  listOf: DiskOrders['listOf'] = unexpected;
}

async function unexpected(): Promise<never> {
  throw new Error('nobody orders anything here');
}

export function withoutOrders(chunks: ChunkPort): ServedDisk {
  return {
    ...new NoOrders(),
    put: (id, bytes, checksum) => chunks.put(id, bytes, checksum),
    get: (id, how) => chunks.get(id, how),
    have: (ids) => chunks.have(ids),
    drop: (ids, fence) => chunks.drop(ids, fence),
    list: (options) => chunks.list(options),
    usage: () => chunks.usage(),
    recount: () => chunks.recount(),
  };
}
