// What a bucket or an account has used on one day (UTC): the record that metering writes, and that invoices and /api/v1 are made
// of (extensions 6).
import type { AccountId, BucketId } from './names.ts';

export const DAY_MS = 86_400_000;

export interface UsageFigures {
  // As of the end of the day.
  objects: number;
  /** Real size of live data. */
  rawBytes: number;
  /** Each stored original raised to the smallest size that is charged. */
  paddedBytes: number;
  metadataBytes: number;
  /** Data that only compositions keep. */
  orphanedBytes: number;
  /** Padded: deleted, and inside the minimum duration of storage. */
  deletedBytes: number;
  deletedObjects: number;
  // Of the day.
  uploadBytes: number;
  downloadBytes: number;
  wroteBytes: number;
  readBytes: number;
  deleteBytes: number;
  getCalls: number;
  putCalls: number;
  deleteCalls: number;
  listCalls: number;
  headCalls: number;
  otherCalls: number;
}

/** Of a day on which nothing was stored, and nothing asked. */
export const METERED_NOTHING: UsageFigures = {
  objects: 0,
  rawBytes: 0,
  paddedBytes: 0,
  metadataBytes: 0,
  orphanedBytes: 0,
  deletedBytes: 0,
  deletedObjects: 0,
  uploadBytes: 0,
  downloadBytes: 0,
  wroteBytes: 0,
  readBytes: 0,
  deleteBytes: 0,
  getCalls: 0,
  putCalls: 0,
  deleteCalls: 0,
  listCalls: 0,
  headCalls: 0,
  otherCalls: 0,
};

export interface UsageDay extends UsageFigures {
  /** Days since 1970-01-01, UTC. */
  day: number;
  accountId: AccountId;
  /** Absent: of the whole account. */
  bucketId?: BucketId;
  bucketName?: string;
  /** False: the day is not over, or not all of it is counted yet. */
  isClosed: boolean;
  bucketDeletedAtMs?: number;
}

/** What is charged as active storage. */
export function activeBytes(usage: UsageFigures): number {
  return usage.paddedBytes + usage.metadataBytes + usage.orphanedBytes;
}

export function apiCallCount(usage: UsageFigures): number {
  const { getCalls, putCalls, deleteCalls, listCalls, headCalls, otherCalls } = usage;
  return getCalls + putCalls + deleteCalls + listCalls + headCalls + otherCalls;
}

/** Daily records, of all shards together. Days without a record: nothing was stored, and nothing asked. */
export interface UsageReader {
  /** Of an account, one record for each day, in order of days. Both ends inclusive. */
  byAccount(accountIds: readonly AccountId[], range: { fromDay: number; toDay: number }): Promise<UsageDay[]>;
  /** The last day that is closed for all accounts and shards; undefined: none is. */
  lastClosedDay(): Promise<number | undefined>;
}
