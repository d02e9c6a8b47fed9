// R39: records chunks that an inspection did not find on just their owners, or that a disk has damaged. What is recorded
// already stays; the entry gets a new mark, so that a repair that looked before does not resolve it.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { BlobId } from '../../types/names.ts';
import { mergeRepairs, type RepairEntry } from '../../types/repair-entries.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { blobRow } from '../schema/keyspace.ts';
import { isLive } from './links.ts';
import { changeRepair, findRepair, joinChanges } from './repair-entries.ts';

type Command = CommandOf<'note-debts'>;

export const recordRepairs = defineCommand<Command, OutcomeOf<'note-debts'>>({
  locks: ({ debts }) => debts.map(({ blobId }) => exclusive(LOCK.blob(blobId))),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ debts }, view) {
    for (const { blobId } of debts) {
      view.row(blobRow(blobId));
      findRepair(blobId, view);
    }
  },

  decide({ debts }, view, context) {
    const all = [...byBlob(debts)];
    const isLeft = (blobId: BlobId) => context.left.has(LOCK.blob(blobId));
    const left = all.flatMap(([blobId]) => (isLeft(blobId) ? [blobId] : []));
    const live = all.filter(([blobId]) => !isLeft(blobId) && isLive(blobId, view));
    const changes = live.map(([blobId, noted]) => {
      const before = findRepair(blobId, view);
      const after = before === undefined ? noted : mergeRepairs(before, noted);
      return changeRepair(blobId, { before, after }, context);
    });
    return {
      outcome: { kind: 'noted', count: live.length, ...(left.length > 0 && { left }) },
      ...joinChanges(changes),
    };
  },
});

function byBlob(debts: Command['debts']): Map<BlobId, RepairEntry> {
  const merged = new Map<BlobId, RepairEntry>();
  for (const { blobId, ...debt } of debts) {
    const known = merged.get(blobId);
    merged.set(blobId, known === undefined ? debt : mergeRepairs(known, debt));
  }
  return merged;
}
