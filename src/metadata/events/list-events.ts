// The events of a consumer, in the order in which they happened in the shard: a page, and what was missed before it.
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { eventCodec } from '../../types/records/event-record.ts';
import { historyRow } from '../blobs/history.ts';
import { COUNTER } from '../schema/counters.ts';
import { HISTORY_ROW, TABLES } from '../schema/keyspace.ts';
import { decodeEventCursor, eventCursorRow, eventRange, oldestEvent, seqOfEvent } from './event-rows.ts';

type Query = QueryOf<'list-events'>;
type Result = ResultOf<'list-events'>;

export const listEvents: QuerySpec<Query, Result> = {
  async run({ consumer, from, bucketId, limit }, state) {
    // Numbers and rows of one moment: what is missing between them is lost.
    const view = state.view(TABLES.buckets);
    try {
      const [total = 0] = await view.counters([COUNTER.events(consumer)]);
      const [cursorRow, history] = await view.rows([eventCursorRow(consumer), HISTORY_ROW]);
      const cursor = decodeEventCursor(cursorRow);
      const incarnation = historyRow.incarnationOf(history);
      const isKnown = from !== undefined && from.incarnation === incarnation && from.seq <= total;
      const takenTo = cursor?.takenTo ?? 0;
      const wanted = Math.max(isKnown ? from.seq : 0, takenTo);
      const oldest = oldestEvent(total, cursor);
      const fromSeq = Math.max(wanted, oldest);
      const range = { consumer, fromSeq, toSeq: total, limit: Math.min(limit, LIMITS.eventsPageMax) };
      const rows = await view.range(eventRange(range));
      const last = rows.at(-1);
      const next = last === undefined ? total : seqOfEvent(last.key) + 1;
      const all = rows.map(({ key, value }) => ({ seq: seqOfEvent(key), event: eventCodec.decode(value) }));
      return {
        events: bucketId === undefined ? all : all.filter(({ event }) => event.bucketId === bucketId),
        next: { incarnation, seq: next },
        isAll: next === total,
        lostCount: oldest - Math.min(wanted, oldest),
      };
    } finally {
      view.close();
    }
  },
};
