// What PutObjectRetention and PutObjectLegalHold do: one command to the bucket's shard, which changes one version's row and
// decides whether that may be.
import { unreachable } from '../../../base/assert.ts';
import type { ProtectionChange } from '../../../ports/metadata/versions.ts';
import { blockedRemoval } from '../../../types/delete-blocker.ts';
import { AppError } from '../../../types/errors.ts';
import type { OperationContext } from '../context.ts';
import { missingObjectLock } from '../request/object-lock.ts';
import { absentVersion, type VersionAddress } from './find-version.ts';

/** AccessDenied where it would protect the version less; MethodNotAllowed for a delete marker; else as a GET. */
export async function setLock(
  context: OperationContext,
  { key, versionId }: VersionAddress,
  change: Extract<ProtectionChange, { kind: 'retention' | 'legal-hold' }>,
): Promise<void> {
  const { homeShard, believed } = context.bucket();
  const { value } = await context.metadata.execute({ shard: homeShard, bucket: believed }, 'set-protection', {
    bucketId: believed.bucketId,
    key,
    ...(versionId !== undefined && { versionId }),
    change,
  });
  switch (value.kind) {
    case 'set':
      return;
    case 'blocked':
      throw blockedRemoval({ by: 'retention' });
    case 'retention-passed':
      throw blockedRemoval({ by: 'retention-passed' });
    case 'not-enabled':
      throw missingObjectLock();
    case 'other-version':
      throw new AppError('ServiceUnavailable');
    case 'delete-marker':
      throw await absentVersion(context, { key, versionId: value.versionId }, value);
    case 'no-such-key':
    case 'no-such-version':
      throw await absentVersion(context, { key, versionId }, value);
    default:
      return unreachable(value);
  }
}
