// Deletes an account that owns no bucket, with its access keys.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowPut, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import type { CustomerRecord } from '../../types/records/tenancy-records.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import {
  accessKeyRow,
  accountAccessKeyRow,
  accountQuotaRow,
  accountRow,
  keyUseRow,
  remove,
} from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { listAccessKeys } from './access-keys.ts';
import { findAccount, indexRows } from './accounts.ts';
import { allChanges, lookAtChanges, noteChange } from './identity-changes.ts';
import { findCustomer, lookAtTenancy, writeTenancy } from './tenancy.ts';

export const deleteAccount = defineCommand<CommandOf<'delete-account'>, OutcomeOf<'delete-account'>>({
  locks: ({ accountId }) => [
    exclusive(LOCK.accounts),
    exclusive(LOCK.account(accountId)),
    exclusive(LOCK.identities),
    exclusive(LOCK.tenancy),
  ],

  look({ accountId }, view) {
    findAccount(view, accountId);
    listAccessKeys(view, accountId);
    lookAtChanges(view);
    findCustomer(view, accountId);
    lookAtTenancy(view);
  },

  decide({ accountId }, view, { nowMs, random }) {
    const account = findAccount(view, accountId);
    if (account === undefined) return refuse({ kind: 'no-such-account', ...allChanges(view) });
    if (account.isRoot) return refuse({ kind: 'is-root' });
    if (account.bucketCount > 0) return refuse({ kind: 'owns-buckets' });
    const accessKeys = listAccessKeys(view, accountId);
    const change = noteChange(view, { accountId, random });
    return {
      outcome: { kind: 'deleted', revokedSeq: change.seq },
      puts: [
        remove(accountRow(accountId)),
        remove(accountQuotaRow(accountId)),
        ...Object.values(indexRows(account)).map(remove),
        ...accessKeys.map((accessKey) => remove(accessKeyRow(accessKey))),
        ...accessKeys.map((accessKey) => remove(accountAccessKeyRow(accountId, accessKey))),
        ...accessKeys.map((accessKey) => remove(keyUseRow(accessKey))),
        ...change.puts,
        ...customerPuts(view, accountId, nowMs),
      ],
    };
  },
});

/** A sub-account stays as deleted: its invoices are to be written. */
function customerPuts(view: View, accountId: AccountId, nowMs: number): RowPut[] {
  const before = findCustomer(view, accountId);
  if (before === undefined) return [];
  const history: CustomerRecord['history'] = [...before.history, { state: 'deleted', fromMs: nowMs }];
  const record: CustomerRecord = { ...before, state: 'deleted', deletedAtMs: nowMs, history };
  return writeTenancy(view, { replace: [record] }, nowMs).puts;
}
