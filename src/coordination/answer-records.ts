// What a metadata node tells of its rows to whoever rebuilds the registry or recovers a shard (R23): beside its work, or
// instead of it, when it is started for that alone.
import { toHex } from '../base/bytes/bytes.ts';
import { momentNow } from '../base/moment.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { NodeRecords } from '../ports/node-records.ts';
import type { ShardCallHandler } from '../ports/shard-calls.ts';
import type { Logger } from '../ports/telemetry.ts';

const PROCESS_ID_BYTES = 16;

/** Answers calls for records itself, and hands on all others. */
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

/** A node that opens nothing: to calls about shards it says that it leads none. */
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
