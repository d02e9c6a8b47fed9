// R26 and R29: blobs that have lost their last link. A blob of this home is marked for deletion, for good; a claim on a
// blob of another home is released. Links may have ended in any earlier entry; this one locks the blob, so that none begins
// meanwhile.

import type { EndedLink } from '../../ports/metadata/blobs.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DecideContext, RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import type { BlobId } from '../../types/names.ts';
import { makeOutboxId } from '../../types/names.ts';
import { blobCodec, foreignCodec, type OutboxRecord, outboxCodec } from '../../types/records/rows.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import {
  blobRow,
  deletionRow,
  endedLinkRow,
  foreignRow,
  HISTORY_ROW,
  linkRange,
  outboxRow,
  PRESENT,
  put,
  remove,
} from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { isUnconfirmed } from './history.ts';
import { isLive } from './links.ts';
import { endRepair, findRepair, joinChanges } from './repair-entries.ts';

type Command = CommandOf<'condemn-blobs'>;

export const markBlobs = defineCommand<Command, OutcomeOf<'condemn-blobs'>>({
  locks: ({ ended }) => blobsOf(ended).map((blobId) => exclusive(LOCK.blob(blobId))),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look(command, view) {
    view.row(HISTORY_ROW);
    for (const link of command.ended) view.row(rowOf(link));
    for (const blobId of blobsOf(command.ended)) {
      view.row(foreignRow(blobId));
      findRepair(blobId, view);
      hasLinks(blobId, view);
    }
  },

  decide(command, view, context) {
    if (isUnconfirmed(view)) return refuse({ kind: 'unconfirmed' });
    // Only links that did end: the request of a worker alone marks nothing.
    const isLeft = ({ blobId }: EndedLink) => context.left.has(LOCK.blob(blobId));
    const left = command.ended.filter(isLeft);
    const ended = command.ended.filter((link) => !isLeft(link) && view.row(rowOf(link)) !== undefined);
    const unlinked = blobsOf(ended).filter((blobId) => !hasLinks(blobId, view));
    const marked = unlinked.filter((blobId) => isLive(blobId, view));
    const repairs = joinChanges(marked.map((blobId) => endRepair(blobId, view, context)));
    return {
      outcome: { kind: 'settled', condemnedCount: marked.length, ...(left.length > 0 && { left }) },
      puts: [
        // Exactly these rows: another link of the blob that ends meanwhile has a row of its own.
        ...ended.map((link) => remove(rowOf(link))),
        ...marked.flatMap((blobId) => markForDeletion(blobId, view, context.nowMs)),
        ...repairs.puts,
        ...unlinked.flatMap((blobId) => releaseClaim(blobId, view, context)),
      ],
      counters: [
        ...(marked.length > 0 ? [{ name: COUNTER.condemned, delta: marked.length }] : []),
        ...repairs.counters,
      ],
    };
  },
});

function rowOf({ endedAtMs, blobId, linkId }: EndedLink): RowAddress {
  return endedLinkRow(endedAtMs, blobId, linkId);
}

function blobsOf(ended: readonly EndedLink[]): BlobId[] {
  return [...new Set(ended.map(({ blobId }) => blobId))];
}

/** A blob that was never shared has lost the only link that it had: no need to search for others. */
function hasLinks(blobId: BlobId, view: View): boolean {
  const address = blobRow(blobId);
  const row = view.row(address);
  if (!view.has(address)) return true;
  if (row !== undefined && !blobCodec.decode(row).isShared) return false;
  return view.range(linkRange(blobId, 1)).length > 0;
}

function markForDeletion(blobId: BlobId, view: View, nowMs: number): RowPut[] {
  const row = view.row(blobRow(blobId));
  if (row === undefined) return [];
  // Of what goes nobody counts the bytes.
  const { foldedFrom: _ranges, ...blob } = blobCodec.decode(row);
  const marked = { ...blob, condemnedAtMs: nowMs };
  return [put(blobRow(blobId), blobCodec.encode(marked)), put(deletionRow(nowMs, blobId), PRESENT)];
}

/** The foreign row goes in the entry that orders the release: a later copy claims anew, with a new id (R29). */
function releaseClaim(blobId: BlobId, view: View, { nowMs, random }: DecideContext): RowPut[] {
  const row = view.row(foreignRow(blobId));
  if (row === undefined) return [];
  const { homeShard, linkId } = foreignCodec.decode(row);
  const release: OutboxRecord = { kind: 'release-link', homeShard, blobId, linkId };
  const id = makeOutboxId({ timeMs: nowMs, tail: random(8) });
  return [remove(foreignRow(blobId)), put(outboxRow(id), outboxCodec.encode(release))];
}
