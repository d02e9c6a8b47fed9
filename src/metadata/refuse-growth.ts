// Below the reserve of its disk a metadata node refuses what grows, and goes on with deletes, settings and its own
// upkeep (R20). Here alone stands which command is which; how much room there is, is chunks/disk/disk-reserve.ts's.
import type { DiskReservePort } from '../ports/disk-reserve.ts';
import type { DataGrant } from '../ports/metadata/blobs.ts';
import type { CommandName, CommandOf, MetadataPort } from '../ports/metadata/port.ts';
import type { ShardCallHandler } from '../ports/shard-calls.ts';

/** Rows of one command, roughly: a version, its links, an outcome. */
const ROWS_BYTES = 4096;
const ROW_BYTES = 256;

const GOES_ON = 0;

/** Bytes that a command adds for good. Events are bounded, and the oldest make room for new ones (LIMITS.eventsKeptMax). */
const GROWTH: { [N in CommandName]: typeof GOES_ON | ((command: CommandOf<N>) => number) } = {
  'create-account': () => ROWS_BYTES,
  'set-account': GOES_ON,
  'delete-account': GOES_ON,
  // Whoever must replace a key that was stolen can do so on a full disk.
  'add-access-key': GOES_ON,
  'change-access-key': GOES_ON,
  // The first step of a new bucket decides for the others.
  'reserve-name': () => ROWS_BYTES,
  'activate-name': GOES_ON,
  // As many rows when it is over; beginning takes some more.
  'begin-rename': () => ROWS_BYTES,
  'end-rename': GOES_ON,
  'forget-name': GOES_ON,

  'create-bucket': GOES_ON,
  'delete-bucket': GOES_ON,
  'rename-bucket': GOES_ON,
  // A bounded number of bounded documents.
  'set-bucket-config': GOES_ON,
  'commit-version': ({ data }) => dataBytes(data),
  'recommit-version': () => ROWS_BYTES,
  'compose-version': ({ data }) => 2 * dataBytes(data),
  'append-version': ({ piece }) => dataBytes({ births: piece.births, links: [] }),
  // What it takes goes back, but not at once.
  'fold-version': ({ birth }) => dataBytes({ births: [birth], links: [] }),
  // A delete marker is a row more, and yet a delete.
  'delete-versions': GOES_ON,
  // To take tags away is a delete.
  'set-tags': ({ tags }) => (tags === null || tags.length === 0 ? 0 : ROWS_BYTES),
  // The same rows under other keys; a job or token takes some of its own.
  'move-key': ({ token }) => (token === undefined ? 0 : ROW_BYTES),
  'begin-move': () => ROWS_BYTES,
  'step-move': GOES_ON,
  'begin-key-move': () => ROWS_BYTES,
  'step-key-move': GOES_ON,
  'hold-move': GOES_ON,
  'create-upload': () => ROWS_BYTES,
  'commit-part': ({ data }) => dataBytes(data),
  'complete-upload': ({ parts }) => ROWS_BYTES + parts.length * ROW_BYTES,
  'abort-upload': GOES_ON,

  // Of a copy; what follows it settles what is there already.
  'claim-links': ({ blobIds }) => ROWS_BYTES + blobIds.length * ROW_BYTES,
  'release-parts': GOES_ON,
  'release-links': GOES_ON,
  'settle-claims': GOES_ON,
  'release-manifest-page': GOES_ON,
  'condemn-blobs': GOES_ON,
  'erase-blobs': GOES_ON,
  // Bounded rows, of what is there already.
  'note-debts': GOES_ON,
  'settle-debts': GOES_ON,
  'note-audit': GOES_ON,
  'note-scan': GOES_ON,
  'learn-history': GOES_ON,
  'assert-links': GOES_ON,
  'note-asserted': GOES_ON,
  'confirm-history': GOES_ON,
  'finish-outbox': GOES_ON,
  'expire-uploads': GOES_ON,
  'forget-completed-uploads': GOES_ON,
  'forget-tokens': GOES_ON,
  'forget-jobs': GOES_ON,
  'close-bucket': GOES_ON,
  'step-closing': GOES_ON,
  'empty-bucket': GOES_ON,
  'take-events': GOES_ON,
  'rewrap-keys': GOES_ON,
  tick: GOES_ON,
};

function dataBytes({ births, links }: DataGrant): number {
  const bodyBytes = births.reduce((sum, { body }) => sum + (body?.length ?? 0), 0);
  return bodyBytes + ROWS_BYTES + links.length * ROW_BYTES;
}

/** The calls of a node, likewise: where commands come from elsewhere, the disk is looked at beside the shard. */
export function refuseGrowingCalls(handler: ShardCallHandler, reserve: DiskReservePort): ShardCallHandler {
  return {
    ticket: () => handler.ticket(),
    async handle(call) {
      const growth = call.kind === 'execute' ? GROWTH[call.name as CommandName] : GOES_ON;
      const growthBytes = growth === GOES_ON ? 0 : growth(call.body as never);
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
      const growth = GROWTH[name];
      const growthBytes = growth === GOES_ON ? 0 : growth(command);
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
