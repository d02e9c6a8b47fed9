// Repair entries as rows (R36): the record under its blob, its place in the queue, and the counters of both.
import { concatBytes, fromHex, toHex } from '../../base/bytes/bytes.ts';
import type { CounterDelta, DecideContext, RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import type { BlobId } from '../../types/names.ts';
import {
  type AuditRecord,
  auditCodec,
  type RepairEntryRecord,
  repairCodec,
} from '../../types/records/rows.ts';
import { type RepairEntry, rangedChunks } from '../../types/repair-entries.ts';
import { COUNTER } from '../schema/counters.ts';
import { u48 } from '../schema/key-parts.ts';
import { PRESENT, put, remove, TABLES } from '../schema/keyspace.ts';

const MARK_BYTES = 8;

export function repairRow(blobId: BlobId): RowAddress {
  return { table: TABLES.debts, key: fromHex(blobId) };
}

export function repairQueueRow(place: { copies: number; notedAtMs: number; blobId: BlobId }): RowAddress {
  const parts = [Uint8Array.of(place.copies), u48(place.notedAtMs), fromHex(place.blobId)];
  return { table: TABLES.debtQueue, key: concatBytes(...parts) };
}

export const AUDIT_ROW: RowAddress = { table: TABLES.scans, key: Uint8Array.of(0) };

export interface RowChange {
  puts: RowPut[];
  counters: CounterDelta[];
}

export const NO_CHANGE: RowChange = { puts: [], counters: [] };

export function findRepair(blobId: BlobId, view: View): RepairEntryRecord | undefined {
  const row = view.row(repairRow(blobId));
  return row && repairCodec.decode(row);
}

export function findAudit(view: View): AuditRecord | undefined {
  const row = view.row(AUDIT_ROW);
  return row && auditCodec.decode(row);
}

/** Replaces the repair entry of a blob; the time of its first record stays. Absent `after`: nothing is missing any more. */
export function changeRepair(
  blobId: BlobId,
  { before, after }: { before: RepairEntryRecord | undefined; after: RepairEntry | undefined },
  context: Pick<DecideContext, 'nowMs' | 'random'>,
): RowChange {
  const puts: RowPut[] = [];
  const counters: CounterDelta[] = [];
  if (before !== undefined) {
    puts.push(remove(repairQueueRow({ ...before, blobId })));
    counters.push(...countersOf(before, -1));
    if (after === undefined) puts.push(remove(repairRow(blobId)));
  }
  if (after !== undefined) {
    const { copies, ranges, mapVersion } = after;
    const notedAtMs = before?.notedAtMs ?? context.nowMs;
    const record: RepairEntryRecord = {
      copies,
      ranges,
      mapVersion,
      notedAtMs,
      mark: toHex(context.random(MARK_BYTES)),
    };
    puts.push(put(repairRow(blobId), repairCodec.encode(record)));
    puts.push(put(repairQueueRow({ ...record, blobId }), PRESENT));
    counters.push(...countersOf(record, 1));
  }
  return { puts, counters };
}

/** Data that is marked for deletion is not repaired, and its loss is not reported. */
export function endRepair(
  blobId: BlobId,
  view: View,
  context: Pick<DecideContext, 'nowMs' | 'random'>,
): RowChange {
  return changeRepair(blobId, { before: findRepair(blobId, view), after: undefined }, context);
}

export function joinChanges(changes: readonly RowChange[]): RowChange {
  return {
    puts: changes.flatMap(({ puts }) => puts),
    counters: changes.flatMap(({ counters }) => counters),
  };
}

function countersOf({ copies, ranges }: RepairEntry, sign: 1 | -1): CounterDelta[] {
  return [
    { name: COUNTER.debts(copies), delta: sign },
    { name: COUNTER.debtChunks(copies), delta: sign * rangedChunks(ranges) },
  ];
}
