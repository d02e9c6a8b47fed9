// What PutObjectTagging and DeleteObjectTagging do: one command to the bucket's shard, and which version it met.
import { AppError } from '../../../types/errors.ts';
import type { Tag } from '../../../types/tags.ts';
import type { OperationContext } from '../context.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';
import { absentVersion, shownVersionId, type VersionAddress } from './find-version.ts';

/** The answer's headers. NoSuchKey, NoSuchVersion, MethodNotAllowed for a delete marker, AccessDenied as a GET. */
export async function setTags(
  context: OperationContext,
  { key, versionId, tags }: VersionAddress & { tags: Tag[] | null },
): Promise<AnswerHeaders> {
  const { homeShard, believed } = context.bucket();
  // Another object may have come between the decision and the command, also where none was there.
  const judged = context.seen.agreed({ bucketId: believed.bucketId, key, versionId });
  if (judged === 'changed') throw new AppError('ServiceUnavailable');
  const before = judged && { owner: judged.owner, tags: judged.tags };
  const { value } = await context.metadata.execute({ shard: homeShard, bucket: believed }, 'set-tags', {
    bucketId: believed.bucketId,
    key,
    ...(versionId !== undefined && { versionId }),
    tags,
    ...(before !== undefined && { before }),
  });
  if (value.kind === 'other-version') throw new AppError('ServiceUnavailable');
  if (value.kind !== 'tagged') throw await absentVersion(context, { key, versionId }, value);
  return { 'x-amz-version-id': shownVersionId(value.versioning, value.versionId) };
}
