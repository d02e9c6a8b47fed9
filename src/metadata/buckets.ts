// A bucket's row as commands see it, and as the engine checks it before anything about the bucket is evaluated (R45).
import { assert, must } from '../lib/assert.ts';
import type { BucketId } from '../model/names.ts';
import { type BucketRecord, bucketCodec } from '../model/records/rows.ts';
import type { BucketGuard, View } from '../ports/state-machine.ts';
import { bucketRow } from './keyspace.ts';

export function findBucket(view: View, bucketId: BucketId): BucketRecord | undefined {
  const row = view.row(bucketRow(bucketId));
  return row && bucketCodec.decode(row);
}

/** For commands that the guard has let pass. */
export function openBucket(view: View, bucketId: BucketId): BucketRecord {
  const bucket = must(findBucket(view, bucketId), 'the guard has seen the bucket');
  assert(bucket.state === 'open', 'the guard lets nothing into a bucket that is not open');
  return bucket;
}

/** A gateway that believes an old name, state or settings authorises anew, by the row that it gets (R43, R45). */
export const bucketGuard: BucketGuard = {
  address: (bucketId) => bucketRow(bucketId as BucketId),
  check(envelope, row, access) {
    if (row === undefined) return { bucket: null };
    const bucket = bucketCodec.decode(row);
    // What is closing may be open again in a moment: until then it is as it was, and stays so.
    const isServed = bucket.state === 'open' || (bucket.state === 'closing' && access === 'read');
    const agrees = isServed && bucket.name === envelope.name && bucket.cfgVersion === envelope.cfgVersion;
    return agrees ? undefined : { bucket };
  },
};
