// An account's access keys as rows of the system shard: each key, and the list of an account's keys.
import { fromUtf8 } from '../../base/bytes/bytes.ts';
import type { Signed } from '../../ports/metadata/accounts.ts';
import type { RangeAddress, Row, RowPut, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import { type AccessKeyRecord, accessKeyCodec } from '../../types/records/rows.ts';
import {
  accessKeyRow,
  accountAccessKeyRow,
  keyUseRow,
  prefixRange,
  remove,
  TABLES,
} from '../schema/keyspace.ts';
import { findAccount } from './accounts.ts';

/** More access keys than any account is let have. */
const ACCESS_KEYS_MAX = 1000;

/** The rows that list the keys of an account. */
export function accessKeyRange(accountId: AccountId): RangeAddress {
  const { key: prefix } = accountAccessKeyRow(accountId, '');
  return prefixRange({ table: TABLES.accountAccessKeys, prefix, limit: ACCESS_KEYS_MAX });
}

/** The keys that rows of {@link accessKeyRange} list. */
export function accessKeysOf(rows: readonly Row[], range: RangeAddress): string[] {
  return rows.map((row) => fromUtf8(row.key.subarray(range.gte.length)));
}

/** The keys of an account by name, in order. */
export function listAccessKeys(view: View, accountId: AccountId): string[] {
  const range = accessKeyRange(accountId);
  return accessKeysOf(view.range(range), range);
}

/** Undefined: there is no such key. */
export function findAccessKey(view: View, accessKey: string): AccessKeyRecord | undefined {
  const row = view.row(accessKeyRow(accessKey));
  return row && accessKeyCodec.decode(row);
}

/** Another key of the name, later, has not been used by it. */
export function removeAccessKey(accountId: AccountId, accessKey: string): RowPut[] {
  return [
    remove(accessKeyRow(accessKey)),
    remove(accountAccessKeyRow(accountId, accessKey)),
    remove(keyUseRow(accessKey)),
  ];
}

/** For `look` of what {@link isSignerGone} asks. */
export function lookAtSigner(view: View, by: Signed['by'] | undefined): void {
  const key = by === undefined ? undefined : findAccessKey(view, by);
  if (key !== undefined) findAccount(view, key.accountId);
}

/** Whether the key that has signed for a command was taken away since its signature was checked. */
export function isSignerGone(view: View, by: Signed['by'] | undefined): boolean {
  if (by === undefined) return false;
  const key = findAccessKey(view, by);
  if (key === undefined || key.isDisabled === true) return true;
  return findAccount(view, key.accountId)?.state === 'suspended';
}
