// R30: what the claiming shard said of pending links. Those that were released meanwhile stay away, and one that was claimed
// again since, by a message that was sent twice, is asked about again.
import { linkCodec } from '../../model/records/rows.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import { defineCommand, exclusive, LOCK } from '../define-command.ts';
import { linkRow, pendingClaimRow, put, remove } from '../keyspace.ts';
import { endLinks } from '../links.ts';

export const settleClaims = defineCommand<CommandOf<'settle-claims'>, OutcomeOf<'settle-claims'>>({
  locks: ({ claims }) => claims.map(({ blobId }) => exclusive(LOCK.blob(blobId))),

  look({ claims }, view) {
    for (const { blobId, linkId } of claims) view.row(linkRow(blobId, linkId));
  },

  decide({ claims }, view, { nowMs }) {
    const puts = claims.flatMap(({ blobId, linkId, verdict, claimedAtMs }) => {
      const row = view.row(linkRow(blobId, linkId));
      const link = row && linkCodec.decode(row);
      if (link?.state !== 'pending') return [];
      if (claimedAtMs !== undefined && claimedAtMs !== link.claimedAtMs) return [];
      const { claimedAtMs: _, ...rest } = link;
      const settled =
        verdict === 'dropped'
          ? endLinks([{ blobId, linkId }], nowMs)
          : [put(linkRow(blobId, linkId), linkCodec.encode({ ...rest, state: 'confirmed' }))];
      return [...settled, remove(pendingClaimRow(blobId, linkId))];
    });
    return { outcome: { kind: 'settled' }, puts };
  },
});
