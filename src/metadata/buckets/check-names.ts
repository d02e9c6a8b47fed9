// Checks of buckets, names and accounts for fsck. A bucket and its name are in different shards: the caller compares the
// facts.
import { fromUtf8, toHex } from '../../base/bytes/bytes.ts';
import type { FindingPlace } from '../../types/findings.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import { jobCodec } from '../../types/records/job-record.ts';
import {
  type AccountRecord,
  accessKeyCodec,
  accountCodec,
  type BucketRecord,
  bucketCodec,
  identityChangeCodec,
  type NameRecord,
  nameCodec,
  outboxCodec,
} from '../../types/records/rows.ts';
import { decodeAccountId, indexRows } from '../accounts/accounts.ts';
import { readIdentityById } from '../accounts/check-identities.ts';
import { identityChangeRange } from '../accounts/identity-changes.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { isRenameOf, jobRow } from '../jobs/jobs.ts';
import { readU48 } from '../schema/key-parts.ts';
import {
  accessKeyRow,
  accountAccessKeyRow,
  accountBucketRow,
  accountRemovalRow,
  accountRow,
  nameRow,
  outboxRow,
} from '../schema/keyspace.ts';
import { checkRetentionRules } from './check-retention.ts';
import { creationItemId } from './names.ts';

const ACCOUNT_BYTES = 6;

export const checkBucket: RowCheck = async (row, scan) => {
  const bucket = bucketCodec.decode(row.value);
  scan.facts.buckets.push(bucket);
  if (bucket.bucketId !== toHex(row.key)) {
    scan.found('broken-row', { bucket: bucket.name, table: 'buckets', note: toHex(row.key) });
  }
  await checkEmptying(bucket, scan);
  await checkKeyRenames(bucket, scan);
  await checkRetentionRules(bucket, scan);
};

/** A bucket that is closing, or deleted and not yet emptied, has the job that goes on with it; others have none. */
async function checkEmptying({ bucketId, name, state, jobId }: BucketRecord, scan: CheckScan): Promise<void> {
  const row = jobId && (await scan.row(jobRow(jobId)));
  const job = row && jobCodec.decode(row);
  const stage = job?.kind === 'empty-bucket' && job.bucketId === bucketId ? job.stage : undefined;
  const isRight =
    stage === undefined
      ? jobId === undefined && state !== 'closing'
      : state === (stage === 'look' ? 'closing' : 'deleted') && job?.endedAtMs === undefined;
  if (!isRight) scan.found('queue-missing', { bucket: name, table: 'jobs', note: jobId ?? state });
}

/** Each rename of a key that takes several entries has the job that goes on with it: else its keys are closed for ever. */
async function checkKeyRenames(bucket: BucketRecord, scan: CheckScan): Promise<void> {
  const { name, state, keyRenames = [] } = bucket;
  // Jobs of a deleted bucket end, and its row stays as it is.
  if (state === 'deleted') return;
  for (const rename of keyRenames) {
    const row = await scan.row(jobRow(rename.jobId));
    const job = row && jobCodec.decode(row);
    if (job !== undefined && isRenameOf(job, bucket, rename)) continue;
    scan.found('queue-missing', { bucket: name, key: rename.from, table: 'jobs', note: rename.jobId });
  }
}

export const checkDeletedBucket: RowCheck = async (row, scan) => {
  const bucketId = toHex(row.key) as BucketId;
  const bucket = await scan.bucket(bucketId);
  if (bucket?.state !== 'deleted')
    scan.found('queue-orphaned', { bucket: bucketId, table: 'deletedBuckets' });
};

export const checkName: RowCheck = async (row, scan) => {
  const name = fromUtf8(row.key) as BucketName;
  const record = nameCodec.decode(row.value);
  scan.facts.names.push({ name, record });
  const place = { bucket: name, account: record.owner };
  await scan.expectRow(accountRow(record.owner), 'account-missing', place);
  const { state, change } = record;
  if (state === 'creating') await scan.expectRow(outboxRow(creationItemId(record)), 'queue-missing', place);
  if (isListed(record)) {
    await scan.expectRow(accountBucketRow(record.owner, name), 'index-missing', place);
  }
  const isChanging = state === 'leaving' || state === 'entering';
  if (isChanging !== (change !== undefined)) scan.found('rename-broken', { ...place, note: state });
  if (change === undefined) return;
  await scan.expectRow(outboxRow(change.itemId), 'queue-missing', place);
  if (!isOtherHalf({ name, record }, await readName(scan, change.other))) {
    scan.found('rename-broken', { ...place, note: change.other });
  }
};

