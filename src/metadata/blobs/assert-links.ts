// R23, A16, in the blobs' home: another shard says what it holds of it. A history that began with what one replica had left
// may have forgotten the links, and the blobs themselves: both are made anew. Links begin as pending ones: that the shard
// held them when it told says nothing of now, because what it has released since may have been ended here already (R29),
// and nobody would end it again. Only what it says when it is asked behind this entry is about what is pending here.
import { assert } from '../../base/assert.ts';
import type { AskedClaim, HeldClaim } from '../../ports/metadata/blobs.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DecideContext, RowPut, View } from '../../ports/state-machine.ts';
import { COPIES_UNKNOWN, wholeRange } from '../../types/debts.ts';
import { homeShardOf } from '../../types/names.ts';
import {
  type BlobRecord,
  blobCodec,
  type HistoryRecord,
  historyCodec,
  linkCodec,
} from '../../types/records/rows.ts';
import { chunkCount, isLaidWithin, layoutOf } from '../../types/version.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { blobRow, condemnedRow, HISTORY_ROW, linkRow, put, remove } from '../schema/keyspace.ts';
import { changeDebt, findAudit, findDebt, joinChanges, NO_CHANGE, type RowChange } from './debts.ts';
import { findHistory } from './history.ts';
import { newNonce, pendingLinkPuts } from './links.ts';

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
      findDebt(blobId, view);
      view.row(linkRow(blobId, linkId));
    }
  },

  decide({ shard: holder, claims }, view, context) {
    const { shard } = context;
    assert(holder !== shard, 'a shard knows its own links');
    const history = findHistory(view);
    const mayMake = history !== undefined && history.confirmedAtMs === undefined;
    const missing = claims.filter(({ blobId, linkId }) => view.row(linkRow(blobId, linkId)) === undefined);
    const told = missing.map((claim) => {
      assert(homeShardOf(claim.blobId) === shard, 'links are asserted in the home');
      return { claim, blob: standing(claim, view, mayMake) };
    });
    const held = told.filter(({ blob }) => blob !== undefined);
    const made = held.filter(({ blob }) => blob?.isMade);
    const freed = held.filter(({ blob }) => blob?.wasCondemned);
    const link = { shard: holder, nonce: newNonce(context) };
    const unseen = new Map([...made, ...freed].map(({ claim }) => [claim.blobId, claim])).values();
    const owed = joinChanges([...unseen].map((claim) => lookLater(claim, view, context)));
    return {
      outcome: {
        kind: 'asserted',
        gone: told.flatMap(({ claim, blob }) => (blob === undefined ? [claim.blobId] : [])),
        pending: [
          ...held.map(({ claim: { blobId, linkId } }) => ({ blobId, linkId, nonce: link.nonce })),
          ...claims.flatMap((claim) => pendingOf(claim, { holder, view })),
        ],
      },
      puts: [
        ...held.flatMap(({ claim, blob }) => [...(blob?.puts ?? []), ...pendingLinkPuts(claim, link)]),
        ...(history !== undefined && held.length > 0 ? [countPut(history, held.length, made.length)] : []),
        ...owed.puts,
      ],
      counters: [
        ...(freed.length > 0 ? [{ name: COUNTER.condemned, delta: -freed.length }] : []),
        ...owed.counters,
      ],
    };
  },
});

/**
 * Where its chunks are was known to the blob's row alone, or to the look at all that passed it by (R39); what was owed of
 * it was forgotten as it was condemned.
 */
function lookLater({ blobId, layout }: HeldClaim, view: View, context: DecideContext): RowChange {
  if (layout.kind !== 'data' || layout.storage !== 'chunks') return NO_CHANGE;
  const mapVersion = findAudit(view)?.mapVersion ?? 0;
  const after = { copies: COPIES_UNKNOWN, ranges: wholeRange(chunkCount(layout)), mapVersion };
  return changeDebt(blobId, { before: findDebt(blobId, view), after }, context);
}

interface Standing {
  puts: RowPut[];
  isMade: boolean;
  wasCondemned: boolean;
}

/** The rows by which the blob is live and known to be shared; undefined: it is gone, and that was no loss. */
function standing({ blobId, layout }: HeldClaim, view: View, mayMake: boolean): Standing | undefined {
  const row = view.row(blobRow(blobId));
  if (row === undefined) {
    if (!mayMake) return undefined;
    const blob: BlobRecord = { ...layout, isShared: true, ...(layout.grown && { isClosed: true }) };
    return { puts: [put(blobRow(blobId), blobCodec.encode(blob))], isMade: true, wasCondemned: false };
  }
  const { condemnedAtMs, ...blob } = blobCodec.decode(row);
  // What was condemned at the end of a log that others did not follow: nothing of it has been freed.
  if (condemnedAtMs !== undefined && !mayMake) return undefined;
  // Made anew from what one shard told, while another one knows more of it.
  const isWider = mayMake && blob.isClosed && !isLaidWithin(layout, blob) && isLaidWithin(blob, layout);
  const known = { ...blob, ...(isWider && layoutOf(layout)), isShared: true as const };
  const puts = [put(blobRow(blobId), blobCodec.encode(known))];
  if (condemnedAtMs !== undefined) puts.push(remove(condemnedRow(condemnedAtMs, blobId)));
  return { puts, isMade: false, wasCondemned: condemnedAtMs !== undefined };
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
