// R39: what a repair has found or made whole is owed no more. A debt that was noted again since it was listed stays: the
// repair may have looked before what was noted happened.
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { changeDebt, findDebt, joinChanges } from './debts.ts';

export const settleDebts = defineCommand<CommandOf<'settle-debts'>, OutcomeOf<'settle-debts'>>({
  locks: ({ debts }) => debts.map(({ blobId }) => exclusive(LOCK.blob(blobId))),

  look({ debts }, view) {
    for (const { blobId } of debts) findDebt(blobId, view);
  },

  decide({ debts, mapVersion }, view, context) {
    assert(new Set(debts.map(({ blobId }) => blobId)).size === debts.length, 'a debt is settled once');
    const changes = debts.flatMap(({ blobId, mark, left }) => {
      const before = findDebt(blobId, view);
      // R38: who owns a chunk by a map that is over says nothing of what is owed by a newer one.
      if (before?.mark !== mark || before.mapVersion > mapVersion) return [];
      return [changeDebt(blobId, { before, after: left }, context)];
    });
    return { outcome: { kind: 'settled', count: changes.length }, ...joinChanges(changes) };
  },
});
