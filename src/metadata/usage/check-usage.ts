// Checks of usage for fsck: rows are of a bucket that there is, and of its owner.
import { usageRecordCodec, usageStateCodec } from '../../types/records/usage-record.ts';
import type { RowCheck } from '../checks/scan.ts';
import { readUsageRecordKey, readUsageStateKey } from './usage-rows.ts';

export const checkUsageState: RowCheck = async ({ key, value }, scan) => {
  usageStateCodec.decode(value);
  const { accountId, bucketId } = readUsageStateKey(key);
  const bucket = await scan.bucket(bucketId);
  if (bucket?.owner === accountId) return;
  const kind = bucket === undefined ? 'bucket-missing' : 'broken-row';
  scan.found(kind, { table: 'usageStates', note: bucketId });
};

export const checkUsageRecord: RowCheck = async ({ key, value }, scan) => {
  usageRecordCodec.decode(value);
  const { accountId, bucketId } = readUsageRecordKey(key);
  const bucket = await scan.bucket(bucketId);
  if (bucket?.owner === accountId) return;
  const kind = bucket === undefined ? 'bucket-missing' : 'broken-row';
  scan.found(kind, { table: 'usageRecords', note: bucketId });
};
