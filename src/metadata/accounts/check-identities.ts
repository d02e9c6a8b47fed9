// Checks of identities for fsck: what indices, aliases and notes of keys lead to is there.
import { fromUtf8 } from '../../base/bytes/bytes.ts';
import type { FindingPlace } from '../../types/findings.ts';
import type { AccountId } from '../../types/names.ts';
import { type IdentityRecord, identityCodec, identityKeys } from '../../types/records/identity-records.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { accessKeyRow, accountRemovalRow, accountRow, identityRow } from '../schema/keyspace.ts';
import { decodeAccountId } from './accounts.ts';

const ACCOUNT_BYTES = 6;

/** Of a row of identities: its account is there, keys and groups that it lists are, and what an index leads to. */
export const checkIdentity: RowCheck = async (row, scan) => {
  const account = decodeAccountId(row.key);
  const key = fromUtf8(row.key.subarray(ACCOUNT_BYTES));
  const record = identityCodec.decode(row.value);
  const place: FindingPlace = { account, note: key, table: 'identities' };
  // Identities go after their account.
  if ((await scan.row(accountRow(account))) === undefined)
    return scan.expectRow(accountRemovalRow(account), 'account-missing', place);
  if (record.kind === 'mfa-device') scan.checkKey(record.sealedSeed, { account, table: 'identities' });
  if (record.kind === 'user') {
    for (const { accessKey } of record.accessKeys)
      await scan.expectRow(accessKeyRow(accessKey), 'index-orphaned', place);
    for (const groupId of record.groups)
      await scan.expectRow(identityRow(account, identityKeys.id(groupId)), 'index-orphaned', place);
  }
  if (record.kind === 'role-use') {
    const roleId = key.slice(identityKeys.roleUse('').length);
    await scan.expectRow(identityRow(account, identityKeys.id(roleId)), 'index-orphaned', place);
  }
  if (record.kind === 'index' && record.to !== undefined)
    await scan.expectRow(identityRow(account, record.to), 'index-orphaned', place);
};

export const checkAccountAlias: RowCheck = async (row, scan) => {
  const account = decodeAccountId(row.value);
  const alias = fromUtf8(row.key);
  const settings = await readIdentity(scan, account, identityKeys.settings);
  const isSame = settings?.kind === 'settings' && settings.alias === alias;
  if (!isSame) scan.found('index-orphaned', { account, table: 'accountAliases', note: alias });
};

export const checkKeyUse: RowCheck = async (row, scan) => {
  const accessKey = fromUtf8(row.key);
  await scan.expectRow(accessKeyRow(accessKey), 'index-orphaned', { table: 'keyUses', note: accessKey });
};

/** A user or role by its id. */
export async function readIdentityById(scan: CheckScan, accountId: AccountId, id: string) {
  const index = await readIdentity(scan, accountId, identityKeys.id(id));
  return index?.kind === 'index' && index.to !== undefined
    ? readIdentity(scan, accountId, index.to)
    : undefined;
}

async function readIdentity(
  scan: CheckScan,
  accountId: AccountId,
  key: string,
): Promise<IdentityRecord | undefined> {
  const row = await scan.row(identityRow(accountId, key));
  return row && identityCodec.decode(row);
}
