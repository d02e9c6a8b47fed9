// Serves the durable rows of a metadata node to the commands that rebuild the registry or recover a shard (R23). It runs
// beside the node's work, or alone when the node is started for that only.
import { toHex } from '../base/bytes/bytes.ts';
import { momentNow } from '../base/moment.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { NodeRecords } from '../ports/node-records.ts';
import type { ShardCallHandler } from '../ports/shard-calls.ts';
import type { Logger } from '../ports/telemetry.ts';

const PROCESS_ID_BYTES = 16;

/** Answers calls for records itself, and passes on all others. */
export function answerRecords(
  handler: ShardCallHandler,
  { read, log }: { read(): Promise<NodeRecords>; log: Logger },
): ShardCallHandler {
  return {
    ticket: () => handler.ticket(),
    async handle(call) {
      if (call.kind !== 'records') return handler.handle(call);
      try {
        return { kind: 'done', value: await read(), timeMs: 0 };
      } catch (error) {
        log.error({ err: error }, 'records-not-read');
        return { kind: 'unknown' };
      }
    },
  };
}

/** A node that opens no shard: it answers calls about shards with "not primary". */
export function createNodeAtRest({
  clock,
  random,
}: {
  clock: ClockPort;
  random: RandomPort;
}): ShardCallHandler {
  const processId = toHex(random.bytes(PROCESS_ID_BYTES));
  return {
    ticket: () => ({ processId, ...momentNow(clock) }),
    async handle(call) {
      if (call.kind === 'status') return { kind: 'done', value: [], timeMs: 0 };
      return { kind: 'not-primary', primary: undefined };
    },
  };
}
