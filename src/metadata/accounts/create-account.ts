// An account with its first access key. Everything that finds an account is one account's alone.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import {
  type IdentitySettingsRecord,
  identityCodec,
  identityKeys,
} from '../../types/records/identity-records.ts';
import {
  type AccessKeyRecord,
  type AccountRecord,
  accessKeyCodec,
  accountCodec,
} from '../../types/records/rows.ts';
import type { CustomerRecord } from '../../types/records/tenancy-records.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { u48 } from '../schema/key-parts.ts';
import {
  accessKeyRow,
  accountAccessKeyRow,
  accountCustomerRow,
  accountRow,
  identityRevisionRow,
  identityRow,
  PRESENT,
  put,
} from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { encodeAccountId, indexRows } from './accounts.ts';
import { lookAtTenancy, writeTenancy } from './tenancy.ts';

type Command = CommandOf<'create-account'>;
type Outcome = OutcomeOf<'create-account'>;
type Field = Extract<Outcome, { kind: 'conflict' }>['field'];

export const createAccount = defineCommand<Command, Outcome>({
  locks: ({ customer }) => [
    exclusive(LOCK.accounts),
    ...(customer === undefined ? [] : [exclusive(LOCK.tenancy)]),
  ],

  look(command, view) {
    for (const [, address] of uniqueRows(command)) view.row(address);
    if (command.customer !== undefined) lookAtTenancy(view);
  },

  decide(command, view, { nowMs }) {
    const conflict = uniqueRows(command).find(([, address]) => view.row(address) !== undefined);
    if (conflict !== undefined) return refuse({ kind: 'conflict', field: conflict[0] });
    const account: AccountRecord = { ...command.account, bucketCount: 0, createdAtMs: nowMs };
    const { accountId } = account;
    const accessKey: AccessKeyRecord = { ...command.accessKey, accountId, createdAtMs: nowMs };
    const id = encodeAccountId(accountId);
    const asCustomer = addCustomer(command, account, view, nowMs);
    return {
      outcome: { kind: 'created', account, ...(asCustomer && { customer: asCustomer.customer }) },
      puts: [
        put(accountRow(accountId), accountCodec.encode(account)),
        ...Object.values(indexRows(account)).map((address) => put(address, id)),
        put(accessKeyRow(accessKey.accessKey), accessKeyCodec.encode(accessKey)),
        put(accountAccessKeyRow(accountId, accessKey.accessKey), PRESENT),
        ...(asCustomer?.puts ?? []),
        ...loginPuts(command),
      ],
    };
  },
});

/** Of a new account, whose identities are at their beginning. */
function loginPuts({ account: { accountId }, rootLogin }: Command): RowPut[] {
  if (rootLogin === undefined) return [];
  const settings: IdentitySettingsRecord = { kind: 'settings', rootMfaDevices: [], rootLogin };
  return [
    put(identityRow(accountId, identityKeys.settings), identityCodec.encode(settings)),
    put(identityRevisionRow(accountId), u48(1)),
  ];
}

function addCustomer({ customer }: Command, account: AccountRecord, view: View, nowMs: number) {
  if (customer === undefined) return undefined;
  const { accountId, name, email, state } = account;
  const history = [{ state, fromMs: nowMs }];
  const record = { ...customer, accountId, name, email, state, history };
  const { records, puts } = writeTenancy(view, { add: [record] }, nowMs);
  const added = records[0] as CustomerRecord;
  return { customer: added, puts: [...puts, put(accountCustomerRow(accountId), u48(added.id))] };
}

function uniqueRows({ account, accessKey }: Command): [Field, RowAddress][] {
  const { name, email, canonicalId } = indexRows(account);
  return [
    ['accountId', accountRow(account.accountId)],
    ['name', name],
    ['email', email],
    ['canonicalId', canonicalId],
    ['accessKey', accessKeyRow(accessKey.accessKey)],
  ];
}
