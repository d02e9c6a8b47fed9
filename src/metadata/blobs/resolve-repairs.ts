// R39: removes repair entries that were found or made whole. An entry that was recorded again since it was listed stays:
// the repair may have looked before.
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { BlobId } from '../../types/names.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { changeRepair, findRepair, joinChanges } from './repair-entries.ts';

export const resolveRepairs = defineCommand<CommandOf<'settle-debts'>, OutcomeOf<'settle-debts'>>({
  locks: ({ debts }) => debts.map(({ blobId }) => exclusive(LOCK.blob(blobId))),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ debts }, view) {
    for (const { blobId } of debts) findRepair(blobId, view);
  },

  decide({ debts, mapVersion }, view, context) {
    assert(new Set(debts.map(({ blobId }) => blobId)).size === debts.length, 'a debt is settled once');
    const isBusy = (blobId: BlobId) => context.left.has(LOCK.blob(blobId));
    const busy = debts.flatMap(({ blobId }) => (isBusy(blobId) ? [blobId] : []));
    const changes = debts.flatMap(({ blobId, mark, left }) => {
      if (isBusy(blobId)) return [];
      const before = findRepair(blobId, view);
      // R38: an outdated map of owners does not resolve entries of a newer one.
      if (before?.mark !== mark || before.mapVersion > mapVersion) return [];
      return [changeRepair(blobId, { before, after: left }, context)];
    });
    return {
      outcome: { kind: 'settled', count: changes.length, ...(busy.length > 0 && { left: busy }) },
      ...joinChanges(changes),
    };
  },
});
