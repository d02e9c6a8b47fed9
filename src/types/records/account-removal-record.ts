// What is still to be removed of an account that was deleted: its buckets, then its identities. The row is there until nothing is.
import { defineRecord } from '../../base/record-codec.ts';
import type { AccountId, BucketId } from '../names.ts';

/** A bucket that stays for now, because something in it may not go yet. */
export interface KeptBucket {
  name: string;
  /** Versions that may not go. */
  versionCount: number;
  /** When the first of them may go; absent: somebody has to end a hold. */
  untilMs?: number;
}

/** Buckets that are listed as kept; more are counted. */
export const KEPT_BUCKETS_MAX = 100;

/** What a pass over the buckets has found so far. */
export interface RemovalPass {
  /** The last bucket that is dealt with, by name. */
  after?: string;
  /** A bucket that cannot go as a whole: its versions are gone through, behind the row `after` (hex). */
  within?: { bucketId: BucketId; homeShard: number; name: string; after?: string; removedCount: number };
  /** Of the bucket in `within`, so far. */
  keptVersionCount?: number;
  untilMs?: number;
  kept: KeptBucket[];
  keptBucketCount: number;
  /** Something was removed: another pass may find more. */
  hasRemoved: boolean;
}

export interface AccountRemovalRecord {
  accountId: AccountId;
  beganAtMs: number;
  /** When it is gone on with. */
  nextAtMs: number;
  /** Grows with each note: of two who go on with it one is refused. */
  stepCount: number;
  removedBucketCount: number;
  /** Versions that were removed from buckets that stay for now. */
  removedVersionCount: number;
  pass?: RemovalPass;
  /** What the last whole pass has left. */
  kept: KeptBucket[];
  keptBucketCount: number;
}
export const accountRemovalCodec = defineRecord<AccountRemovalRecord>({
  name: 'account-removal',
  version: 1,
});
