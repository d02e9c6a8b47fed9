// An account's rows in the system shard: itself, and the indices by which it is found.

import type { RowAddress, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import { type AccountRecord, accountCodec } from '../../types/records/rows.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import { accountEmailRow, accountNameRow, accountRow, canonicalIdRow } from '../schema/keyspace.ts';

export function findAccount(view: View, accountId: AccountId): AccountRecord | undefined {
  const row = view.row(accountRow(accountId));
  return row && accountCodec.decode(row);
}

/** Undefined also of one that is deleted and owns buckets yet. */
export function findLiveAccount(view: View, accountId: AccountId): AccountRecord | undefined {
  const account = findAccount(view, accountId);
  return account?.deletedAtMs === undefined ? account : undefined;
}

/** What is one account's alone, and where that is written down. */
export function indexRows(
  account: Pick<AccountRecord, 'name' | 'email' | 'canonicalId'>,
): Record<'name' | 'email' | 'canonicalId', RowAddress> {
  return {
    name: accountNameRow(account.name),
    email: accountEmailRow(account.email),
    canonicalId: canonicalIdRow(account.canonicalId),
  };
}

export function encodeAccountId(accountId: AccountId): Uint8Array {
  return u48(Number(accountId));
}

export function decodeAccountId(bytes: Uint8Array): AccountId {
  return String(readU48(bytes)).padStart(12, '0') as AccountId;
}
