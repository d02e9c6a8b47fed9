// Commands and queries about what is metered. A day of a bucket is closed in the bucket's home, by one entry that writes its
// record and takes its vector away: so a failover counts nothing twice.
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';

/** Figures are fields of types/metered.ts, in their order. */
export interface BucketDay {
  bucketId: BucketId;
  bucketName: BucketName;
  day: number;
  figures: number[];
  deletedDay?: number;
}

/** Where a page of an account's records goes on. */
export type UsagePlace = Pick<BucketDay, 'day' | 'bucketId'>;

/** Where a page of metered buckets goes on. */
export interface MeteredBucket {
  accountId: AccountId;
  bucketId: BucketId;
}

/** What requests of one day have done with a bucket; or, under an id of its own (accountTrafficId), with an account's none. */
export interface TrafficDay extends MeteredBucket {
  /** By the gateway's clock. */
  day: number;
  /** Fields of types/metered.ts; those of what is stored mean nothing. */
  figures: readonly number[];
}

/** What quotas count of an account in one shard. */
export interface HeldByAccount {
  objects: number;
  bytes: number;
  uploadBytes: number;
}

export interface UsageCommands {
  /**
   * Adds what a gateway has counted, to the day it says or to the next one that is not closed. `unplaced`: places in `days` of
   * buckets that are gone and have no more records; `left`: of those that are not counted, because another command held them.
   */
  'add-traffic': {
    command: { days: readonly TrafficDay[]; leavesBusy?: true };
    outcome: { kind: 'added'; unplaced: number[]; left?: number[] };
  };
  /** Closes the next day of each bucket, where that is over and no later than `throughDay`. `left`: of those that others held. */
  'close-usage': {
    command: { buckets: readonly MeteredBucket[]; throughDay: number; leavesBusy?: true };
    outcome: { kind: 'closed'; closedCount: number; left?: MeteredBucket[] };
  };
  /**
   * What a home has measured at the end of a day: so much of its data is charged as orphaned with these buckets of the shard.
   * Each has one measure of a home, the last one. `left`: of those that others held.
   */
  'note-orphaned': {
    command: {
      fromShard: number;
      day: number;
      buckets: readonly { bucketId: BucketId; sizeBytes: number }[];
      leavesBusy?: true;
    };
    outcome: { kind: 'noted'; left?: BucketId[] };
  };
  /** All buckets of the shard are closed to this day. */
  'note-usage-closed': { command: { day: number }; outcome: { kind: 'noted' } };
  /** Adds what a walk has found to be missing (recount-usage) to today, and begins to meter a bucket that was not. */
  'mend-usage': {
    command: MeteredBucket & { missing: readonly number[]; held?: { objects: number; bytes: number } };
    outcome: { kind: 'mended' } | { kind: 'no-such-bucket' };
  };
  /** Adds what recount-account has found to be missing. */
  'mend-account': { command: { accountId: AccountId; missing: HeldByAccount }; outcome: { kind: 'mended' } };
}

export interface UsageQueries {
  /** Buckets with days to close, behind `after`. */
  'list-open-usage': {
    query: { throughDay: number; after?: MeteredBucket; limit: number };
    result: { buckets: MeteredBucket[]; next?: MeteredBucket };
  };
  /** Buckets that are not metered yet, having been there before metering was. */
  'list-unmetered': {
    query: { after?: BucketId; limit: number };
    result: { buckets: MeteredBucket[]; next?: BucketId };
  };
  /**
   * Records of an account's buckets, in order of days and buckets, some at a time; `next`: the rest is behind it. `bucketNumber`:
   * of buckets that have it (types/metered.ts), which reads no others.
   */
  'list-usages': {
    query: {
      accountId: AccountId;
      fromDay: number;
      toDay: number;
      after?: UsagePlace;
      limit?: number;
      bucketNumber?: number;
    };
    result: { days: BucketDay[]; next?: UsagePlace };
  };
  /**
   * Records of accounts, summed over their buckets. Days without any are left out. The caller bounds how many it asks for. With
   * `rowsMax` about so many records are read, and a day may go on in the next page.
   */
  'sum-usages': {
    query: {
      of: readonly { accountId: AccountId; fromDay: number; toDay: number; after?: UsagePlace }[];
      rowsMax?: number;
    };
    result: {
      days: { accountId: AccountId; day: number; figures: number[] }[];
      /** So many of `of` are summed to their end; of the next one all up to this place. */
      next?: { summedCount: number; after: UsagePlace };
    };
  };
  /** How many records an account has of each day. With `rowsMax` as of sums. */
  'count-usages': {
    query: { accountId: AccountId; fromDay: number; toDay: number; after?: UsagePlace; rowsMax?: number };
    result: { counts: [day: number, count: number][]; next?: UsagePlace };
  };
  /** The records of a closed day, summed by account, some buckets at a time. Of those that have records still. */
  'sum-day': {
    query: { day: number; after?: MeteredBucket; limit: number };
    result: { accounts: { accountId: AccountId; figures: number[] }[]; next?: MeteredBucket };
  };
  /** What an account's buckets have now, and what today has had of traffic, some at a time: as a record of today. */
  'list-current-usages': {
    query: {
      accountId: AccountId;
      after?: BucketId;
      limit: number;
      /** Only buckets that have no record of this day, and none of an earlier one. */
      withoutRecordOf?: number;
      bucketNumber?: number;
    };
    result: { day: number; days: BucketDay[]; next?: BucketId };
  };
  /** The same summed, of some buckets at a time, and of how many. */
  'sum-current-usages': {
    query: { accountId: AccountId; after?: BucketId; limit: number };
    result: { figures: number[]; count: number; next?: BucketId };
  };
  'get-usage-closed': { query: Record<string, never>; result: { day: number | null } };
  /** Counts all versions of a bucket, at one moment; `missing` is what its days lack of that, `held` what its counters do. */
  'recount-usage': {
    query: { bucketId: BucketId };
    result:
      | { kind: 'no-such-bucket' }
      | {
          kind: 'counted';
          owner: AccountId;
          name: BucketName;
          counted: number[];
          missing: number[];
          held: { objects: number; bytes: number };
        };
  };
  /** What the counters of an account in this shard lack of those of its buckets. */
  'recount-account': { query: { accountId: AccountId }; result: { missing: HeldByAccount } };
}
