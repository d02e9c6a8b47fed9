// A bucket as its home has it now, for answers that are made of nothing else: what the cache holds may be gone.
import { AppError } from '../../../types/errors.ts';
import type { BucketRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';

/** NoSuchBucket when it is gone. */
export async function presentBucket(context: OperationContext): Promise<BucketRecord> {
  const { homeShard, claim } = context.bucket();
  const { bucketId } = claim;
  const { value } = await context.metadata.query({ shard: homeShard, bucket: claim }, 'get-bucket', {
    bucketId,
  });
  if (value.bucket === null) throw new AppError('NoSuchBucket', { fields: { BucketName: claim.name } });
  return value.bucket;
}
