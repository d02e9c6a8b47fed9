// Accounts and their access keys, by everything that finds them.

import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RowAddress, StateReader } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import { type AccountRecord, accessKeyCodec, accountCodec } from '../../types/records/rows.ts';
import { u48 } from '../schema/key-parts.ts';
import {
  accessKeyRow,
  accountAliasRow,
  accountEmailRow,
  accountNameRow,
  accountRow,
  canonicalIdRow,
  TABLES,
} from '../schema/keyspace.ts';
import { accessKeyRange, accessKeysOf } from './access-keys.ts';
import { decodeAccountId } from './accounts.ts';
import { readPrincipal } from './identities.ts';

export const getAccessKey: QuerySpec<QueryOf<'get-access-key'>, ResultOf<'get-access-key'>> = {
  async run(query, state) {
    const [row] = await state.rows([accessKeyRow(query.accessKey)]);
    if (row === undefined) return { kind: 'unknown' };
    const accessKey = accessKeyCodec.decode(row);
    if (accessKey.isDisabled === true && query.mayBeDisabled !== true) return { kind: 'unknown' };
    const account = await readAccount(accessKey.accountId, state);
    if (account === null || account.deletedAtMs !== undefined) return { kind: 'unknown' };
    if (accessKey.userId === undefined) return { kind: 'found', accessKey, account };
    const { accountId, userId: id } = accessKey;
    const principal = await readPrincipal(state, { accountId, id, textsBytesMax: query.textsBytesMax });
    if (principal === undefined) return { kind: 'unknown' };
    if (!('large' in principal)) return { kind: 'found', accessKey, account, principal };
    const { id: ofUser, name } = principal.large;
    return { kind: 'large', account, entity: { id: ofUser, name } };
  },
};

export const listKeysOfAccount: QuerySpec<QueryOf<'list-access-keys'>, ResultOf<'list-access-keys'>> = {
  async run({ accountId }, state) {
    const names = await listAccessKeys(accountId, state);
    const rows = await state.rows(names.map(accessKeyRow));
    return { accessKeys: rows.flatMap((row) => (row === undefined ? [] : [accessKeyCodec.decode(row)])) };
  },
};

export const getAccount: QuerySpec<QueryOf<'get-account'>, ResultOf<'get-account'>> = {
  async run({ accountId }, state) {
    return { account: await readAccount(accountId, state) };
  },
};

export const findAccount: QuerySpec<QueryOf<'find-account'>, ResultOf<'find-account'>> = {
  async run(query, state) {
    const index = indexRow(query);
    const [id] = index === undefined ? [] : await state.rows([index]);
    return { account: id === undefined ? null : await readAccount(decodeAccountId(id), state) };
  },
};

export const listAccounts: QuerySpec<QueryOf<'list-accounts'>, ResultOf<'list-accounts'>> = {
  async run({ after, limit }, state) {
    const gte = u48(after === undefined ? 0 : Number(after) + 1);
    const rows = await state.range({ table: TABLES.accounts, gte, lt: u48(1e12), limit });
    const accounts = rows.map((row) => accountCodec.decode(row.value));
    const accessKeys = await Promise.all(accounts.map(({ accountId }) => listAccessKeys(accountId, state)));
    return { accounts, accessKeys };
  },
};

export async function readAccount(accountId: AccountId, state: StateReader): Promise<AccountRecord | null> {
  const [row] = await state.rows([accountRow(accountId)]);
  return row === undefined ? null : accountCodec.decode(row);
}

function indexRow({ name, email, canonicalId, alias }: QueryOf<'find-account'>): RowAddress | undefined {
  if (alias !== undefined) return accountAliasRow(alias);
  if (name !== undefined) return accountNameRow(name);
  if (email !== undefined) return accountEmailRow(email);
  return canonicalId === undefined ? undefined : canonicalIdRow(canonicalId);
}

async function listAccessKeys(accountId: AccountId, state: StateReader): Promise<string[]> {
  const range = accessKeyRange(accountId);
  return accessKeysOf(await state.range(range), range);
}
