// R30: what the claiming shard said of pending links. Those that were released meanwhile stay away.
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
    const puts = claims.flatMap(({ blobId, linkId, verdict }) => {
      const row = view.row(linkRow(blobId, linkId));
      const link = row && linkCodec.decode(row);
      if (link?.state !== 'pending') return [];
      const settled =
        verdict === 'dropped'
          ? endLinks([{ blobId, linkId }], nowMs)
          : [put(linkRow(blobId, linkId), linkCodec.encode({ ...link, state: 'confirmed' }))];
      return [...settled, remove(pendingClaimRow(blobId, linkId))];
    });
    return { outcome: { kind: 'settled' }, puts };
  },
});
