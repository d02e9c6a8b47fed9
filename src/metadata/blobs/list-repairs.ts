// Queries of the repair of a shard (R39): its repair entries in their order, their number, the progress of the audit, and
// the blobs to audit.
import { fromHex, toHex } from '../../base/bytes/bytes.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import type { BlobId } from '../../types/names.ts';
import { auditCodec, blobCodec, repairCodec } from '../../types/records/rows.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import { COUNTER } from '../schema/counters.ts';
import { readU48 } from '../schema/key-parts.ts';
import { blobRow, TABLES } from '../schema/keyspace.ts';
import { AUDIT_ROW, repairQueueRow, repairRow } from './repair-entries.ts';

const BLOB_AT = 7;

export const listRepairs: QuerySpec<QueryOf<'list-debts'>, ResultOf<'list-debts'>> = {
  async run({ after, limit }, state) {
    const gte = behind(after && repairQueueRow(after).key);
    const queue = await state.range({ table: TABLES.debtQueue, gte, lt: TABLE_END, limit });
    const blobIds = queue.map(({ key }) => toHex(key.subarray(BLOB_AT)) as BlobId);
    const [records, blobs] = await Promise.all([
      state.rows(blobIds.map(repairRow)),
      state.rows(blobIds.map(blobRow)),
    ]);
    const debts = blobIds.flatMap((blobId, at) => {
      const [record, row] = [records[at], blobs[at]];
      // It was resolved between the two reads.
      if (record === undefined || row === undefined) return [];
      const { sizeBytes, chunkSizeBytes, condemnedAtMs } = blobCodec.decode(row);
      // The blob will be erased, and its repair entry with it.
      if (condemnedAtMs !== undefined) return [];
      return [{ blobId, debt: repairCodec.decode(record), sizeBytes, chunkSizeBytes }];
    });
    const last = queue.length < limit ? undefined : queue.at(-1);
    return { debts, ...(last && { next: placeOf(last.key) }) };
  },
};

function placeOf(key: Uint8Array) {
  const copies = key[0] ?? 0;
  return { copies, notedAtMs: readU48(key, 1), blobId: toHex(key.subarray(BLOB_AT)) as BlobId };
}

export const getRepairs: QuerySpec<QueryOf<'get-debts'>, ResultOf<'get-debts'>> = {
  async run({ blobIds }, state) {
    const rows = await state.rows(blobIds.map(repairRow));
    return { debts: rows.map((row) => (row === undefined ? null : repairCodec.decode(row))) };
  },
};

export const countRepairs: QuerySpec<QueryOf<'count-debts'>, ResultOf<'count-debts'>> = {
  async run(_query, state) {
    const all = Array.from({ length: COPIES_UNKNOWN + 1 }, (_, copies) => copies);
    const names = all.flatMap((copies) => [COUNTER.debts(copies), COUNTER.debtChunks(copies)]);
    const counts = await state.counters(names);
    const debts = all.map((copies) => ({
      copies,
      blobCount: counts[2 * copies] ?? 0,
      chunkCount: counts[2 * copies + 1] ?? 0,
    }));
    return { debts: debts.filter(({ blobCount }) => blobCount > 0) };
  },
};

export const getAudit: QuerySpec<QueryOf<'get-audit'>, ResultOf<'get-audit'>> = {
  async run(_query, state) {
    const [row] = await state.rows([AUDIT_ROW]);
    return { audit: row === undefined ? null : auditCodec.decode(row) };
  },
};

/** Of the rows from one blob on: those whose data is in chunks, and lives. */
export const listBlobs: QuerySpec<QueryOf<'list-blobs'>, ResultOf<'list-blobs'>> = {
  async run({ after, limit }, state) {
    const gte = behind(after && fromHex(after));
    const rows = await state.range({ table: TABLES.blobs, gte, lt: TABLE_END, limit });
    const blobs = rows.flatMap(({ key, value }) => {
      const { kind, storage, sizeBytes, chunkSizeBytes, condemnedAtMs } = blobCodec.decode(value);
      if (kind !== 'data' || storage !== 'chunks' || condemnedAtMs !== undefined) return [];
      return [{ blobId: toHex(key) as BlobId, sizeBytes, chunkSizeBytes }];
    });
    const last = rows.length < limit ? undefined : rows.at(-1);
    return { blobs, ...(last && { next: toHex(last.key) as BlobId }) };
  },
};
