// Looks up the version that a request means and turns "not there" into the answer the caller may see. Of the source of
// a copy, too. Not here: opening its headers or its bytes.
import { assert, must } from '../../../base/assert.ts';
import { httpDate } from '../../../base/text/http-dates.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import type { ResultOf } from '../../../ports/metadata/port.ts';
import type { FoundVersion, VersionAbsence } from '../../../ports/metadata/versions.ts';
import { AppError } from '../../../types/errors.ts';
import type { ObjectKey, VersionId } from '../../../types/names.ts';
import type { VersionRecord } from '../../../types/version.ts';
import { mayHaveOlderVersions, type Versioning } from '../../../types/versioning.ts';
import type { OperationContext, ResolvedBucket } from '../context.ts';
import { bucketArn, type OperationRequest, objectArn } from '../operation.ts';
import { parseVersionId } from '../request/arguments.ts';
import type { SeenAddress } from '../seen-objects.ts';

export interface VersionAddress {
  key: ObjectKey;
  /** Absent: the current version. */
  versionId?: VersionId | undefined;
}

/** What requests say that mean one version; `resource` is what they must be allowed to touch. InvalidArgument. */
export function parseVersionAddress(request: OperationRequest): VersionAddress & { resource: string } {
  const { bucket, key, query } = request;
  return { key, resource: objectArn({ bucket, key }), versionId: parseVersionId(query.get('versionId')) };
}

/** The value of x-amz-version-id: as with AWS, a bucket that never was versioned shows none. */
export function shownVersionId(versioning: Versioning, versionId: VersionId): VersionId | undefined {
  return mayHaveOlderVersions(versioning) ? versionId : undefined;
}

/** Asks the bucket's shard. */
export async function queryVersion(
  context: OperationContext,
  bucket: ResolvedBucket,
  query: VersionAddress & { includeBody: boolean },
): Promise<ResultOf<'get-version'>> {
  const { key, versionId, includeBody } = query;
  const { bucketId } = bucket.believed;
  const reply = await context.metadata.query(
    { shard: bucket.homeShard, bucket: bucket.believed },
    'get-version',
    versionId === undefined ? { bucketId, key, includeBody } : { bucketId, key, versionId, includeBody },
  );
  return reply.value;
}

/**
 * The version that GET or HEAD shows. NoSuchKey with x-amz-delete-marker (s3-behaviour 38), AccessDenied instead for
 * callers that may not list (11, 23), NoSuchVersion, or MethodNotAllowed for a delete marker asked for by its id; with
 * `refusesMarker` also for a current one.
 */
export async function findVersion(
  context: OperationContext,
  query: VersionAddress & { includeBody: boolean; refusesMarker?: true },
): Promise<FoundVersion> {
  const bucket = context.bucket();
  const result = asJudged(context, context.bucket(), {
    address: query,
    result: await queryVersion(context, bucket, query),
  });
  if (result.kind === 'found') return result;
  const { key, refusesMarker } = query;
  const isRefused = refusesMarker === true && result.kind === 'delete-marker';
  throw await absentVersion(context, isRefused ? { key, versionId: result.versionId } : query, result);
}

/** What was found, unless it came after the request was judged as one for a missing version. Throws as requireJudged. */
function asJudged(
  context: OperationContext,
  { believed }: ResolvedBucket,
  { address, result }: { address: VersionAddress; result: ResultOf<'get-version'> },
): ResultOf<'get-version'> {
  if (result.kind !== 'found') return result;
  const { key, versionId } = address;
  const { bucketId } = believed;
  if (context.seen.compare({ bucketId, key, versionId }, result.version) === 'missing')
    return { kind: versionId === undefined ? 'no-such-key' : 'no-such-version' };
  requireJudged(context, { bucketId, key, versionId }, result.version);
  return result;
}

/**
 * ServiceUnavailable for a version that is not what the request was judged by: it may be one that the caller may not read. Who
 * asks again is judged by it.
 */
export function requireJudged(context: OperationContext, address: SeenAddress, version: VersionRecord): void {
  if (context.seen.compare(address, version) !== 'same') throw new AppError('ServiceUnavailable');
}

