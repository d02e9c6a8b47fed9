// Disables, enables or deletes an access key of an account. The root account keeps one that it can sign with.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowPut, View } from '../../ports/state-machine.ts';
import { accessKeyCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accessKeyRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findAccessKey, isSignerGone, listAccessKeys, lookAtSigner, removeAccessKey } from './access-keys.ts';
import { findAccount } from './accounts.ts';
import { allChanges, lookAtChanges, noteChange } from './identity-changes.ts';

type Command = CommandOf<'change-access-key'>;

export const changeAccessKey = defineCommand<Command, OutcomeOf<'change-access-key'>>({
  locks: ({ accountId }) => [
    exclusive(LOCK.accounts),
    exclusive(LOCK.account(accountId)),
    exclusive(LOCK.identities),
  ],

  look({ accountId, accessKey, by }, view) {
    lookAtSigner(view, by);
    findAccount(view, accountId);
    findAccessKey(view, accessKey);
    usableKeys(view, accountId);
    lookAtChanges(view);
  },

  decide({ accountId, accessKey, change, by }, view, { random }) {
    if (isSignerGone(view, by)) return refuse({ kind: 'no-such-signer' });
    const account = findAccount(view, accountId);
    const key = findAccessKey(view, accessKey);
    const takesAway = change !== 'enable';
    // A repeated revocation waits for the same change as the first (R46).
    // Keys of users are changed together with their user (identities.ts).
    if (account === undefined || key?.accountId !== accountId || key.userId !== undefined)
      return refuse({ kind: 'no-such-key', ...(takesAway && allChanges(view)) });
    const others = usableKeys(view, accountId).filter((other) => other !== accessKey);
    if (takesAway && account.isRoot && others.length === 0) return refuse({ kind: 'last-key-of-root' });
    const noted = noteChange(view, { accountId, random });
    return {
      outcome: { kind: 'changed', ...(takesAway && { revokedSeq: noted.seq }) },
      puts: [...changeRows(view, { accountId, accessKey, change }), ...noted.puts],
    };
  },
});

function usableKeys(view: View, accountId: Command['accountId']): string[] {
  return listAccessKeys(view, accountId).filter((accessKey) => {
    const key = findAccessKey(view, accessKey);
    return key !== undefined && key.isDisabled !== true;
  });
}

function changeRows(view: View, { accountId, accessKey, change }: Command): RowPut[] {
  const address = accessKeyRow(accessKey);
  if (change === 'delete') return removeAccessKey(accountId, accessKey);
  const key = findAccessKey(view, accessKey);
  if (key === undefined) return [];
  const { isDisabled: _, ...enabled } = key;
  const changed = change === 'disable' ? { ...enabled, isDisabled: true as const } : enabled;
  return [put(address, accessKeyCodec.encode(changed))];
}
