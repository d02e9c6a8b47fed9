// What waits in a shard for background work, in the order of time (B11: from where the last look ended).
import { toHex } from '../base/bytes/bytes.ts';
import type { QueryOf, ResultOf } from '../ports/metadata/port.ts';
import type { QuerySpec } from '../ports/state-machine.ts';
import type { BlobId, LinkId, OutboxId, UploadId } from '../types/names.ts';
import { blobCodec, foreignCodec, linkCodec, outboxCodec } from '../types/records/rows.ts';
import { isUnconfirmedRow } from './blobs/history.ts';
import { COUNTER } from './schema/counters.ts';
import { END_OF_TIME_MS, readU48 } from './schema/key-parts.ts';
import {
  blobRow,
  deletionRow,
  endedLinkRow,
  endedUploadRow,
  foreignRow,
  HISTORY_ROW,
  linkRow,
  outboxRow,
  pendingClaimRow,
  TABLES,
  timeRange,
} from './schema/keyspace.ts';

export const listOutbox: QuerySpec<QueryOf<'list-outbox'>, ResultOf<'list-outbox'>> = {
  async run({ fromMs, after: id, limit }, state) {
    const after = id && outboxRow(id);
    const range = timeRange({ table: TABLES.outbox, fromMs, after, toMs: END_OF_TIME_MS, limit });
    const items = (await state.range(range)).map(({ key, value }) => ({
      id: toHex(key) as OutboxId,
      createdAtMs: readU48(key),
      record: outboxCodec.decode(value),
    }));
    return { items };
  },
};

export const listEndedLinks: QuerySpec<QueryOf<'list-ended-links'>, ResultOf<'list-ended-links'>> = {
  async run({ fromMs, after: link, limit }, state) {
    const after = link && endedLinkRow(link.endedAtMs, link.blobId, link.linkId);
    const range = timeRange({ table: TABLES.endedLinks, fromMs, after, toMs: END_OF_TIME_MS, limit });
    const ended = (await state.range(range)).map(({ key }) => ({
      endedAtMs: readU48(key),
      blobId: toHex(key.subarray(6, 22)) as BlobId,
      linkId: toHex(key.subarray(22, 38)) as LinkId,
    }));
    return { ended };
  },
};

export const listEndedUploads: QuerySpec<QueryOf<'list-ended-uploads'>, ResultOf<'list-ended-uploads'>> = {
  async run({ fromMs, after: place, limit }, state) {
    const after = place && endedUploadRow(place.endedAtMs, place.uploadId);
    const range = timeRange({ table: TABLES.endedUploads, fromMs, after, toMs: END_OF_TIME_MS, limit });
    const ended = (await state.range(range)).map(({ key }) => ({
      endedAtMs: readU48(key),
      uploadId: toHex(key.subarray(6)) as UploadId,
    }));
    return { ended };
  },
};

export const listMarkedBlobs: QuerySpec<QueryOf<'list-condemned'>, ResultOf<'list-condemned'>> = {
  async run({ fromMs, after: place, olderThanMs, limit }, state, { nowMs }) {
    const [totalCount = 0] = await state.counters([COUNTER.condemned]);
    const [history] = await state.rows([HISTORY_ROW]);
    // R23: none of them may go.
    if (isUnconfirmedRow(history)) return { blobs: [], totalCount };
    const toMs = Math.max(0, nowMs - olderThanMs);
    const after = place && deletionRow(place.condemnedAtMs, place.blobId);
    const range = timeRange({ table: TABLES.condemned, fromMs, after, toMs, limit });
    const places = (await state.range(range)).map(({ key }) => ({
      condemnedAtMs: readU48(key),
      blobId: toHex(key.subarray(6)) as BlobId,
    }));
    const rows = await state.rows(places.map(({ blobId }) => blobRow(blobId)));
    const blobs = places.flatMap(({ blobId }, at) => {
      const row = rows[at];
      // Erased between the two reads.
      return row === undefined ? [] : [{ blobId, blob: blobCodec.decode(row) }];
    });
    const next = places.length < limit ? undefined : places.at(-1);
    return { blobs, totalCount, ...(next && { next }) };
  },
};

export const listPendingClaims: QuerySpec<QueryOf<'list-pending-claims'>, ResultOf<'list-pending-claims'>> = {
  async run({ fromMs, after: name, olderThanMs, limit }, state, { nowMs }) {
    const toMs = Math.max(0, nowMs - olderThanMs);
    const after = name && pendingClaimRow(name.blobId, name.linkId);
    const range = timeRange({ table: TABLES.pendingClaims, fromMs, after, toMs, limit });
    const names = (await state.range(range)).map(({ key }) => ({
      linkId: toHex(key.subarray(0, 16)) as LinkId,
      blobId: toHex(key.subarray(16)) as BlobId,
    }));
    const rows = await state.rows(names.map(({ blobId, linkId }) => linkRow(blobId, linkId)));
    const claims = names.flatMap((name, at) => {
      const row = rows[at];
      // Released between the two reads.
      if (row === undefined) return [];
      const { shard, nonce } = linkCodec.decode(row);
      return [{ ...name, shard, ...(nonce !== undefined && { nonce }) }];
    });
    const last = names.length < limit ? undefined : names.at(-1);
    return { claims, ...(last && { next: last }) };
  },
};

/** R30, in the claiming shard: a claim is held while its foreign row stands on exactly this link. */
export const resolveClaims: QuerySpec<QueryOf<'resolve-claims'>, ResultOf<'resolve-claims'>> = {
  async run({ claims }, state) {
    const rows = await state.rows(claims.map(({ blobId }) => foreignRow(blobId)));
    const held = claims.map(({ linkId }, at) => {
      const row = rows[at];
      return row !== undefined && foreignCodec.decode(row).linkId === linkId;
    });
    return { held };
  },
};

export const listCompletedUploads: QuerySpec<
  QueryOf<'list-completed-uploads'>,
  ResultOf<'list-completed-uploads'>
> = {
  async run({ fromMs, olderThanMs, limit }, state, { nowMs }) {
    const toMs = Math.max(0, nowMs - olderThanMs);
    const range = timeRange({ table: TABLES.completedTimes, fromMs, toMs, limit });
    const completed = (await state.range(range)).map(({ key }) => ({
      uploadId: toHex(key.subarray(6)) as UploadId,
      completedAtMs: readU48(key),
    }));
    return { completed };
  },
};
