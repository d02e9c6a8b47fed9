// R30: what the claiming shard said of pending links. Those that were released meanwhile stay away, and one that was claimed
// again since, by a message that was sent twice, is asked about again.

import type { ClaimVerdict } from '../../ports/metadata/blobs.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DecideContext, RowPut } from '../../ports/state-machine.ts';
import { type LinkRecord, linkCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { linkRow, pendingClaimRow, put, remove } from '../schema/keyspace.ts';
import { endLinks, newNonce, pendingLinkPuts } from './links.ts';

export const applyClaimVerdicts = defineCommand<CommandOf<'settle-claims'>, OutcomeOf<'settle-claims'>>({
  locks: ({ claims }) => claims.map(({ blobId }) => exclusive(LOCK.blob(blobId))),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ claims }, view) {
    for (const { blobId, linkId } of claims) view.row(linkRow(blobId, linkId));
  },

  decide({ claims }, view, context) {
    const left = claims.filter(({ blobId }) => context.left.has(LOCK.blob(blobId)));
    const puts = claims.flatMap((claim) => {
      if (left.includes(claim)) return [];
      const row = view.row(linkRow(claim.blobId, claim.linkId));
      const link = row && linkCodec.decode(row);
      return link?.state === 'pending' ? applyVerdict(claim, link, context) : [];
    });
    return { outcome: { kind: 'settled', ...(left.length > 0 && { left }) }, puts };
  },
});

/**
 * A verdict is about the pending link that its shard was asked about, and that one bears its nonce: the question came
 * after the link. So if the shard holds the claim, it gives it back only later (R29), and as long as the same pending link is
 * here that has not come yet; the confirmed one will be there for it to end. Of a link that was made anew meanwhile, by
 * a claim or an assertion that was late, nothing follows: the claim may have been given back before, and nobody would
 * end the confirmed link any more. No time would do in place of the nonce, because shard time may stand still (R19).
 *
 * A link that has no nonce (of an earlier version) cannot be told from an earlier one: the first verdict, whatever it says,
 * gives it one and settles nothing, and the next is about that.
 */
function applyVerdict(
  { blobId, linkId, verdict, nonce }: ClaimVerdict,
  link: LinkRecord,
  context: DecideContext,
): RowPut[] {
  const name = { blobId, linkId };
  const { shard, nonce: asked } = link;
  if (asked === undefined) return pendingLinkPuts(name, { shard, nonce: newNonce(context) });
  if (nonce !== asked) return [];
  const applied =
    verdict === 'dropped'
      ? endLinks([name], context.nowMs)
      : [put(linkRow(blobId, linkId), linkCodec.encode({ state: 'confirmed', shard }))];
  return [...applied, remove(pendingClaimRow(blobId, linkId))];
}
