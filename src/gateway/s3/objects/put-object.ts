// PUT of an object in one piece. The story goes on in objects/write-object.ts.

import type { PutObject } from '../../../objects/object-store.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { ObjectKey } from '../../../types/names.ts';
import type { WriteConditions } from '../../../types/preconditions.ts';
import type { OperationContext } from '../context.ts';
import { appendTo } from '../extensions/append-object.ts';
import { appendAccess, composedAccess, refuseCustomerKeys } from '../extensions/composed-object.ts';
import { defineOperation, type OperationRequest, objectArn } from '../operation.ts';
import { ACL_HEADERS, aclAccess, isPrivate, parseAclHeaders } from '../request/acl-headers.ts';
import { addChecksum } from '../request/checksum-headers.ts';
import { addCustomerKey, parseCustomerKey } from '../request/customer-key.ts';
import { parseTokenHeader, TOKEN_HEADER } from '../request/idempotency-token.ts';
import { expirationHeader } from '../request/lifecycle-headers.ts';
import { type AnswerHeaders, parseObjectHeaders } from '../request/object-headers.ts';
import { admitLock, LOCK_HEADERS, lockAccess, parseLockHeaders } from '../request/object-lock.ts';
import { boundBody } from '../request/request-body.ts';
import { parseTaggingHeader, taggingAccess } from '../request/tagging.ts';
import {
  conditionAccess,
  parseWriteConditions,
  WRITE_CONDITION_HEADERS,
} from '../request/write-conditions.ts';
import { parseWriteOffset, WRITE_OFFSET_HEADER } from '../request/write-offset.ts';
import { admitWriter, resolveAcl } from '../sharing/resolve-acl.ts';
import { queryVersion, shownVersionId } from './find-version.ts';

export const putObject = defineOperation({
  name: 'PutObject',
  match: { method: 'PUT', on: 'object' },
  logName: 'REST.PUT.OBJECT',
  body: 'stream',
  conditions: [...WRITE_CONDITION_HEADERS, WRITE_OFFSET_HEADER],
  options: [TOKEN_HEADER, ...ACL_HEADERS, ...LOCK_HEADERS],
  errors: [
    'BadDigest',
    'EncryptionNotAllowed',
    'EntityTooLarge',
    'IdempotencyParameterMismatch',
    'IncompleteBody',
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidRequest',
    'InvalidTag',
    'InvalidWriteOffset',
    'MalformedACLError',
    'MetadataTooLarge',
    'NoSuchKey',
    'PreconditionFailed',
    'QuotaExceeded',
    'UnresolvableGrantByEmailAddress',
    'XAmzContentSHA256Mismatch',
  ],
  differences:
    'The ETag is the MD5 of the content whatever encrypts it. If-None-Match takes ETags, too, and either condition a list of them, as RFC 9110 has it. With x-amz-write-offset-bytes it appends, in any bucket ([extensions.md](extensions.md#append)). With `Transfer-Encoding: chunked` the body may come without a length (`mysqldump … | curl -T - URL`, signed as in [extensions.md](extensions.md#curl)), which AWS refuses. With `x-amz-object-lock-*`, or a default retention of the bucket, no Content-MD5 or checksum is demanded.',
  parse: (request) => {
    const offsetBytes = parseWriteOffset(request.headers);
    if (offsetBytes !== undefined) refuseCustomerKeys(request.headers);
    const given = parseUpload(request);
    // What is appended to keeps its list.
    if (offsetBytes !== undefined && offsetBytes > 0 && !isPrivate(given.acl))
      throw new AppError('NotImplemented', { fields: { Header: 'x-amz-acl' } });
    // An append keeps what the object has but its lock: its new version gets the default of the bucket.
    if (offsetBytes !== undefined && given.lock !== undefined)
      throw new AppError('NotImplemented', { fields: { Header: 'x-amz-object-lock-*' } });
    return {
      ...given,
      offsetBytes,
      token: parseAppendToken(request.headers, offsetBytes),
    };
  },
  access: (input, bucket) => {
    const { resource, tags, acl, offsetBytes } = input;
    if (offsetBytes === undefined) return uploadAccess(input);
    const given = [
      ...taggingAccess(resource, tags),
      ...aclAccess(resource, acl),
      ...conditionAccess(resource, input.conditions),
    ];
    if (offsetBytes > 0) return [...appendAccess(resource, bucket), ...given];
    return [...composedAccess(resource, bucket, tags && { givenTags: tags }), ...given];
  },
  async run(context, input) {
    const { key, resource, offsetBytes } = input;
    if (offsetBytes === 0 && (await isThere(context, key))) {
      // It is no new object: list and tags stay, whatever the headers say.
      await context.alsoNeed(appendAccess(resource, context.bucket().record));
      return appendTo(context, input);
    }
    if (offsetBytes !== undefined && offsetBytes > 0) return appendTo(context, input);
    const conditions: WriteConditions | undefined =
      offsetBytes === undefined ? input.conditions : { ...input.conditions, ifNoneMatch: '*' };
    return { status: 200, headers: await upload(context, { ...input, conditions }) };
  },
});

