// Replaces a document of the request's bucket, or takes it away: one command to the bucket's home.
import type { CommandOf } from '../../../ports/metadata/port.ts';
import { AppError } from '../../../types/errors.ts';
import type { OperationContext } from '../context.ts';

type Change =
  CommandOf<'set-bucket-config'> extends infer C ? (C extends unknown ? Omit<C, 'bucketId'> : never) : never;

/** NoSuchBucket when it is gone. */
export async function setBucketDocument(context: OperationContext, change: Change): Promise<void> {
  const { homeShard, believed } = context.bucket();
  const target = { shard: homeShard, bucket: believed };
  const command = { bucketId: believed.bucketId, ...change };
  const { value } = await context.metadata.execute(target, 'set-bucket-config', command);
  if (value.kind === 'no-such-bucket')
    throw new AppError('NoSuchBucket', { fields: { BucketName: believed.name } });
}
