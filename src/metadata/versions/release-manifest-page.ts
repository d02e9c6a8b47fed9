// Ends the links of a paged manifest that is marked for deletion, a page at a time, so that no entry grows with the object.
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { manifestPageCodec } from '../../types/records/rows.ts';
import { endLinks, isLive } from '../blobs/links.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { blobRow, manifestPageRange, manifestPageRow, remove } from '../schema/keyspace.ts';

type Command = CommandOf<'release-manifest-page'>;

export const releaseManifestPage = defineCommand<Command, OutcomeOf<'release-manifest-page'>>({
  locks: ({ manifestId }) => [exclusive(LOCK.blob(manifestId))],

  look({ manifestId, page }, view) {
    view.row(blobRow(manifestId));
    view.row(manifestPageRow(manifestId, page));
    view.range(manifestPageRange(manifestId, page + 1, 1));
  },

  decide({ manifestId, page }, view, { nowMs }) {
    assert(!isLive(manifestId, view), 'a manifest is condemned before its pages are released');
    const isLast = view.range(manifestPageRange(manifestId, page + 1, 1)).length === 0;
    const address = manifestPageRow(manifestId, page);
    const row = view.row(address);
    const puts =
      row === undefined ? [] : [remove(address), ...endLinks(manifestPageCodec.decode(row).uses, nowMs)];
    return { outcome: { kind: 'released', isLast }, puts };
  },
});
