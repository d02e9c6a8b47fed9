// R29, in the blobs' home: a shard that holds no link on them any more gives its claims back. Absent ones are done.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { linkCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { linkRow, pendingClaimRow, remove } from '../schema/keyspace.ts';
import { endLinks } from './links.ts';

export const releaseLinks = defineCommand<CommandOf<'release-links'>, OutcomeOf<'release-links'>>({
  locks: ({ links }) => links.map(({ blobId }) => exclusive(LOCK.blob(blobId))),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ links }, view) {
    for (const { blobId, linkId } of links) view.row(linkRow(blobId, linkId));
  },

  decide({ links }, view, { nowMs, left: busy }) {
    const left = links.filter(({ blobId }) => busy.has(LOCK.blob(blobId)));
    const puts = links.flatMap((name) => {
      if (left.includes(name)) return [];
      const row = view.row(linkRow(name.blobId, name.linkId));
      if (row === undefined) return [];
      const isPending = linkCodec.decode(row).state === 'pending';
      const ended = endLinks([name], nowMs);
      return isPending ? [...ended, remove(pendingClaimRow(name.blobId, name.linkId))] : ended;
    });
    return { outcome: { kind: 'released', ...(left.length > 0 && { left }) }, puts };
  },
});
