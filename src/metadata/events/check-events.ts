// Events as fsck sees them: each is kept for a consumer that has not taken it, and those between it and the newest are there.
import { eventCodec, eventCursorCodec } from '../../types/records/event-record.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { COUNTER } from '../schema/counters.ts';
import {
  consumerOf,
  decodeEventCursor,
  eventCursorRow,
  eventRow,
  oldestEvent,
  seqOfEvent,
} from './event-rows.ts';

async function totalOf(consumer: Parameters<typeof eventRow>[0], scan: CheckScan): Promise<number> {
  const [total = 0] = await scan.view.counters([COUNTER.events(consumer)]);
  return total;
}

export const checkEvent: RowCheck = async (row, scan) => {
  const consumer = consumerOf(row.key);
  const seq = seqOfEvent(row.key);
  const total = await totalOf(consumer, scan);
  const cursor = decodeEventCursor(await scan.row(eventCursorRow(consumer)));
  const { bucket, key } = eventCodec.decode(row.value);
  const place = {
    ...(bucket !== undefined && { bucket }),
    ...(key !== undefined && { key }),
    ...{ table: 'events', note: `${consumer} ${seq}` },
  };
  if (seq >= total || seq < oldestEvent(total, cursor)) scan.found('queue-orphaned', place);
  else if (seq + 1 < total) await scan.expectRow(eventRow(consumer, seq + 1), 'queue-missing', place);
};

export const checkEventCursor: RowCheck = async (row, scan) => {
  const consumer = consumerOf(row.key);
  const { takenTo } = eventCursorCodec.decode(row.value);
  const total = await totalOf(consumer, scan);
  if (takenTo > total)
    scan.found('counter-wrong', { table: 'eventCursors', note: `${total}, is ${takenTo}` });
};
