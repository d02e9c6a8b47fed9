// R27, in the blobs' home: another shard claims them before it commits a version of theirs. All or none.

import { assert, must } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BlobId, homeShardOf, idTimeMs } from '../../types/names.ts';
import { type BlobRecord, blobCodec, type ForeignRecord } from '../../types/records/rows.ts';
import { layoutOf } from '../../types/version.ts';
import { defineCommand, LOCK, shared } from '../schema/define-command.ts';
import { blobRow, HISTORY_ROW, linkRow } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findHistory } from './history.ts';
import { isLive, newNonce, pendingLinkPuts, sharePuts } from './links.ts';

export const claimLinks = defineCommand<CommandOf<'claim-links'>, OutcomeOf<'claim-links'>>({
  locks: ({ blobIds }) => blobIds.map((blobId) => shared(LOCK.blob(blobId))),

  look({ blobIds, linkId }, view) {
    view.row(HISTORY_ROW);
    for (const blobId of blobIds) {
      view.row(blobRow(blobId));
      view.row(linkRow(blobId, linkId));
    }
  },

  decide({ shard: claimingShard, linkId, blobIds }, view, context) {
    const { nowMs, shard } = context;
    assert(claimingShard !== shard, 'a shard does not claim from itself');
    // No commit could use it (R28), and who resolves claims looks no further back.
    if (nowMs - idTimeMs(linkId) > LIMITS.linkIdAgeMaxMs) return refuse({ kind: 'gone', blobIds });
    const gone = blobIds.filter((blobId) => !isLive(blobId, view));
    if (gone.length > 0) return refuse({ kind: 'gone', blobIds: gone });
    const history = findHistory(view);
    const incarnation = history && { incarnation: history.incarnation };
    const layouts = blobIds.map((blobId): ForeignRecord => {
      assert(homeShardOf(blobId) === shard, 'a claim is made at the home');
      return { homeShard: shard, linkId, ...incarnation, layout: shapeOf(blobId, view) };
    });
    // A claim that arrives twice must not fall back to pending once it is confirmed.
    const fresh = blobIds.filter((blobId) => view.row(linkRow(blobId, linkId)) === undefined);
    const pending = { shard: claimingShard, nonce: newNonce(context) };
    const puts = fresh.flatMap((blobId) => pendingLinkPuts({ blobId, linkId }, pending));
    const noted = sharePuts(
      fresh.map((blobId) => ({ blobId })),
      view,
    );
    return { outcome: { kind: 'claimed', layouts }, puts: [...puts, ...noted] };
  },
});

function shapeOf(blobId: BlobId, view: View): ForeignRecord['layout'] {
  const row = must(view.row(blobRow(blobId)), 'a live blob has its row');
  const blob: BlobRecord = blobCodec.decode(row);
  return { kind: blob.kind, ...layoutOf(blob) };
}
