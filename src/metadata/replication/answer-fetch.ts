// What a candidate with a shorter log is sent of a better one (R12 c).
import type { FetchedMessage, LogPosition } from '../../ports/replication.ts';
import { APPEND_BYTES_MAX } from '../engine/timing.ts';
import type { LogStore } from './log-store.ts';

/** The entries behind `after`, or where the two logs may agree. Rejects for what cannot be read. */
export async function answerFetch(
  log: LogStore,
  after: LogPosition,
): Promise<Pick<FetchedMessage, 'prev' | 'entries'>> {
  if (log.epochAt(after.seq) === after.epoch) {
    const isAll = after.seq === log.last.seq;
    const entries = isAll ? [] : await log.read(after.seq + 1, log.last.seq, APPEND_BYTES_MAX);
    return { prev: after, entries };
  }
  const seq = after.seq > log.last.seq ? log.last.seq : log.epochStart(after.seq) - 1;
  return { prev: { seq, epoch: log.epochAt(seq) ?? 0 }, entries: [] };
}
