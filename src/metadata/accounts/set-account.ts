// Changes an account's state, its limit of buckets, or whether it may share with everybody. Buckets above a lowered limit stay.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type AccountRecord, accountCodec, mayBePublic } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accountRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findAccount } from './accounts.ts';
import { allChanges, lookAtChanges, noteChange } from './identity-changes.ts';

export const setAccount = defineCommand<CommandOf<'set-account'>, OutcomeOf<'set-account'>>({
  locks: ({ accountId }) => [exclusive(LOCK.account(accountId)), exclusive(LOCK.identities)],

  look({ accountId }, view) {
    findAccount(view, accountId);
    lookAtChanges(view);
  },

  decide({ accountId, changes }, view, { random }) {
    const before = findAccount(view, accountId);
    const isRevoked = takesAway(changes, before);
    if (before === undefined) return refuse({ kind: 'no-such-account', ...(isRevoked && allChanges(view)) });
    const account = { ...before, ...changes };
    const change = noteChange(view, { accountId, random });
    return {
      outcome: { kind: 'changed', account, ...(isRevoked && { revokedSeq: change.seq }) },
      puts: [put(accountRow(accountId), accountCodec.encode(account)), ...change.puts],
    };
  },
});

/** Also where it is so already: who takes it away again hears it no sooner than who did. */
function takesAway(changes: CommandOf<'set-account'>['changes'], before: AccountRecord | undefined): boolean {
  if (changes.state === 'suspended' || changes.mayBePublic === false) return true;
  const isSaid = changes.state !== undefined || changes.mayBePublic !== undefined;
  return isSaid && before !== undefined && !mayBePublic({ ...before, ...changes });
}
