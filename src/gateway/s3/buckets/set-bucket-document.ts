// Replaces a document of the request's bucket, or takes it away: one command to the bucket's home. And who may deal with its
// policy at all.
import { unreachable } from '../../../base/assert.ts';
import type { ConfigRefusal } from '../../../ports/metadata/buckets.ts';
import type { CommandOf } from '../../../ports/metadata/port.ts';
import { AppError } from '../../../types/errors.ts';
import type { BucketName } from '../../../types/names.ts';
import type { OperationContext } from '../context.ts';

/** A document with its kind, as `set-bucket-config` takes it. */
type BucketDocument =
  CommandOf<'set-bucket-config'> extends infer C ? (C extends unknown ? Omit<C, 'bucketId'> : never) : never;

/** NoSuchBucket when it is gone; InvalidBucketState, ServiceUnavailable, AccessDenied for what does not fit to what it is. */
export async function setBucketDocument(context: OperationContext, change: BucketDocument): Promise<void> {
  const { homeShard, believed } = context.bucket();
  const target = { shard: homeShard, bucket: believed };
  const command = { bucketId: believed.bucketId, ...change };
  const { value } = await context.metadata.execute(target, 'set-bucket-config', command);
  if (value.kind === 'no-such-bucket')
    throw new AppError('NoSuchBucket', { fields: { BucketName: believed.name } });
  if (value.kind === 'refused')
    throw refusedDocument(value.because, { kind: change.kind, name: believed.name });
}

/** What clients are told of a document that does not fit. */
function refusedDocument(
  because: ConfigRefusal,
  { kind, name }: { kind: BucketDocument['kind']; name: BucketName },
): AppError {
  const fields = { BucketName: name };
  switch (because) {
    case 'needs-versioning':
      return new AppError('InvalidBucketState', {
        message: "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
        fields,
      });
    case 'has-object-lock':
      return new AppError('InvalidBucketState', {
        message:
          kind === 'versioning'
            ? 'An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.'
            : 'The bucket has object lock, which excludes this setting.',
        fields,
      });
    case 'has-compliance':
      return new AppError('InvalidBucketState', {
        message: 'The bucket is protected by compliance, which excludes object lock.',
        fields,
      });
    case 'keys-are-moving':
      // For a moment: clients try again by themselves.
      return new AppError('ServiceUnavailable', {
        message: 'Keys of the bucket are being renamed. Try again when that has ended.',
        fields,
      });
    case 'locked-status':
    case 'locked-retention-days':
    case 'locked-lock-time': {
      const message = `Access Denied because the compliance settings of the bucket are locked: ${LOCKED[because]}.`;
      return new AppError('AccessDenied', { message, fields });
    }
    default:
      return unreachable(because);
  }
}

const LOCKED = {
  'locked-status': 'Status cannot be changed to disabled',
  'locked-retention-days': 'RetentionDays cannot be reduced',
  'locked-lock-time': 'LockTime cannot be changed',
} as const;

/** MethodNotAllowed for callers of other accounts, whatever the policy allows them (AWS PutBucketPolicy, "Permissions"). */
export function requireOwnAccount({ caller, bucket }: OperationContext): void {
  if (caller.kind === 'account' && caller.account.accountId === bucket().record.owner) return;
  throw new AppError('MethodNotAllowed');
}