/** R43: the account's list shows a bucket once, under the name that it leaves until it has left. */
function isListed({ state }: NameRecord): boolean {
  return state === 'active' || state === 'leaving';
}

function isOtherHalf(half: { name: BucketName; record: NameRecord }, other: NameRecord | undefined): boolean {
  const { name, record } = half;
  return (
    other?.change !== undefined &&
    other.state === (record.state === 'leaving' ? 'entering' : 'leaving') &&
    other.bucketId === record.bucketId &&
    other.change.other === name &&
    other.change.itemId === record.change?.itemId
  );
}

/** That it can be read, and that names wait for a rename: what else it orders is for its worker. */
export const checkOutbox: RowCheck = async (row, scan) => {
  const item = outboxCodec.decode(row.value);
  if (item.kind !== 'rename-bucket') return;
  const leaving = await readName(scan, item.from);
  if (leaving?.change?.itemId === toHex(row.key)) return;
  scan.found('queue-orphaned', { bucket: item.from, table: 'outbox', note: item.to });
};

export const checkAccountBucket: RowCheck = async (row, scan) => {
  const account = decodeAccountId(row.key);
  const name = fromUtf8(row.key.subarray(ACCOUNT_BYTES)) as BucketName;
  const listed = nameCodec.decode(row.value);
  const record = await readName(scan, name);
  const isSame = record?.owner === account && record.bucketId === listed.bucketId && isListed(record);
  if (!isSame) scan.found('index-orphaned', { bucket: name, account, table: 'accountBuckets' });
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
    if (!isSame) scan.found('index-orphaned', { account: accountId, note: field });
  };
}

export const checkAccessKey: RowCheck = async (row, scan) => {
  const accessKey = fromUtf8(row.key);
  const { accountId, sealedSecret, userId } = accessKeyCodec.decode(row.value);
  const place: FindingPlace = { account: accountId, note: accessKey };
  scan.checkKey(sealedSecret, { account: accountId, table: 'accessKeys' });
  if ((await readAccount(scan, accountId)) === undefined) {
    // Its users go after it.
    await scan.expectRow(accountRemovalRow(accountId), 'account-missing', place);
    return;
  }
  if (userId === undefined) {
    await scan.expectRow(accountAccessKeyRow(accountId, accessKey), 'index-missing', place);
    return;
  }
  const user = await readIdentityById(scan, accountId, userId);
  const isListed = user?.kind === 'user' && user.accessKeys.some((each) => each.accessKey === accessKey);
  if (!isListed) scan.found('index-missing', place);
};

export const checkAccountAccessKey: RowCheck = async (row, scan) => {
  const account = decodeAccountId(row.key);
  const accessKey = fromUtf8(row.key.subarray(ACCOUNT_BYTES));
  const place = { account, note: accessKey, table: 'accountAccessKeys' };
  await scan.expectRow(accessKeyRow(accessKey), 'index-orphaned', place);
};

/** A gap would hide a change from gateways that ask from before it. */
export const checkIdentityChange: RowCheck = async (row, scan) => {
  const { accountId } = identityChangeCodec.decode(row.value);
  const seq = readU48(row.key);
  const [next] = await scan.view.range({ ...identityChangeRange(seq + 1), limit: 1 });
  if (next === undefined || readU48(next.key) === seq + 1) return;
  scan.found('index-missing', { account: accountId, table: 'identityChanges', note: toHex(row.key) });
};

async function readName(scan: CheckScan, name: BucketName): Promise<NameRecord | undefined> {
  const row = await scan.row(nameRow(name));
  return row && nameCodec.decode(row);
}

async function readAccount(scan: CheckScan, accountId: AccountId): Promise<AccountRecord | undefined> {
  const row = await scan.row(accountRow(accountId));
  return row && accountCodec.decode(row);
}
