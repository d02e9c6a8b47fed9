// An account with its first access key. Everything that finds an account is one account's alone.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowAddress } from '../../ports/state-machine.ts';
import {
  type AccessKeyRecord,
  type AccountRecord,
  accessKeyCodec,
  accountCodec,
} from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accessKeyRow, accountAccessKeyRow, accountRow, PRESENT, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { encodeAccountId, indexRows } from './accounts.ts';

type Command = CommandOf<'create-account'>;
type Outcome = OutcomeOf<'create-account'>;
type Field = Extract<Outcome, { kind: 'conflict' }>['field'];

export const createAccount = defineCommand<Command, Outcome>({
  locks: () => [exclusive(LOCK.accounts)],

  look(command, view) {
    for (const [, address] of uniqueRows(command)) view.row(address);
  },

  decide(command, view, { nowMs }) {
    const conflict = uniqueRows(command).find(([, address]) => view.row(address) !== undefined);
    if (conflict !== undefined) return refuse({ kind: 'conflict', field: conflict[0] });
    const account: AccountRecord = { ...command.account, bucketCount: 0, createdAtMs: nowMs };
    const { accountId } = account;
    const accessKey: AccessKeyRecord = { ...command.accessKey, accountId, createdAtMs: nowMs };
    const id = encodeAccountId(accountId);
    return {
      outcome: { kind: 'created', account },
      puts: [
        put(accountRow(accountId), accountCodec.encode(account)),
        ...Object.values(indexRows(account)).map((address) => put(address, id)),
        put(accessKeyRow(accessKey.accessKey), accessKeyCodec.encode(accessKey)),
        put(accountAccessKeyRow(accountId, accessKey.accessKey), PRESENT),
      ],
    };
  },
});

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
