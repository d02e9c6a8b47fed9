// Below the reserve of its disk a metadata node refuses what grows, and goes on with deletes, settings and its own
// upkeep (R20). Which command grows by how much is said by its row in state-machine.ts; how much room there is, by
// chunks/disk/disk-reserve.ts.
import type { DiskReservePort } from '../ports/disk-reserve.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { ShardCallHandler } from '../ports/shard-calls.ts';
import { growthBytesOf } from './state-machine.ts';

/** The calls of a node, likewise: where commands come from elsewhere, the disk is looked at beside the shard. */
export function refuseGrowingCalls(handler: ShardCallHandler, reserve: DiskReservePort): ShardCallHandler {
  return {
    ticket: () => handler.ticket(),
    async handle(call) {
      const growthBytes = call.kind === 'execute' ? growthBytesOf(call.name, call.body) : 0;
      if (growthBytes === 0) return handler.handle(call);
      const hold = await reserve.hold(growthBytes);
      if (hold === undefined) return { kind: 'full' };
      try {
        return await handler.handle(call);
      } finally {
        hold.release();
      }
    },
  };
}

/** The port of a node, with commands that grow answered `full` when its disk has no room for them. */
export function refuseGrowth(metadata: MetadataPort, reserve: DiskReservePort): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      const growthBytes = growthBytesOf(name, command);
      if (growthBytes === 0) return metadata.execute(envelope, name, command);
      const hold = await reserve.hold(growthBytes);
      if (hold === undefined) return { kind: 'full' };
      try {
        return await metadata.execute(envelope, name, command);
      } finally {
        hold.release();
      }
    },
  };
}
