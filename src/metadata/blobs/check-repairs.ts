// Checks of repair entries for fsck (R36): each belongs to a blob, is in the queue once, and is counted.
import { toHex } from '../../base/bytes/bytes.ts';
import { allRows } from '../../base/table-rows.ts';
import type { StateView } from '../../ports/state-machine.ts';
import type { Pending } from '../../types/findings.ts';
import type { BlobId } from '../../types/names.ts';
import { repairCodec } from '../../types/records/rows.ts';
import { COPIES_UNKNOWN, rangedChunks } from '../../types/repair-entries.ts';
import type { RowCheck } from '../checks/scan.ts';
import { COUNTER } from '../schema/counters.ts';
import { readU48 } from '../schema/key-parts.ts';
import { blobRow, TABLES } from '../schema/keyspace.ts';
import { repairQueueRow, repairRow } from './repair-entries.ts';

export const checkRepair: RowCheck = async (row, scan) => {
  const blobId = toHex(row.key) as BlobId;
  const debt = repairCodec.decode(row.value);
  await scan.expectRow(blobRow(blobId), 'queue-orphaned', { blob: blobId, table: 'debts' });
  await scan.expectRow(repairQueueRow({ ...debt, blobId }), 'queue-missing', {
    blob: blobId,
    table: 'debts',
  });
};

export const checkRepairQueue: RowCheck = async ({ key }, scan) => {
  const [copies, notedAtMs] = [key[0], readU48(key, 1)];
  const blobId = toHex(key.subarray(7)) as BlobId;
  const row = await scan.row(repairRow(blobId));
  const debt = row && repairCodec.decode(row);
  if (debt?.copies === copies && debt?.notedAtMs === notedAtMs) return;
  scan.found('queue-orphaned', { blob: blobId, table: 'debtQueue' });
};

/** The expected counters of repair entries. */
export async function repairCounts(view: StateView): Promise<[name: string, value: number][]> {
  const counts = Array.from({ length: COPIES_UNKNOWN + 1 }, () => ({ blobs: 0, chunks: 0 }));
  for await (const { value } of allRows(view, TABLES.debts)) {
    const { copies, ranges } = repairCodec.decode(value);
    const count = counts[copies];
    if (count === undefined) continue;
    count.blobs++;
    count.chunks += rangedChunks(ranges);
  }
  return counts.flatMap(({ blobs, chunks }, copies): [string, number][] => [
    [COUNTER.debts(copies), blobs],
    [COUNTER.debtChunks(copies), chunks],
  ]);
}

/** The queue is by copies first, so the oldest may be anywhere in it. */
export async function pendingRepairs(view: StateView): Promise<Pending | undefined> {
  let count = 0;
  let oldestAtMs = Number.POSITIVE_INFINITY;
  for await (const { key } of allRows(view, TABLES.debtQueue)) {
    count++;
    oldestAtMs = Math.min(oldestAtMs, readU48(key, 1));
  }
  return count === 0 ? undefined : { kind: 'debt', count, oldestAtMs };
}
