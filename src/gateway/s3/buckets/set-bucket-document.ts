// Replaces a document of the request's bucket, or takes it away: one command to the bucket's home. And who may deal with its
// policy at all.
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

/** MethodNotAllowed for callers of other accounts, whatever the policy allows them (AWS PutBucketPolicy, "Permissions"). */
export function requireOwnAccount({ caller, bucket }: OperationContext): void {
  if (caller.kind === 'account' && caller.account.accountId === bucket().record.owner) return;
  throw new AppError('MethodNotAllowed');
}
