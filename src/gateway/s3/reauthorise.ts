// What a request does when a shard says that its bucket has changed (R45): the row is read anew, and the request judged
// by it again before it goes on.

import type { BelievedBucket } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { BucketCache } from './buckets/bucket-cache.ts';
import type { ResolvedBucket } from './context.ts';

/**
 * The bucket was deleted and created again: what the request has resolved so far is of the old one. Or it has changed, and the
 * operation has decided by it as it was. It begins again where it can (pipeline-steps.ts, runOperation); otherwise clients do,
 * by the error that they get.
 */
export class BucketReplaced extends AppError {
  readonly present: ResolvedBucket;

  constructor(present: ResolvedBucket) {
    super('ServiceUnavailable');
    this.present = present;
  }
}

/** The claim to go on with. NoSuchBucket, BucketReplaced, and what `judge` throws where the request may not. */
export async function reauthorise(
  buckets: BucketCache,
  stale: BelievedBucket,
  judge: (bucket: ResolvedBucket) => Promise<void>,
): Promise<BelievedBucket> {
  const bucket = await buckets.read(stale.name);
  if (bucket === undefined) throw new AppError('NoSuchBucket', { fields: { BucketName: stale.name } });
  if (bucket.record.bucketId !== stale.bucketId) throw new BucketReplaced(bucket);
  await judge(bucket);
  return bucket.believed;
}
