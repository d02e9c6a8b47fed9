// Deletes an account with its access keys. One that owns buckets stays, nameless and without keys, until the worker has removed
// them (remove-accounts-worker.ts), which removes its identities in any case.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowPut, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import { type AccountRecord, accountCodec } from '../../types/records/rows.ts';
import type { CustomerRecord } from '../../types/records/tenancy-records.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accountQuotaRow, accountRemovalRow, accountRow, put, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { listAccessKeys, removeAccessKey } from './access-keys.ts';
import { beginRemoval } from './account-removals.ts';
import { encodeAccountId, findAccount, indexRows } from './accounts.ts';
import { allChanges, lookAtChanges, noteChange } from './identity-changes.ts';
import { findCustomer, lookAtTenancy, writeTenancy } from './tenancy.ts';

export const deleteAccount = defineCommand<CommandOf<'delete-account'>, OutcomeOf<'delete-account'>>({
  locks: ({ accountId }) => [
    exclusive(LOCK.accounts),
    exclusive(LOCK.account(accountId)),
    exclusive(LOCK.quota(accountId)),
    exclusive(LOCK.identities),
    exclusive(LOCK.tenancy),
  ],

  look({ accountId }, view) {
    findAccount(view, accountId);
    listAccessKeys(view, accountId);
    lookAtChanges(view);
    findCustomer(view, accountId);
    lookAtTenancy(view);
    view.row(accountRemovalRow(accountId));
    view.row(indexRows(nameless(accountId)).name);
    view.row(indexRows(nameless(accountId)).email);
  },

  decide({ accountId, withBuckets, ifNotHeld }, view, { nowMs, random }) {
    const account = findAccount(view, accountId);
    if (account === undefined) return refuse({ kind: 'no-such-account', ...allChanges(view) });
    if (account.isRoot) return refuse({ kind: 'is-root' });
    if (ifNotHeld && findCustomer(view, accountId)?.isHeld) return refuse({ kind: 'is-held' });
    const ownsBuckets = account.bucketCount > 0;
    if (ownsBuckets && withBuckets !== true) return refuse({ kind: 'owns-buckets' });
    const accessKeys = listAccessKeys(view, accountId);
    const change = noteChange(view, { accountId, random });
    return {
      outcome: { kind: 'deleted', revokedSeq: change.seq },
      puts: [
        ...(ownsBuckets ? strip(view, account, nowMs) : removeAll(account)),
        ...accessKeys.flatMap((accessKey) => removeAccessKey(accountId, accessKey)),
        ...change.puts,
        ...customerPuts(view, accountId, nowMs),
        ...beginRemoval(view, accountId, nowMs),
      ],
    };
  },
});

function removeAll(account: AccountRecord): RowPut[] {
  const { accountId } = account;
  return [
    remove(accountRow(accountId)),
    remove(accountQuotaRow(accountId)),
    ...Object.values(indexRows(account)).map(remove),
  ];
}

/** What it is called until its buckets are gone: others may take its name and its e-mail address. */
function nameless(accountId: AccountId) {
  return { name: `deleted-${accountId}`, email: `${accountId}@deleted.invalid`, canonicalId: '' };
}

function strip(view: View, account: AccountRecord, nowMs: number): RowPut[] {
  const { accountId, deletedAtMs = nowMs } = account;
  const { name, email } = indexRows(nameless(accountId));
  const isFree = [name, email].every((address) => view.row(address) === undefined);
  const { canonicalId: _, ...free } = nameless(accountId);
  const left = {
    ...account,
    ...(isFree && free),
    state: 'suspended' as const,
    mayBePublic: false,
    deletedAtMs,
  };
  const row = put(accountRow(accountId), accountCodec.encode(left));
  if (!isFree) return [row];
  const before = indexRows(account);
  const id = encodeAccountId(accountId);
  return [row, remove(before.name), remove(before.email), put(name, id), put(email, id)];
}

/** A sub-account stays as deleted: its invoices are to be written. */
function customerPuts(view: View, accountId: AccountId, nowMs: number): RowPut[] {
  const before = findCustomer(view, accountId);
  if (before === undefined || before.deletedAtMs !== undefined) return [];
  const history: CustomerRecord['history'] = [...before.history, { state: 'deleted', fromMs: nowMs }];
  const record: CustomerRecord = { ...before, state: 'deleted', deletedAtMs: nowMs, history };
  return writeTenancy(view, { replace: [record] }, nowMs).puts;
}
