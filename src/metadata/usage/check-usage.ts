// Checks of usage for fsck: rows are of a bucket that there is, and of its owner; or of an account's requests without a bucket.
import type { MeteredBucket } from '../../ports/metadata/usage.ts';
import { isAccountTraffic } from '../../types/metered.ts';
import { usageRecordCodec, usageStateCodec } from '../../types/records/usage-record.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { readUsageRecordKey, readUsageStateKey } from './usage-rows.ts';

export const checkUsageState: RowCheck = async ({ key, value }, scan) => {
  usageStateCodec.decode(value);
  await checkBucketOf(readUsageStateKey(key), scan, 'usageStates');
};

export const checkUsageRecord: RowCheck = async ({ key, value }, scan) => {
  usageRecordCodec.decode(value);
  await checkBucketOf(readUsageRecordKey(key), scan, 'usageRecords');
};

async function checkBucketOf(
  metered: MeteredBucket,
  scan: CheckScan,
  table: 'usageStates' | 'usageRecords',
): Promise<void> {
  if (isAccountTraffic(metered)) return;
  const bucket = await scan.bucket(metered.bucketId);
  if (bucket?.owner === metered.accountId) return;
  scan.found(bucket === undefined ? 'bucket-missing' : 'broken-row', { table, note: metered.bucketId });
}
