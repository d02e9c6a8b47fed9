// Deletes an account that owns no bucket, with its access keys.
import { fromUtf8 } from '../../lib/bytes.ts';
import type { AccountId } from '../../model/names.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import type { RangeAddress } from '../../ports/state-machine.ts';
import { findAccount, indexRows } from '../accounts.ts';
import { defineCommand, exclusive, LOCK } from '../define-command.ts';
import { allChanges, lookAtChanges, noteChange } from '../identity-changes.ts';
import { accessKeyRow, accountAccessKeyRow, accountRow, prefixRange, remove, TABLES } from '../keyspace.ts';
import { refuse } from '../write-version.ts';

/** More access keys than any account is let have. */
const ACCESS_KEYS_MAX = 1000;

export const deleteAccount = defineCommand<CommandOf<'delete-account'>, OutcomeOf<'delete-account'>>({
  locks: ({ accountId }) => [
    exclusive(LOCK.accounts),
    exclusive(LOCK.account(accountId)),
    exclusive(LOCK.identities),
  ],

  look({ accountId }, view) {
    findAccount(view, accountId);
    view.range(accessKeyRange(accountId));
    lookAtChanges(view);
  },

  decide({ accountId }, view, { random }) {
    const account = findAccount(view, accountId);
    if (account === undefined) return refuse({ kind: 'no-such-account', ...allChanges(view) });
    if (account.isRoot) return refuse({ kind: 'is-root' });
    if (account.bucketCount > 0) return refuse({ kind: 'owns-buckets' });
    const listRows = view.range(accessKeyRange(accountId));
    const accessKeys = listRows.map((row) => fromUtf8(row.key.subarray(6)));
    const change = noteChange(view, { accountId, random });
    return {
      outcome: { kind: 'deleted', revokedSeq: change.seq },
      puts: [
        remove(accountRow(accountId)),
        ...Object.values(indexRows(account)).map(remove),
        ...accessKeys.map((accessKey) => remove(accessKeyRow(accessKey))),
        ...accessKeys.map((accessKey) => remove(accountAccessKeyRow(accountId, accessKey))),
        ...change.puts,
      ],
    };
  },
});

function accessKeyRange(accountId: AccountId): RangeAddress {
  const prefix = accountAccessKeyRow(accountId, '').key;
  return prefixRange({ table: TABLES.accountAccessKeys, prefix, limit: ACCESS_KEYS_MAX });
}
