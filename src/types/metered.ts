// What is metered of a bucket: the fields of its usage, in the order in which they are stored, and what one version adds to
// them (extensions 6). Pure; where versions come and go is metadata/schema/counters.ts.
import { LIMITS } from './limits.ts';
import type { AccountId, BucketId } from './names.ts';
import { chargedBytesOf } from './originals.ts';
import { DAY_MS } from './usage.ts';
import { isComposed, type VersionRecord } from './version.ts';

/**
 * Of what is stored, then of traffic; `orphanedBytes` is what is stored again, but is measured at the end of a day, and in no
 * vector. The order is that of stored rows: it only grows, at its end.
 */
export const METERED = [
  'objects',
  'rawBytes',
  'paddedBytes',
  'metadataBytes',
  'deletedObjects',
  'deletedBytes',
  'getCalls',
  'putCalls',
  'deleteCalls',
  'listCalls',
  'headCalls',
  'otherCalls',
  'uploadBytes',
  'downloadBytes',
  'wroteBytes',
  'readBytes',
  'deleteBytes',
  'orphanedBytes',
] as const;
export type Metered = (typeof METERED)[number];

/** So many of them, the first ones, are what is stored at one moment. The others are what happened on one day. */
export const STORED_FIELDS = 6;
/** Where fields are that more than their order is said of. */
export const AT = Object.fromEntries(METERED.map((field, at) => [field, at])) as Record<Metered, number>;

/** Of each version and each delete marker, whatever its key and headers. */
export const METADATA_BYTES = 48;

/** How long deleted data is charged as deleted, counted from the day on which it was stored. */
export interface Metering {
  minimumDays: number;
}
export const DEFAULT_METERING: Metering = { minimumDays: 90 };

/**
 * Under which requests of an account are metered that are about no bucket, in the system shard. Ids of buckets are random: no
 * bucket has this one.
 */
export function accountTrafficId(accountId: AccountId): BucketId {
  return `ffff${accountId}` as BucketId;
}

export function isAccountTraffic(metered: { accountId: AccountId; bucketId: BucketId }): boolean {
  return metered.bucketId === accountTrafficId(metered.accountId);
}

const BUCKET_ID_DIGITS = 16;
const BUCKET_NUMBER_DIGITS = 9;
/** Above all of them. */
const BUCKET_NUMBERS = 16 ** BUCKET_NUMBER_DIGITS;

/** Of two buckets of an account hardly ever the same: 36 bits of an id that is random. */
export function bucketNumberOf(bucketId: BucketId): number {
  return Number.parseInt(bucketId.slice(0, BUCKET_NUMBER_DIGITS), 16);
}

/** The least id of a bucket with this number or a higher one; undefined: no id is so high. */
export function firstBucketId(bucketNumber: number): BucketId | undefined {
  if (bucketNumber >= BUCKET_NUMBERS) return undefined;
  const digits = bucketNumber.toString(16).padStart(BUCKET_NUMBER_DIGITS, '0');
  return digits.padEnd(BUCKET_ID_DIGITS, '0') as BucketId;
}

/** Whole days since 1970, UTC. */
export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS);
}

/**
 * What is charged of a version's data: each of its originals, of 4 KiB at least. Nothing of what was made of other objects'
 * data: that is charged with those, or as orphaned once they are gone.
 */
export function paddedBytesOf(
  version: Pick<VersionRecord, 'isDeleteMarker' | 'appendCount' | 'chargedBytes' | 'originals'>,
): number {
  if (version.isDeleteMarker) return 0;
  return isComposed(version) ? (version.chargedBytes ?? 0) : chargedBytesOf(version.originals);
}

/** What is charged of data that came in one upload. */
export function paddedTo(sizeBytes: number): number {
  return Math.max(sizeBytes, LIMITS.chargedBytesMin);
}

/** Adds what a version is, `sign` times, to `sums`. Returns its padded bytes. */
export function addVersion(sums: number[], version: VersionRecord, sign: 1 | -1): number {
  const padded = paddedBytesOf(version);
  if (!version.isDeleteMarker) add(sums, AT.objects, sign);
  add(sums, AT.rawBytes, sign * version.sizeBytes);
  add(sums, AT.paddedBytes, sign * padded);
  add(sums, AT.metadataBytes, sign * METADATA_BYTES);
  return padded;
}

/**
 * From which day on data is charged as orphaned that no object is charged for any more: until then it was stored, or is charged
 * as deleted.
 */
export function orphanedFrom(bornAtMs: number, minimumDays: number): number {
  return dayOf(bornAtMs) + minimumDays;
}

export function noUsage(): number[] {
  return new Array<number>(STORED_FIELDS).fill(0);
}

export function add(sums: number[], at: number, by: number): void {
  sums[at] = (sums[at] ?? 0) + by;
}
