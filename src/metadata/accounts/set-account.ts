// Changes an account's name, e-mail, state, limit of buckets, or whether it pays, or may share with everybody; the sub-account that it is
// changes in the same commit. Buckets above a lowered limit stay.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import { type AccountRecord, accountCodec, mayBePublic } from '../../types/records/rows.ts';
import type { CustomerRecord } from '../../types/records/tenancy-records.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accountEmailRow, accountNameRow, accountRow, put, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { decodeAccountId, encodeAccountId, findLiveAccount, indexRows } from './accounts.ts';
import { allChanges, lookAtChanges, noteChange } from './identity-changes.ts';
import { withState } from './state-history.ts';
import { findCustomer, lookAtTenancy, writeTenancy } from './tenancy.ts';

type Command = CommandOf<'set-account'>;

export const setAccount = defineCommand<Command, OutcomeOf<'set-account'>>({
  locks: ({ accountId }) => [
    exclusive(LOCK.accounts),
    exclusive(LOCK.account(accountId)),
    exclusive(LOCK.identities),
    exclusive(LOCK.tenancy),
  ],

  look({ accountId, changes }, view) {
    findLiveAccount(view, accountId);
    lookAtChanges(view);
    findCustomer(view, accountId);
    lookAtTenancy(view);
    for (const [, address] of newIndexRows(changes)) view.row(address);
  },

  decide({ accountId, changes, customer }, view, { nowMs, random }) {
    const before = findLiveAccount(view, accountId);
    const isRevoked = takesAway(changes, before);
    if (before === undefined) return refuse({ kind: 'no-such-account', ...(isRevoked && allChanges(view)) });
    const taken = newIndexRows(changes).find(([, address]) => isAnothers(view, address, accountId));
    if (taken !== undefined) return refuse({ kind: 'conflict', field: taken[0] });
    const customerBefore = findCustomer(view, accountId);
    if (customer !== undefined && customerBefore?.revision !== customer.ifRevision)
      return refuse({ kind: 'outdated' });
    const account = { ...before, ...changes };
    const change = noteChange(view, { accountId, random });
    return {
      outcome: { kind: 'changed', account, ...(isRevoked && { revokedSeq: change.seq }) },
      puts: [
        put(accountRow(accountId), accountCodec.encode(account)),
        ...indexPuts(before, account),
        ...customerPuts(view, { before: customerBefore, after: customer?.record, changes, account, nowMs }),
        ...change.puts,
      ],
    };
  },
});

/** Where a name or e-mail that is to be the account's is written down. */
function newIndexRows(changes: Command['changes']): ['name' | 'email', RowAddress][] {
  const { name, email } = changes;
  return [
    ...(name === undefined ? [] : [['name', accountNameRow(name)] as ['name', RowAddress]]),
    ...(email === undefined ? [] : [['email', accountEmailRow(email)] as ['email', RowAddress]]),
  ];
}

function isAnothers(view: View, address: RowAddress, accountId: AccountId): boolean {
  const holder = view.row(address);
  return holder !== undefined && decodeAccountId(holder) !== accountId;
}

function indexPuts(before: AccountRecord, after: AccountRecord): RowPut[] {
  const [old, fresh] = [indexRows(before), indexRows(after)];
  const changed = (['name', 'email'] as const).filter((field) => before[field] !== after[field]);
  // In this order: names that differ in case only have the same row.
  return [
    ...changed.map((field) => remove(old[field])),
    ...changed.map((field) => put(fresh[field], encodeAccountId(after.accountId))),
  ];
}

function customerPuts(
  view: View,
  parts: {
    before: CustomerRecord | undefined;
    after: CustomerRecord | undefined;
    changes: Command['changes'];
    account: AccountRecord;
    nowMs: number;
  },
): RowPut[] {
  const { before, account, nowMs } = parts;
  if (before === undefined) return [];
  const { name, email, state, isUnpaid = false } = account;
  const history = before.state === state ? before.history : withState(before.history, state, nowMs);
  // Who changes the account itself, and not the sub-account that it is, is an operator.
  const isHeldNow = parts.after === undefined && parts.changes.state === 'suspended';
  const { isHeld = isHeldNow, ...after } = parts.after ?? before;
  const record: CustomerRecord = {
    ...{ ...after, name, email, state, isUnpaid, history },
    ...(isHeld && state === 'suspended' && { isHeld }),
  };
  return writeTenancy(view, { replace: [record] }, nowMs).puts;
}

/** Also where it is so already: who takes it away again hears it no sooner than who did. */
function takesAway(changes: CommandOf<'set-account'>['changes'], before: AccountRecord | undefined): boolean {
  const { state, mayBePublic: mayShare, isUnpaid } = changes;
  if (state === 'suspended' || mayShare === false || isUnpaid === true) return true;
  const isSaid = changes.state !== undefined || changes.mayBePublic !== undefined;
  return isSaid && before !== undefined && !mayBePublic({ ...before, ...changes });
}
