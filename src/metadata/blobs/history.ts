// Of which history a shard is, as its state says it (R23): one that began with what a single replica had left is not
// believed to know all before the operator has confirmed it.

import type { HistoryRow, RowAddress, View } from '../../ports/state-machine.ts';
import { type HistoryRecord, historyCodec } from '../../types/records/rows.ts';
import { u16 } from '../schema/key-parts.ts';
import { HISTORY_ROW, TABLES } from '../schema/keyspace.ts';

export function findHistory(view: View): HistoryRecord | undefined {
  const row = view.row(HISTORY_ROW);
  return row && historyCodec.decode(row);
}

/** What is known of another home. */
export function homeHistoryRow(homeShard: number): RowAddress {
  return { table: TABLES.homeHistories, key: u16(homeShard) };
}

/** Nothing of this home may be marked for deletion or erased. */
export function isUnconfirmed(view: View): boolean {
  return isUnconfirmedRow(view.row(HISTORY_ROW));
}

export function isUnconfirmedRow(row: Uint8Array | undefined): boolean {
  return row !== undefined && historyCodec.decode(row).confirmedAtMs === undefined;
}

export const historyRow: HistoryRow = {
  address: HISTORY_ROW,
  incarnationOf: (row) => (row === undefined ? 1 : historyCodec.decode(row).incarnation),
  begin: (incarnation, nowMs) =>
    historyCodec.encode({ incarnation, begunAtMs: nowMs, assertedBy: [], linkCount: 0, blobCount: 0 }),
};
