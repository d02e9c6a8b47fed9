// R23: how a history that was recovered from one replica is confirmed: every other shard learns of it and reports what it
// holds of this home, and then the operator confirms that what is lost is lost.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { historyCodec, homeHistoryCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { HISTORY_ROW, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findHistory, homeHistoryRow } from './history.ts';

/** In a shard that claims. Behind this entry no commit of its rests on a claim that the home may have forgotten. */
export const learnHistory = defineCommand<CommandOf<'learn-history'>, OutcomeOf<'learn-history'>>({
  locks: ({ homeShard }) => [exclusive(LOCK.home(homeShard))],
  look: ({ homeShard }, view) => void view.row(homeHistoryRow(homeShard)),
  decide({ homeShard, incarnation }, view) {
    const row = view.row(homeHistoryRow(homeShard));
    const outcome = { kind: 'learned' } as const;
    if (row !== undefined && homeHistoryCodec.decode(row).incarnation >= incarnation) return refuse(outcome);
    return { outcome, puts: [put(homeHistoryRow(homeShard), homeHistoryCodec.encode({ incarnation }))] };
  },
});

export const noteAsserted = defineCommand<CommandOf<'note-asserted'>, OutcomeOf<'note-asserted'>>({
  locks: () => [exclusive(LOCK.history)],
  look: (_command, view) => void view.row(HISTORY_ROW),
  decide({ shard, incarnation }, view) {
    const history = findHistory(view);
    if (history?.incarnation !== incarnation || history.assertedBy.includes(shard))
      return refuse({ kind: 'noted' });
    const assertedBy = [...history.assertedBy, shard].sort((a, b) => a - b);
    return {
      outcome: { kind: 'noted' },
      puts: [put(HISTORY_ROW, historyCodec.encode({ ...history, assertedBy }))],
    };
  },
});

export const confirmHistory = defineCommand<CommandOf<'confirm-history'>, OutcomeOf<'confirm-history'>>({
  locks: () => [exclusive(LOCK.history)],
  look: (_command, view) => void view.row(HISTORY_ROW),
  decide(_command, view, { nowMs, shardCount }) {
    const history = findHistory(view);
    if (history === undefined || history.confirmedAtMs !== undefined) return refuse({ kind: 'no-doubt' });
    const asserted = new Set(history.assertedBy);
    const shards = Array.from({ length: shardCount }, (_, shard) => shard).filter(
      (shard) => !asserted.has(shard),
    );
    if (shards.length > 0) return refuse({ kind: 'waiting', shards });
    const confirmed = { ...history, confirmedAtMs: nowMs };
    return {
      outcome: { kind: 'confirmed', history: confirmed },
      puts: [put(HISTORY_ROW, historyCodec.encode(confirmed))],
    };
  },
});
