// A consumer has done with its events up to a number: they go, some at a time, and its cursor says so in the same entry.
// Taking them again does nothing.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowPut } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { eventCursorCodec } from '../../types/records/event-record.ts';
import { historyRow } from '../blobs/history.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { HISTORY_ROW, put, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { eventCursorRow, eventRow, findEventCursor, oldestEvent } from './event-rows.ts';

export const takeEvents = defineCommand<CommandOf<'take-events'>, OutcomeOf<'take-events'>>({
  locks: ({ consumer }) => [exclusive(LOCK.events(consumer))],

  look({ consumer }, view) {
    findEventCursor(consumer, view);
    view.row(HISTORY_ROW);
  },

  decide({ consumer, upTo }, view, { nowMs, counter }) {
    const total = counter(COUNTER.events(consumer));
    const cursor = findEventCursor(consumer, view);
    const before = cursor?.takenTo ?? 0;
    // R23: numbers of a history that was given up stand for other events now.
    if (upTo.incarnation !== historyRow.incarnationOf(view.row(HISTORY_ROW)))
      return refuse({ kind: 'other-history' });
    const wanted = Math.min(upTo.seq, total);
    if (wanted <= before) return refuse({ kind: 'taken', takenTo: before, isAll: true });
    // What is older has gone.
    const oldest = Math.min(oldestEvent(total, cursor), wanted);
    const takenTo = Math.min(wanted, oldest + LIMITS.eventsTakenMax);
    const puts: RowPut[] = [];
    for (let seq = oldest; seq < takenTo; seq++) puts.push(remove(eventRow(consumer, seq)));
    puts.push(put(eventCursorRow(consumer), eventCursorCodec.encode({ takenTo, takenAtMs: nowMs })));
    return { outcome: { kind: 'taken', takenTo, isAll: takenTo === wanted }, puts };
  },
});
