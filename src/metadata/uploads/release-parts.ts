// Ends parts of an upload that has ended, and their links, a bounded number at a time: no upload is too large to end.

import { isLastPage } from '../../base/row-pages.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type PartRecord, partCodec } from '../../types/records/rows.ts';
import { endLinks, type LinkName } from '../blobs/links.ts';
import { partDeltas } from '../quotas/held.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { endedUploadRow, partRange, partRow, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';

/** Rows that are read for one entry: one may have LIMITS.partSegmentsMax segments. */
const PARTS = { limit: 64, bytesMax: 512 * 1024 };
/** Ended in one entry, beyond the first part: those of a part of many pieces take some 30 ms. */
const LINKS_MAX = 1000;

export const releaseParts = defineCommand<CommandOf<'release-parts'>, OutcomeOf<'release-parts'>>({
  locks: ({ uploadId }) => [exclusive(LOCK.upload(uploadId))],

  look({ endedAtMs, uploadId }, view) {
    view.row(endedUploadRow(endedAtMs, uploadId));
    view.range(partRange({ uploadId, after: 0, ...PARTS }));
  },

  decide({ endedAtMs, uploadId }, view, { nowMs }) {
    const ended = endedUploadRow(endedAtMs, uploadId);
    if (view.row(ended) === undefined) return refuse({ kind: 'released', isLast: true });
    const rows = view.range(partRange({ uploadId, after: 0, ...PARTS }));
    const links: LinkName[] = [];
    const removed: PartRecord[] = [];
    const puts = [];
    for (const { value } of rows) {
      const part = partCodec.decode(value);
      const { partNumber, uses } = part;
      if (links.length > 0 && links.length + uses.length > LINKS_MAX) break;
      links.push(...uses);
      removed.push(part);
      puts.push(remove(partRow(uploadId, partNumber)));
    }
    const isLast = puts.length === rows.length && isLastPage(rows, PARTS);
    puts.push(...endLinks(links, nowMs));
    if (isLast) puts.push(remove(ended));
    return { outcome: { kind: 'released', isLast }, puts, counters: partDeltas({ removed }) };
  },
});
