// DeleteBucket: the home decides that the bucket is empty and ends it, then the system shard forgets the name (R42). The
// outbox of the home does the second step, should this gateway not get to it.

import { SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import { AppError } from '../../../types/errors.ts';
import { bucketArn, defineOperation } from '../operation.ts';

export const deleteBucket = defineOperation({
  name: 'DeleteBucket',
  match: { method: 'DELETE', on: 'bucket' },
  logName: 'REST.DELETE.BUCKET',
  body: 'none',
  // Any value but "true", which is another operation, means that the flag is absent (extensions 2.5).
  parameters: ['force_delete'],
  errors: ['BucketNotEmpty'],
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:DeleteBucket', resource]],
  async run(context) {
    const { homeShard, believed } = context.bucket();
    const { bucketId, name } = believed;
    const target = { shard: homeShard, bucket: believed };
    const { value } = await context.metadata.execute(target, 'delete-bucket', { bucketId });
    const fields = { BucketName: name };
    if (value.kind === 'not-empty') throw new AppError('BucketNotEmpty', { fields });
    if (value.kind === 'no-such-bucket') throw new AppError('NoSuchBucket', { fields });
    const { owner } = value.bucket;
    context.forgetBucket(name);
    await context.metadata.execute({ shard: SYSTEM_SHARD }, 'forget-name', { name, bucketId, owner });
    return { status: 204 };
  },
});