/** What PUT and the form of POST (post-object.ts) have in common: an object that comes in one piece, and what it keeps. */
export type Upload = ReturnType<typeof parseUpload>;

/** Of a form its fields stand as headers. */
export function parseUpload(request: OperationRequest) {
  const { bucket, key, headers } = request;
  return {
    key,
    resource: objectArn({ bucket, key }),
    body: boundBody(LIMITS.putBytesMax, request.body),
    headers: parseObjectHeaders(headers),
    tags: parseTaggingHeader(headers),
    acl: parseAclHeaders(headers),
    lock: parseLockHeaders(headers),
    conditions: parseWriteConditions(headers),
    customerKey: parseCustomerKey(request),
  };
}

export function uploadAccess({
  resource,
  tags,
  acl,
  lock,
  conditions,
}: Pick<Upload, 'resource' | 'tags' | 'acl' | 'lock' | 'conditions'>): readonly AccessPair[] {
  return [
    ['s3:PutObject', resource, undefined, { givenTags: tags }],
    ...conditionAccess(resource, conditions),
    ...taggingAccess(resource, tags),
    ...aclAccess(resource, acl),
    ...lockAccess(resource, lock),
  ];
}

/** Writes it; the headers of the answer. */
export async function upload(
  context: OperationContext,
  input: Upload & Pick<PutObject, 'event'>,
): Promise<AnswerHeaders> {
  const { key, headers, tags, customerKey, body, conditions, event } = input;
  const lock = await admitLock(context, input.lock);
  const owner = await admitWriter(context);
  const bucketOwner = context.bucket().record.owner;
  const acl = await resolveAcl(context, input.acl, { owner, bucketOwner });
  const written = await context.objects.putObject({
    calls: context.metadata,
    bucket: context.bucket(),
    key,
    owner,
    headers,
    ...(tags && { tags }),
    acl,
    lock,
    customerKey: customerKey?.secret,
    body,
    ...(conditions && { conditions }),
    ...(event && { event }),
    signal: context.signal(),
  });
  context.record.objectSizeBytes = written.sizeBytes;
  context.record.storedBytes = written.sizeBytes;
  const answer: AnswerHeaders = {
    ETag: `"${written.etag}"`,
    'x-amz-version-id': shownVersionId(written.versioning, written.versionId),
    'x-amz-expiration': expirationHeader(context, { key, tags, ...written }),
  };
  addChecksum(answer, written.checksum);
  addCustomerKey(answer, customerKey);
  return answer;
}

/**
 * The token of an append by its offset. InvalidRequest with an offset of 0, which may create the object: nothing would be
 * stored for that, and a repetition would get a wrong offset. NotImplemented without an offset.
 */
function parseAppendToken(
  headers: OperationRequest['headers'],
  offsetBytes: number | undefined,
): string | undefined {
  const token = parseTokenHeader(headers);
  if (token === undefined) return undefined;
  if (offsetBytes === undefined) throw new AppError('NotImplemented', { fields: { Header: TOKEN_HEADER } });
  if (offsetBytes > 0) return token;
  throw new AppError('InvalidRequest', {
    message: `An idempotency token does not go with ${WRITE_OFFSET_HEADER}: 0, which makes an object that is not there.`,
  });
}

/** An offset of 0 makes an object that is not there (AWS PutObject, x-amz-write-offset-bytes). */
async function isThere(context: OperationContext, key: ObjectKey): Promise<boolean> {
  const found = await queryVersion(context, context.bucket(), { key, includeBody: false });
  return found.kind === 'found';
}
