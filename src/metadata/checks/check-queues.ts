// What fsck asks of blobs that no link holds, of single links, of bodies, and of what waits for its turn.
import { EMPTY_BYTES, fromHex, toHex } from '../../base/bytes/bytes.ts';
import { allRows, behind, TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateView, TableRef } from '../../ports/state-machine.ts';
import type { Pending, PendingKind } from '../../types/findings.ts';
import type { BlobId } from '../../types/names.ts';
import { decodePiece } from '../../types/records/piece-record.ts';
import { blobCodec, isLiveBlob, linkCodec } from '../../types/records/rows.ts';
import { pendingRepairs } from '../blobs/check-repairs.ts';
import { readU48 } from '../schema/key-parts.ts';
import { blobRow, foreignRow, linkRange, linkRow, TABLES } from '../schema/keyspace.ts';
import { pieceRow, readPieceKey } from '../versions/piece-rows.ts';

export const checkUnlinked: QuerySpec<QueryOf<'check-unlinked'>, ResultOf<'check-unlinked'>> = {
  async run({ blobIds }, state) {
    const view = state.view(TABLES.buckets);
    try {
      const unlinked = new Set<BlobId>();
      for (const blobId of blobIds) if (await isUnlinked(view, blobId)) unlinked.add(blobId);
      if (unlinked.size > 0) {
        for await (const { key } of allRows(view, TABLES.endedLinks)) {
          unlinked.delete(toHex(key.subarray(6, 22)) as BlobId);
        }
      }
      return { blobIds: [...unlinked] };
    } finally {
      view.close();
    }
  },
};

async function isUnlinked(view: StateView, blobId: BlobId): Promise<boolean> {
  const [row, foreign] = await view.rows([blobRow(blobId), foreignRow(blobId)]);
  const isLive = isLiveBlob(row && blobCodec.decode(row));
  if (!isLive && foreign === undefined) return false;
  return (await view.range(linkRange(blobId, 1))).length === 0;
}

export const getLinks: QuerySpec<QueryOf<'get-links'>, ResultOf<'get-links'>> = {
  async run({ links }, state) {
    const rows = await state.rows(links.map(({ blobId, linkId }) => linkRow(blobId, linkId)));
    return { links: rows.map((row) => (row === undefined ? null : linkCodec.decode(row))) };
  },
};

export const listBodies: QuerySpec<QueryOf<'list-bodies'>, ResultOf<'list-bodies'>> = {
  async run({ after, limit, withSizes }, state) {
    const gte = behind(after && fromHex(after));
    const range = { table: TABLES.bodies, gte, lt: TABLE_END, limit, keysOnly: !withSizes };
    const bodies = (await state.range(range)).map(({ key, value }) => ({
      blobId: toHex(key) as BlobId,
      ...(withSizes && { sizeBytes: value.length }),
    }));
    return { bodies };
  },
};

export const listPieces: QuerySpec<QueryOf<'list-pieces'>, ResultOf<'list-pieces'>> = {
  async run({ from, limit }, state) {
    const gte = from === undefined ? EMPTY_BYTES : pieceRow(from.blobId, from.index).key;
    const rows = await state.range({ table: TABLES.pieces, gte, lt: TABLE_END, limit, keysOnly: true });
    return { pieces: rows.map(({ key }) => readPieceKey(key)) };
  },
};

function pieceIdOf(row: Uint8Array): BlobId | 'broken' {
  try {
    return decodePiece(row).pieceId;
  } catch {
    return 'broken';
  }
}

export const getPieceIds: QuerySpec<QueryOf<'get-piece-ids'>, ResultOf<'get-piece-ids'>> = {
  async run({ pieces }, state) {
    const rows = await state.rows(pieces.map(({ blobId, index }) => pieceRow(blobId, index)));
    return { pieceIds: rows.map((row) => (row === undefined ? null : pieceIdOf(row))) };
  },
};

/** Each with time at the start of its keys. */
const QUEUES: Readonly<Partial<Record<PendingKind, TableRef>>> = {
  'ended-link': TABLES.endedLinks,
  'ended-upload': TABLES.endedUploads,
  'condemned-blob': TABLES.condemned,
  'pending-claim': TABLES.pendingClaims,
  outbox: TABLES.outbox,
};

export const countPending: QuerySpec<QueryOf<'count-pending'>, ResultOf<'count-pending'>> = {
  async run(_query, state) {
    const view = state.view(TABLES.buckets);
    const pending: Pending[] = [];
    try {
      for (const [kind, table] of Object.entries(QUEUES) as [PendingKind, TableRef][]) {
        let count = 0;
        let oldestAtMs = 0;
        for await (const { key } of allRows(view, table)) if (count++ === 0) oldestAtMs = readU48(key);
        if (count > 0) pending.push({ kind, count, oldestAtMs });
      }
      const repairs = await pendingRepairs(view);
      if (repairs !== undefined) pending.push(repairs);
      return { pending };
    } finally {
      view.close();
    }
  },
};
