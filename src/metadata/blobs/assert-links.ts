// R23, A16, in the blobs' home: another shard reports which link claims it holds. A history that began from one replica may
// have lost the links, and the blobs themselves: both are made again. Links begin as pending: the report may be old, and
// what the shard has released since may have been ended here already (R29), so that nobody would end it again. Only what
// the shard answers when it is asked after this entry resolves them.
import { assert } from '../../base/assert.ts';
import type { AskedClaim, HeldClaim } from '../../ports/metadata/blobs.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DecideContext, RowPut, View } from '../../ports/state-machine.ts';
import { homeShardOf } from '../../types/names.ts';
import {
  type BlobRecord,
  blobCodec,
  type HistoryRecord,
  historyCodec,
  linkCodec,
} from '../../types/records/rows.ts';
import { COPIES_UNKNOWN, wholeRange } from '../../types/repair-entries.ts';
import { chunkCount, isLaidWithin, layoutOf } from '../../types/version.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { blobRow, deletionRow, HISTORY_ROW, linkRow, put, remove } from '../schema/keyspace.ts';
import { findHistory } from './history.ts';
import { newNonce, pendingLinkPuts } from './links.ts';
import {
  changeRepair,
  findAudit,
  findRepair,
  joinChanges,
  NO_CHANGE,
  type RowChange,
} from './repair-entries.ts';

type Command = CommandOf<'assert-links'>;

export const assertLinks = defineCommand<Command, OutcomeOf<'assert-links'>>({
  locks: ({ claims }) => [
    exclusive(LOCK.history),
    shared(LOCK.audit),
    ...claims.map(({ blobId }) => exclusive(LOCK.blob(blobId))),
  ],

  look({ claims }, view) {
    view.row(HISTORY_ROW);
    findAudit(view);
    for (const { blobId, linkId } of claims) {
      view.row(blobRow(blobId));
      findRepair(blobId, view);
      view.row(linkRow(blobId, linkId));
    }
  },

  decide({ shard: holder, claims }, view, context) {
    const { shard } = context;
    assert(holder !== shard, 'a shard knows its own links');
    const history = findHistory(view);
    const mayMake = history !== undefined && history.confirmedAtMs === undefined;
    const missing = claims.filter(({ blobId, linkId }) => view.row(linkRow(blobId, linkId)) === undefined);
    const checked = missing.map((claim) => {
      assert(homeShardOf(claim.blobId) === shard, 'links are asserted in the home');
      return { claim, blob: standing(claim, view, mayMake) };
    });
    const held = checked.filter(({ blob }) => blob !== undefined);
    const made = held.filter(({ blob }) => blob?.isMade);
    const freed = held.filter(({ blob }) => blob?.wasMarked);
    const link = { shard: holder, nonce: newNonce(context) };
    const unseen = new Map([...made, ...freed].map(({ claim }) => [claim.blobId, claim])).values();
    const repairs = joinChanges([...unseen].map((claim) => lookLater(claim, view, context)));
    return {
      outcome: {
        kind: 'asserted',
        gone: checked.flatMap(({ claim, blob }) => (blob === undefined ? [claim.blobId] : [])),
        pending: [
          ...held.map(({ claim: { blobId, linkId } }) => ({ blobId, linkId, nonce: link.nonce })),
          ...claims.flatMap((claim) => pendingOf(claim, { holder, view })),
        ],
      },
      puts: [
        ...held.flatMap(({ claim, blob }) => [...(blob?.puts ?? []), ...pendingLinkPuts(claim, link)]),
        ...(history !== undefined && held.length > 0 ? [countPut(history, held.length, made.length)] : []),
        ...repairs.puts,
      ],
      counters: [
        ...(freed.length > 0 ? [{ name: COUNTER.condemned, delta: -freed.length }] : []),
        ...repairs.counters,
      ],
    };
  },
});

/**
 * The places of its chunks were known only to its row, or to an audit that had passed it (R39); its repair entry was
 * deleted when it was marked for deletion.
 */
function lookLater({ blobId, layout }: HeldClaim, view: View, context: DecideContext): RowChange {
  if (layout.kind !== 'data' || layout.storage !== 'chunks') return NO_CHANGE;
  const mapVersion = findAudit(view)?.mapVersion ?? 0;
  const after = { copies: COPIES_UNKNOWN, ranges: wholeRange(chunkCount(layout)), mapVersion };
  return changeRepair(blobId, { before: findRepair(blobId, view), after }, context);
}

interface Standing {
  puts: RowPut[];
  isMade: boolean;
  wasMarked: boolean;
}

/** The rows by which the blob is live and known to be shared; undefined: it is gone, and that was no loss. */
function standing({ blobId, layout }: HeldClaim, view: View, mayMake: boolean): Standing | undefined {
  const row = view.row(blobRow(blobId));
  if (row === undefined) {
    if (!mayMake) return undefined;
    const blob: BlobRecord = { ...layout, isShared: true, ...(layout.grown && { isClosed: true }) };
    return { puts: [put(blobRow(blobId), blobCodec.encode(blob))], isMade: true, wasMarked: false };
  }
  const { condemnedAtMs, ...blob } = blobCodec.decode(row);
  // It was marked for deletion at the end of a log that others did not follow: nothing of it has been erased.
  if (condemnedAtMs !== undefined && !mayMake) return undefined;
  // Made again from the report of one shard, while another one knows more of it.
  const isWider = mayMake && blob.isClosed && !isLaidWithin(layout, blob) && isLaidWithin(blob, layout);
  const known = { ...blob, ...(isWider && layoutOf(layout)), isShared: true as const };
  const puts = [put(blobRow(blobId), blobCodec.encode(known))];
  if (condemnedAtMs !== undefined) puts.push(remove(deletionRow(condemnedAtMs, blobId)));
  return { puts, isMade: false, wasMarked: condemnedAtMs !== undefined };
}

/** What stood here as pending already. Without a nonce it is left to the resolver, which gives it one. */
function pendingOf(
  { blobId, linkId }: HeldClaim,
  { holder, view }: { holder: number; view: View },
): AskedClaim[] {
  const row = view.row(linkRow(blobId, linkId));
  if (row === undefined) return [];
  const { state, shard, nonce } = linkCodec.decode(row);
  return state === 'pending' && shard === holder && nonce !== undefined ? [{ blobId, linkId, nonce }] : [];
}

function countPut(history: HistoryRecord, linkCount: number, blobCount: number): RowPut {
  return put(
    HISTORY_ROW,
    historyCodec.encode({
      ...history,
      linkCount: history.linkCount + linkCount,
      blobCount: history.blobCount + blobCount,
    }),
  );
}
