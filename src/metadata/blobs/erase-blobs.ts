// R31, when nothing of the blobs is left on storage nodes: their rows go. Ids that are gone already are done.
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowPut, View } from '../../ports/state-machine.ts';
import type { BlobId } from '../../types/names.ts';
import { type BlobRecord, blobCodec } from '../../types/records/rows.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { blobRow, bodyRow, deletionRow, HISTORY_ROW, manifestPageRange, remove } from '../schema/keyspace.ts';
import { pieceRow } from '../versions/piece-rows.ts';
import { refuse } from '../versions/write-version.ts';
import { isUnconfirmed } from './history.ts';
import { endRepair, findRepair, joinChanges } from './repair-entries.ts';

export const eraseBlobs = defineCommand<CommandOf<'erase-blobs'>, OutcomeOf<'erase-blobs'>>({
  locks: ({ blobIds }) => blobIds.map((blobId) => exclusive(LOCK.blob(blobId))),

  look({ blobIds }, view) {
    view.row(HISTORY_ROW);
    for (const blobId of blobIds) {
      const blob = findBlob(blobId, view);
      findRepair(blobId, view);
      if (blob?.kind === 'manifest') view.range(manifestPageRange(blobId, 0, 1));
    }
  },

  decide({ blobIds }, view, context) {
    if (isUnconfirmed(view)) return refuse({ kind: 'unconfirmed' });
    const found = blobIds.flatMap((blobId) => {
      const blob = findBlob(blobId, view);
      return blob === undefined ? [] : [{ blobId, blob }];
    });
    const delta = -found.length;
    // Marked for deletion by an earlier version of this program, which left their repair entries.
    const repairs = joinChanges(found.map(({ blobId }) => endRepair(blobId, view, context)));
    return {
      outcome: { kind: 'erased' },
      puts: [...found.flatMap(({ blobId, blob }) => erase(blobId, blob, view)), ...repairs.puts],
      counters: delta === 0 ? [] : [{ name: COUNTER.condemned, delta }, ...repairs.counters],
    };
  },
});

function findBlob(blobId: BlobId, view: View): BlobRecord | undefined {
  const row = view.row(blobRow(blobId));
  return row && blobCodec.decode(row);
}

function erase(blobId: BlobId, { kind, storage, grown, condemnedAtMs }: BlobRecord, view: View): RowPut[] {
  assert(condemnedAtMs !== undefined, 'only what is condemned is erased');
  const puts = [remove(blobRow(blobId)), remove(deletionRow(condemnedAtMs, blobId))];
  if (kind === 'manifest') {
    const pagesLeft = view.range(manifestPageRange(blobId, 0, 1)).length;
    assert(pagesLeft === 0, 'the pages of a manifest are released before it is erased');
  } else if (storage === 'inline') {
    puts.push(remove(bodyRow(blobId)));
  } else {
    for (let index = 0; index < (grown?.pieceCount ?? 0); index++) puts.push(remove(pieceRow(blobId, index)));
  }
  return puts;
}
