// Debts as rows (R36): the record under its blob, its place in the queue, and what the counters say of both.
import { concatBytes, fromHex, toHex } from '../../base/bytes/bytes.ts';
import type { CounterDelta, DecideContext, RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import { type Debt, rangedChunks } from '../../types/debts.ts';
import type { BlobId } from '../../types/names.ts';
import { type AuditRecord, auditCodec, type DebtRecord, debtCodec } from '../../types/records/rows.ts';
import { COUNTER } from '../schema/counters.ts';
import { u48 } from '../schema/key-parts.ts';
import { PRESENT, put, remove, TABLES } from '../schema/keyspace.ts';

const MARK_BYTES = 8;

export function debtRow(blobId: BlobId): RowAddress {
  return { table: TABLES.debts, key: fromHex(blobId) };
}

export function debtQueueRow(place: { copies: number; notedAtMs: number; blobId: BlobId }): RowAddress {
  const parts = [Uint8Array.of(place.copies), u48(place.notedAtMs), fromHex(place.blobId)];
  return { table: TABLES.debtQueue, key: concatBytes(...parts) };
}

export const AUDIT_ROW: RowAddress = { table: TABLES.scans, key: Uint8Array.of(0) };

export interface RowChange {
  puts: RowPut[];
  counters: CounterDelta[];
}

export const NO_CHANGE: RowChange = { puts: [], counters: [] };

export function findDebt(blobId: BlobId, view: View): DebtRecord | undefined {
  const row = view.row(debtRow(blobId));
  return row && debtCodec.decode(row);
}

export function findAudit(view: View): AuditRecord | undefined {
  const row = view.row(AUDIT_ROW);
  return row && auditCodec.decode(row);
}

/** The debt of a blob as it shall be: the time of its first note stays. Absent: nothing is owed any more. */
export function changeDebt(
  blobId: BlobId,
  { before, after }: { before: DebtRecord | undefined; after: Debt | undefined },
  context: Pick<DecideContext, 'nowMs' | 'random'>,
): RowChange {
  const puts: RowPut[] = [];
  const counters: CounterDelta[] = [];
  if (before !== undefined) {
    puts.push(remove(debtQueueRow({ ...before, blobId })));
    counters.push(...countersOf(before, -1));
    if (after === undefined) puts.push(remove(debtRow(blobId)));
  }
  if (after !== undefined) {
    const { copies, ranges, mapVersion } = after;
    const notedAtMs = before?.notedAtMs ?? context.nowMs;
    const record: DebtRecord = {
      copies,
      ranges,
      mapVersion,
      notedAtMs,
      mark: toHex(context.random(MARK_BYTES)),
    };
    puts.push(put(debtRow(blobId), debtCodec.encode(record)));
    puts.push(put(debtQueueRow({ ...record, blobId }), PRESENT));
    counters.push(...countersOf(record, 1));
  }
  return { puts, counters };
}

/** Nobody mends what is condemned, and nobody is told of it: what it has lost is missed by no one. */
export function endDebt(
  blobId: BlobId,
  view: View,
  context: Pick<DecideContext, 'nowMs' | 'random'>,
): RowChange {
  return changeDebt(blobId, { before: findDebt(blobId, view), after: undefined }, context);
}

export function joinChanges(changes: readonly RowChange[]): RowChange {
  return {
    puts: changes.flatMap(({ puts }) => puts),
    counters: changes.flatMap(({ counters }) => counters),
  };
}

function countersOf({ copies, ranges }: Debt, sign: 1 | -1): CounterDelta[] {
  return [
    { name: COUNTER.debts(copies), delta: sign },
    { name: COUNTER.debtChunks(copies), delta: sign * rangedChunks(ranges) },
  ];
}
