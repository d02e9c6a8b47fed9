// The source of CopyObject and UploadPartCopy: its bucket resolved, its reading allowed, its version found.

import { AppError } from '../../model/errors.ts';
import type { Copied } from '../../objects/object-store.ts';
import type { FoundVersion } from '../../ports/metadata-queries.ts';
import type { OperationContext, ResolvedBucket } from './context.ts';
import type { CopySource } from './copy-source.ts';
import { findCopySource } from './find-version.ts';
import type { AnswerHeaders } from './object-headers.ts';
import { objectArn } from './operation.ts';

export interface OpenCopySource extends CopySource {
  bucketRow: ResolvedBucket;
  found: FoundVersion;
}

/**
 * NoSuchBucket, AccessDenied (another account's, or x-amz-source-expected-bucket-owner says so), NoSuchKey,
 * NoSuchVersion, InvalidRequest for a delete marker.
 */
export async function openCopySource(
  context: OperationContext,
  source: CopySource,
  expectedOwner: string | undefined,
): Promise<OpenCopySource> {
  const bucketRow = await context.resolveBucket(source.bucket);
  const { record } = bucketRow;
  const action = source.versionId === undefined ? 's3:GetObject' : 's3:GetObjectVersion';
  const resource = objectArn({ bucket: record.name, key: source.key });
  const isOwnerExpected = expectedOwner === undefined || (await context.isOwner(expectedOwner, bucketRow));
  if (!isOwnerExpected || !context.authorize([[action, resource]], bucketRow)) {
    throw new AppError('AccessDenied');
  }
  const found = await findCopySource(context, bucketRow, source);
  return { ...source, bucketRow, found };
}

/** Names the version that was copied, which may be a later one than was found first (R27); not where there are none. */
export function copiedVersionHeader(source: OpenCopySource, { sourceVersionId }: Copied): AnswerHeaders {
  if (source.bucketRow.record.versioning === 'unversioned') return {};
  return { 'x-amz-copy-source-version-id': sourceVersionId };
}