/** Who may list the key, taken as the prefix, may learn that it is missing (s3-behaviour 23). */
function listingAccess({ record }: ResolvedBucket, key: ObjectKey): AccessPair {
  return ['s3:ListBucket', bucketArn(record.name), undefined, { values: { 's3:prefix': key } }];
}

/** The error for a version that is missing, or has no data. */
export async function absentVersion(
  context: OperationContext,
  address: VersionAddress,
  absence: VersionAbsence,
): Promise<AppError> {
  const bucket = context.bucket();
  if (!(await context.authorize([listingAccess(bucket, address.key)], bucket))) {
    return new AppError('AccessDenied');
  }
  const fields = { Key: address.key };
  if (absence.kind === 'no-such-version') {
    return new AppError('NoSuchVersion', { fields: { ...fields, VersionId: address.versionId ?? '' } });
  }
  if (absence.kind === 'no-such-key') {
    return new AppError('NoSuchKey', { fields, headers: { 'x-amz-delete-marker': 'false' } });
  }
  const headers: Record<string, string> = { 'x-amz-delete-marker': 'true' };
  const shownId = shownVersionId(bucket.record.versioning, absence.versionId);
  if (shownId !== undefined) headers['x-amz-version-id'] = shownId;
  if (address.versionId === undefined) return new AppError('NoSuchKey', { fields, headers });
  return new AppError('MethodNotAllowed', {
    fields: { ResourceType: 'DeleteMarker' },
    headers: { ...headers, Allow: 'DELETE', 'Last-Modified': httpDate(absence.modifiedAtMs) },
  });
}

/** The version that a copy reads. Its absence is reported without markers: they are of the source, not of the answer. */
export function findCopySource(
  context: OperationContext,
  /** The bucket as it is known now: the answer may have updated it. */
  bucketNow: () => ResolvedBucket,
  address: VersionAddress,
): Promise<FoundVersion> {
  return findSource(context, bucketNow, { address, called: 'The source of a copy request' });
}

/** The versions that become parts of another object: the first missing one is reported. */
export async function findComponents(
  context: OperationContext,
  addresses: readonly VersionAddress[],
): Promise<FoundVersion[]> {
  const found: FoundVersion[] = [];
  while (found.length < addresses.length) {
    const { believed, homeShard } = context.bucket();
    const wanted = addresses
      .slice(found.length)
      .map(({ key, versionId }) => ({ key, ...(versionId !== undefined && { versionId }) }));
    const target = { shard: homeShard, bucket: believed };
    const { value } = await context.metadata.query(target, 'get-versions', {
      bucketId: believed.bucketId,
      wanted,
    });
    assert(value.found.length > 0, 'a shard answers one version at least');
    for (const result of value.found) {
      const address = must(addresses[found.length], 'no more than were asked for');
      const asked = { address, called: 'The component of a composition' };
      found.push(await requireSource(context, context.bucket(), asked, result));
    }
  }
  return found;
}

async function findSource(
  context: OperationContext,
  bucketNow: () => ResolvedBucket,
  { address, called }: { address: VersionAddress; called: string },
): Promise<FoundVersion> {
  const result = await queryVersion(context, bucketNow(), { ...address, includeBody: false });
  return requireSource(context, bucketNow(), { address, called }, result);
}

async function requireSource(
  context: OperationContext,
  bucket: ResolvedBucket,
  { address, called }: { address: VersionAddress; called: string },
  found: ResultOf<'get-version'>,
): Promise<FoundVersion> {
  const result = asJudged(context, bucket, { address, result: found });
  if (result.kind === 'found') return result;
  if (result.kind === 'delete-marker' && address.versionId !== undefined) {
    throw new AppError('InvalidRequest', {
      message: `${called} may not specifically refer to a delete marker by version id.`,
    });
  }
  if (!(await context.authorize([listingAccess(bucket, address.key)], bucket))) {
    throw new AppError('AccessDenied');
  }
  if (result.kind === 'no-such-version') {
    throw new AppError('NoSuchVersion', { fields: { Key: address.key, VersionId: address.versionId ?? '' } });
  }
  throw new AppError('NoSuchKey', { fields: { Key: address.key } });
}
