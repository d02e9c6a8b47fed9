// The source of CopyObject and UploadPartCopy: its bucket resolved, its reading allowed, its version found.

import type { Copied } from '../../../objects/object-store.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import type { FoundVersion } from '../../../ports/metadata/versions.ts';
import { accessDenied } from '../access-record.ts';
import type { OperationContext, ResolvedBucket } from '../context.ts';
import { objectArn } from '../operation.ts';
import { BucketReplaced } from '../reauthorise.ts';
import type { CopySource } from '../request/copy-source.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';
import type { SeenAddress } from '../seen-objects.ts';
import { findCopySource } from './find-version.ts';

export interface OpenCopySource extends CopySource {
  bucketRow: ResolvedBucket;
  found: FoundVersion;
  /** The request needs these on the source's bucket, too: as OperationContext.alsoNeed. */
  alsoNeed(pairs: readonly AccessPair[]): Promise<void>;
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
  const { versionId } = source;
  const action = versionId === undefined ? 's3:GetObject' : 's3:GetObjectVersion';
  const needed: AccessPair[] = [];
  const mayRead = async (bucket: ResolvedBucket) => {
    if (expectedOwner !== undefined && !(await context.isOwner(expectedOwner, bucket))) return false;
    const resource = objectArn({ bucket: bucket.record.name, key: source.key });
    return context.authorize([[action, resource, undefined, { versionId }], ...needed], bucket);
  };
  const find = async () => {
    const bucket = await context.resolveBucket(source.bucket, mayRead);
    const found = await findCopySource(context, bucket, source);
    const alsoNeed: OpenCopySource['alsoNeed'] = async (pairs) => {
      needed.push(...pairs);
      if (!(await context.authorize(pairs, bucket()))) throw accessDenied(context.record);
    };
    return { ...source, bucketRow: bucket(), found, alsoNeed };
  };
  try {
    return await find();
  } catch (error) {
    // Deleted and made again since it was cached: nothing is done yet, and by now the cache has the new one. Where it is
    // the target as well, the whole request begins anew.
    const isSource = error instanceof BucketReplaced && error.present.record.name === source.bucket;
    if (!isSource || source.bucket === context.bucket().record.name) throw error;
    return find();
  }
}

/** As decisions name it. */
export function addressOf({ bucketRow, key, versionId }: OpenCopySource): SeenAddress {
  return { bucketId: bucketRow.record.bucketId, key, versionId };
}

/** Names the version that was copied, which may be a later one than was found first (R27); not where there are none. */
export function copiedVersionHeader(source: OpenCopySource, { sourceVersionId }: Copied): AnswerHeaders {
  if (source.bucketRow.record.versioning === 'unversioned') return {};
  return { 'x-amz-copy-source-version-id': sourceVersionId };
}
