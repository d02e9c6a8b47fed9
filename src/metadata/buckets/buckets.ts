// A bucket's row as commands see it, and as the engine checks it before anything about the bucket is evaluated (R45).
import { assert, must } from '../../base/assert.ts';
import { decodeOnce } from '../../base/record-codec.ts';
import type { BucketGuard, LockRequest, RangeAddress, View } from '../../ports/state-machine.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { LOCK } from '../schema/define-command.ts';
import { bucketRow, REGION, regionRange } from '../schema/keyspace.ts';

/** Each request about a bucket looks at its row, and a command several times. */
const decodeBucket = decodeOnce(bucketCodec);

export function findBucket(view: View, bucketId: BucketId): BucketRecord | undefined {
  const row = view.row(bucketRow(bucketId));
  return row && decodeBucket(row);
}

/** For commands that the guard has let pass. */
export function openBucket(view: View, bucketId: BucketId): BucketRecord {
  const bucket = must(findBucket(view, bucketId), 'the guard has seen the bucket');
  assert(bucket.state === 'open', 'the guard lets nothing into a bucket that is not open');
  return bucket;
}

/** For what stores a version or upload of this owner: whoever sends it has admitted it before. */
export function requireAdmitted(bucket: BucketRecord, owner: AccountId): void {
  const isAdmitted = owner === bucket.owner || bucket.mayHaveForeignObjects === true;
  assert(isAdmitted, 'objects of other accounts are admitted before they are stored');
}

/** Whether a rename of this key, or to it, has begun and not ended: it takes several entries. */
export function isBeingRenamed({ keyRenames = [] }: BucketRecord, key: string): boolean {
  return keyRenames.some(({ from, to }) => from === key || to === key);
}

/** Until such a rename has ended nothing else changes either of its keys. */
function locksRenamedKey(bucket: BucketRecord, locks: readonly LockRequest[]): boolean {
  const { bucketId, keyRenames = [] } = bucket;
  if (keyRenames.length === 0) return false;
  const names = new Set(locks.map(({ name }) => name));
  return keyRenames.some(({ from, to }) => [from, to].some((key) => names.has(LOCK.key(bucketId, key))));
}

/** One version, marker or part of their order each, where there is any: none of them, and the bucket is empty. */
export function versionsOf(bucketId: BucketId): RangeAddress[] {
  return Object.values(REGION).map((region) => regionRange({ region, bucketId, limit: 1 }));
}

/** A gateway that believes an old name, state or settings authorises anew, by the row that it gets (R43, R45). */
export const bucketGuard: BucketGuard = {
  ownerOf: (row) => decodeBucket(row).owner,
  address: (bucketId) => bucketRow(bucketId as BucketId),
  check(envelope, row, access, locks = []) {
    if (row === undefined) return { bucket: null };
    const bucket = decodeBucket(row);
    // What is closing may be open again in a moment: until then it is as it was, and stays so.
    const isServed = bucket.state === 'open' || (bucket.state === 'closing' && access === 'read');
    const agrees = isServed && bucket.name === envelope.name && bucket.cfgVersion === envelope.cfgVersion;
    return agrees && !locksRenamedKey(bucket, locks) ? undefined : { bucket };
  },
};
