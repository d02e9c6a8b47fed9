// Below the reserve of its disk a metadata node refuses what grows, and goes on with deletes, settings and its own
// upkeep (R20). Which command grows by how much is said by its row in state-machine.ts; how much room there is, by
// chunks/disk/disk-reserve.ts.
import type { DiskHold, DiskReservePort } from '../ports/disk-reserve.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { ShardCallHandler } from '../ports/shard-calls.ts';
import { growthOf } from './state-machine.ts';

/** The calls of a node, likewise: where commands come from elsewhere, the disk is looked at beside the shard. */
export function refuseGrowingCalls(handler: ShardCallHandler, reserve: DiskReservePort): ShardCallHandler {
  return {
    ticket: () => handler.ticket(),
    async handle(call) {
      const hold = call.kind === 'execute' ? holdFor(reserve, call.name, call.body) : NO_GROWTH;
      return hold === NO_GROWTH ? handler.handle(call) : within(hold, () => handler.handle(call));
    },
  };
}

/** The port of a node, with commands that grow answered `full` when its disk has no room for them. */
export function refuseGrowth(metadata: MetadataPort, reserve: DiskReservePort): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      const hold = holdFor(reserve, name, command);
      const execute = () => metadata.execute(envelope, name, command);
      return hold === NO_GROWTH ? execute() : within(hold, execute);
    },
  };
}

const NO_GROWTH = undefined;

function holdFor(
  reserve: DiskReservePort,
  name: string,
  command: unknown,
): Promise<DiskHold | undefined> | typeof NO_GROWTH {
  const { bytes, isForFullDisk } = growthOf(name, command);
  if (bytes === 0) return NO_GROWTH;
  return isForFullDisk ? reserve.hold(bytes, { isForFullDisk }) : reserve.hold(bytes);
}

async function within<T>(
  holding: Promise<DiskHold | undefined>,
  act: () => Promise<T>,
): Promise<T | { kind: 'full' }> {
  const hold = await holding;
  if (hold === undefined) return { kind: 'full' };
  try {
    return await act();
  } finally {
    hold.release();
  }
}
