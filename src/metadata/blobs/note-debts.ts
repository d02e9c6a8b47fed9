// R39: chunks that a look at the disks did not find on just their owners, or that a disk has damaged. What is owed already
// stays owed; the mark is another one, so that a repair that looked before settles nothing of it.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type Debt, mergeDebts } from '../../types/debts.ts';
import type { BlobId } from '../../types/names.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { blobRow } from '../schema/keyspace.ts';
import { changeDebt, findDebt, joinChanges } from './debts.ts';
import { isLive } from './links.ts';

type Command = CommandOf<'note-debts'>;

export const noteDebts = defineCommand<Command, OutcomeOf<'note-debts'>>({
  locks: ({ debts }) => debts.map(({ blobId }) => exclusive(LOCK.blob(blobId))),

  look({ debts }, view) {
    for (const { blobId } of debts) {
      view.row(blobRow(blobId));
      findDebt(blobId, view);
    }
  },

  decide({ debts }, view, context) {
    const live = [...byBlob(debts)].filter(([blobId]) => isLive(blobId, view));
    const changes = live.map(([blobId, noted]) => {
      const before = findDebt(blobId, view);
      const after = before === undefined ? noted : mergeDebts(before, noted);
      return changeDebt(blobId, { before, after }, context);
    });
    return { outcome: { kind: 'noted', count: live.length }, ...joinChanges(changes) };
  },
});

function byBlob(debts: Command['debts']): Map<BlobId, Debt> {
  const merged = new Map<BlobId, Debt>();
  for (const { blobId, ...debt } of debts) {
    const known = merged.get(blobId);
    merged.set(blobId, known === undefined ? debt : mergeDebts(known, debt));
  }
  return merged;
}
