// Where events and the cursors of their consumers lie. Each consumer has numbers and rows of its own, so none waits for
// another one, and what it has taken is found without a look at what others have not.
import { assert } from '../../base/assert.ts';
import { concatBytes } from '../../base/bytes/bytes.ts';
import type { RangeAddress, RowAddress, View } from '../../ports/state-machine.ts';
import { EVENT_CONSUMER_IDS, EVENT_CONSUMERS, type EventConsumer } from '../../types/events.ts';
import { LIMITS } from '../../types/limits.ts';
import { type EventCursorRecord, eventCursorCodec } from '../../types/records/event-record.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import { TABLES } from '../schema/keyspace.ts';

export function eventRow(consumer: EventConsumer, seq: number): RowAddress {
  const key = concatBytes(Uint8Array.of(EVENT_CONSUMER_IDS[consumer]), u48(seq));
  return { table: TABLES.events, key };
}

/** Events of numbers from `fromSeq` on and below `toSeq`. */
export function eventRange(options: {
  consumer: EventConsumer;
  fromSeq: number;
  toSeq: number;
  limit: number;
}): RangeAddress {
  const { consumer, fromSeq, toSeq, limit } = options;
  const { table, key: gte } = eventRow(consumer, fromSeq);
  const { key: lt } = eventRow(consumer, toSeq);
  return { table, gte, lt, limit, bytesMax: LIMITS.queryPageBytesMax };
}

export function seqOfEvent(rowKey: Uint8Array): number {
  return readU48(rowKey, 1);
}

export function eventCursorRow(consumer: EventConsumer): RowAddress {
  return { table: TABLES.eventCursors, key: Uint8Array.of(EVENT_CONSUMER_IDS[consumer]) };
}

/** Of a row of either table. */
export function consumerOf(rowKey: Uint8Array): EventConsumer {
  const consumer = EVENT_CONSUMERS.find((each) => EVENT_CONSUMER_IDS[each] === rowKey[0]);
  assert(consumer !== undefined, 'a row of a consumer that is known');
  return consumer;
}

export function findEventCursor(consumer: EventConsumer, view: View): EventCursorRecord | undefined {
  return decodeEventCursor(view.row(eventCursorRow(consumer)));
}

export function decodeEventCursor(row: Uint8Array | undefined): EventCursorRecord | undefined {
  return row && eventCursorCodec.decode(row);
}

/** The number of the oldest event that is kept for a consumer; `total` where none is. */
export function oldestEvent(total: number, cursor: EventCursorRecord | undefined): number {
  return Math.max(cursor?.takenTo ?? 0, total - LIMITS.eventsKeptMax, 0);
}
