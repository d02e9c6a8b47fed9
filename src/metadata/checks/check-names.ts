// Buckets, names and accounts as fsck sees them. A bucket and its name are in different shards: facts, for whoever asks.
import { fromUtf8, toHex } from '../../lib/bytes.ts';
import type { FindingPlace } from '../../model/findings.ts';
import type { AccountId, BucketId, BucketName } from '../../model/names.ts';
import {
  type AccountRecord,
  accessKeyCodec,
  accountCodec,
  bucketCodec,
  nameCodec,
} from '../../model/records/rows.ts';
import { decodeAccountId, indexRows } from '../accounts.ts';
import {
  accessKeyRow,
  accountAccessKeyRow,
  accountBucketRow,
  accountRow,
  nameRow,
  outboxRow,
} from '../keyspace.ts';
import { creationItemId } from '../names.ts';
import type { CheckScan, RowCheck } from './scan.ts';

const ACCOUNT_BYTES = 6;

export const checkBucket: RowCheck = async (row, scan) => {
  const bucket = bucketCodec.decode(row.value);
  scan.facts.buckets.push(bucket);
  if (bucket.bucketId !== toHex(row.key)) {
    scan.found('broken-row', { bucket: bucket.name, table: 'buckets', note: toHex(row.key) });
  }
};

export const checkDeletedBucket: RowCheck = async (row, scan) => {
  const bucketId = toHex(row.key) as BucketId;
  const bucket = await scan.bucket(bucketId);
  if (bucket?.state !== 'deleted') scan.found('queue-stray', { bucket: bucketId, table: 'deletedBuckets' });
};

export const checkName: RowCheck = async (row, scan) => {
  const name = fromUtf8(row.key) as BucketName;
  const record = nameCodec.decode(row.value);
  scan.facts.names.push({ name, record });
  const place = { bucket: name, account: record.owner };
  await scan.expectRow(accountRow(record.owner), 'account-missing', place);
  if (record.state === 'creating') {
    await scan.expectRow(outboxRow(creationItemId(record)), 'queue-missing', place);
  } else {
    await scan.expectRow(accountBucketRow(record.owner, name), 'index-missing', place);
  }
};

export const checkAccountBucket: RowCheck = async (row, scan) => {
  const account = decodeAccountId(row.key);
  const name = fromUtf8(row.key.subarray(ACCOUNT_BYTES)) as BucketName;
  const found = await scan.row(nameRow(name));
  const listed = nameCodec.decode(row.value);
  const record = found && nameCodec.decode(found);
  const isSame = record?.owner === account && record.bucketId === listed.bucketId;
  if (!isSame) scan.found('index-stray', { bucket: name, account, table: 'accountBuckets' });
};

export const checkAccount: RowCheck = async (row, scan) => {
  const account = accountCodec.decode(row.value);
  const { accountId } = account;
  if (decodeAccountId(row.key) !== accountId) {
    scan.found('broken-row', { account: accountId, table: 'accounts', note: toHex(row.key) });
  }
  for (const [field, address] of Object.entries(indexRows(account))) {
    const index = await scan.row(address);
    const isOwn = index !== undefined && decodeAccountId(index) === accountId;
    if (!isOwn) scan.found('index-missing', { account: accountId, note: field });
  }
};

/** Of the indices by which accounts are found. */
export function checkAccountIndex(field: 'name' | 'email' | 'canonicalId'): RowCheck {
  return async (row, scan) => {
    const accountId = decodeAccountId(row.value);
    const account = await readAccount(scan, accountId);
    const isSame = account !== undefined && toHex(indexRows(account)[field].key) === toHex(row.key);
    if (!isSame) scan.found('index-stray', { account: accountId, note: field });
  };
}

export const checkAccessKey: RowCheck = async (row, scan) => {
  const accessKey = fromUtf8(row.key);
  const { accountId, sealedSecret } = accessKeyCodec.decode(row.value);
  const place: FindingPlace = { account: accountId, note: accessKey };
  scan.checkKey(sealedSecret, { account: accountId, table: 'accessKeys' });
  if ((await readAccount(scan, accountId)) === undefined) scan.found('account-missing', place);
  await scan.expectRow(accountAccessKeyRow(accountId, accessKey), 'index-missing', place);
};

export const checkAccountAccessKey: RowCheck = async (row, scan) => {
  const account = decodeAccountId(row.key);
  const accessKey = fromUtf8(row.key.subarray(ACCOUNT_BYTES));
  const place = { account, note: accessKey, table: 'accountAccessKeys' };
  await scan.expectRow(accessKeyRow(accessKey), 'index-stray', place);
};

async function readAccount(scan: CheckScan, accountId: AccountId): Promise<AccountRecord | undefined> {
  const row = await scan.row(accountRow(accountId));
  return row && accountCodec.decode(row);
}
