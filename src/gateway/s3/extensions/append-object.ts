// PUT ?append: more bytes behind those of an object that is there (service 4.2). The story goes on in
// objects/append-object.ts.
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { ObjectKey } from '../../../types/names.ts';
import type { WriteConditions } from '../../../types/preconditions.ts';
import type { OperationContext } from '../context.ts';
import { madeExpiration } from '../objects/made-expiration.ts';
import { defineOperation, type OperationResult, objectArn } from '../operation.ts';
import { idempotencyToken, parseTokenHeader, TOKEN_HEADER } from '../request/idempotency-token.ts';
import { boundBody, type RequestBody } from '../request/request-body.ts';
import {
  conditionAccess,
  parseWriteConditions,
  WRITE_CONDITION_HEADERS,
} from '../request/write-conditions.ts';
import { parseWriteOffset, WRITE_OFFSET_HEADER } from '../request/write-offset.ts';
import { appendAccess, composedHeaders, refuseCopySource, refuseCustomerKeys } from './composed-object.ts';

export interface AppendInput {
  key: ObjectKey;
  resource: string;
  body: RequestBody;
  offsetBytes: number | undefined;
  conditions: WriteConditions | undefined;
  token: string | undefined;
}

export const appendObject = defineOperation({
  name: 'AppendObject',
  match: { method: 'PUT', on: 'object', query: ['append'] },
  logName: 'REST.PUT.APPEND',
  body: 'stream',
  conditions: [...WRITE_CONDITION_HEADERS, WRITE_OFFSET_HEADER],
  options: [TOKEN_HEADER],
  errors: [
    'BadDigest',
    'EncryptionNotAllowed',
    'EntityTooLarge',
    'IdempotencyParameterMismatch',
    'IncompleteBody',
    'InvalidArgument',
    'InvalidRequest',
    'InvalidWriteOffset',
    'NoSuchKey',
    'PreconditionFailed',
    'QuotaExceeded',
    'XAmzContentSHA256Mismatch',
  ],
  differences:
    'Not of AWS: the body goes behind the bytes of the object that is there, whose headers, tags and owner stay ([extensions.md](extensions.md#append)). It may come without a length, as that of PutObject.',
  parse: (request) => {
    const { bucket, key, headers } = request;
    refuseCustomerKeys(headers);
    refuseCopySource(headers);
    const body = boundBody(LIMITS.putBytesMax, request.body);
    return {
      key,
      body,
      resource: objectArn({ bucket, key }),
      offsetBytes: parseWriteOffset(headers),
      conditions: parseWriteConditions(headers),
      token: parseTokenHeader(headers),
    };
  },
  access: ({ resource, conditions }, bucket) => [
    ...appendAccess(resource, bucket),
    ...conditionAccess(resource, conditions),
  ],
  run: (context, input) => appendTo(context, input),
});

export async function appendTo(context: OperationContext, input: AppendInput): Promise<OperationResult> {
  const { key, resource, body, offsetBytes, conditions, token } = input;
  const mayRead = () => context.mayAlso([['s3:GetObject', resource]], context.bucket());
  const append = context.objects.appendObject({
    calls: context.metadata,
    bucket: context.bucket(),
    key,
    body,
    offsetBytes,
    ...(conditions && { conditions }),
    ...(token !== undefined && {
      tokenOf: ({ md5, sizeBytes }) =>
        idempotencyToken(token, ['AppendObject', key, offsetBytes, conditions, sizeBytes, md5]),
    }),
    signal: context.signal(),
  });
  const written = await append.catch(async (error: unknown) => {
    const tellsSize = error instanceof AppError && error.code === 'InvalidWriteOffset';
    throw tellsSize && !(await mayRead()) ? new AppError('InvalidWriteOffset') : error;
  });
  context.record.objectSizeBytes = written.sizeBytes;
  if (body.sizeBytes !== undefined) context.record.storedBytes = body.sizeBytes;
  const { ETag, 'x-amz-version-id': versionId, ...checksum } = composedHeaders(written);
  // Those of the whole tell what was there before.
  const ofWhole = (await mayRead()) && {
    ETag,
    ...checksum,
    'x-amz-object-size': written.sizeBytes,
    'x-amz-expiration': await madeExpiration(context, { key, versionId: written.versionId }),
  };
  return { status: 200, headers: { 'x-amz-version-id': versionId, ...ofWhole } };
}
