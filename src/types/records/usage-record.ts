// What the home of a bucket keeps of its usage: how far its days are closed, and a record of each day that is.
import { defineRecord } from '../../base/record-codec.ts';
import type { BucketName } from '../names.ts';

/** Of a bucket that is metered. */
export interface UsageStateRecord {
  /** The last day that is closed. */
  closedDay: number;
  /** What was stored at the end of that day: the first fields of types/metered.ts. */
  sums: number[];
  /** The first day of which the bucket was deleted at its end. */
  deletedDay?: number;
  /** What its compositions alone keep of the data of each home, as the home has measured it at the end of a day. */
  orphaned?: OrphanedMeasure[];
}
export interface OrphanedMeasure {
  shard: number;
  day: number;
  sizeBytes: number;
}
export const usageStateCodec = defineRecord<UsageStateRecord>({ name: 'usage-state', version: 1 });

/** Of one bucket and day. */
export interface UsageRecord {
  bucketName: BucketName;
  /** All fields of types/metered.ts; zeros at the end are left out. */
  figures: number[];
  deletedDay?: number;
}
export const usageRecordCodec = defineRecord<UsageRecord>({ name: 'usage-record', version: 1 });
