// PUT of an object in one piece. The story goes on in objects/write-object.ts.

import { AppError } from '../../../../model/errors.ts';
import { LIMITS } from '../../../../model/limits.ts';
import { addChecksum } from '../../checksum-headers.ts';
import { addCustomerKey, parseCustomerKey } from '../../customer-key.ts';
import { shownVersionId } from '../../find-version.ts';
import { type AnswerHeaders, parseObjectHeaders } from '../../object-headers.ts';
import { defineOperation, objectArn } from '../../operation.ts';
import { parseTaggingHeader, taggingAccess } from '../../tagging.ts';
import { parseWriteConditions, WRITE_CONDITION_HEADERS } from '../../write-conditions.ts';

export const putObject = defineOperation({
  name: 'PutObject',
  match: { method: 'PUT', on: 'object' },
  logName: 'REST.PUT.OBJECT',
  event: 's3:ObjectCreated:Put',
  body: 'stream',
  conditions: WRITE_CONDITION_HEADERS,
  errors: [
    'BadDigest',
    'EntityTooLarge',
    'IncompleteBody',
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidRequest',
    'InvalidTag',
    'MetadataTooLarge',
    'NoSuchKey',
    'PreconditionFailed',
    'XAmzContentSHA256Mismatch',
  ],
  differences:
    'The ETag is the MD5 of the content whatever encrypts it. If-None-Match takes ETags, too, and either condition a list of them, as RFC 9110 has it.',
  parse: (request) => {
    const { bucket, key, body } = request;
    if (body.sizeBytes > LIMITS.putBytesMax) {
      throw new AppError('EntityTooLarge', {
        fields: { ProposedSize: body.sizeBytes, MaxSizeAllowed: LIMITS.putBytesMax },
      });
    }
    return {
      key,
      resource: objectArn({ bucket, key }),
      headers: parseObjectHeaders(request.headers),
      tags: parseTaggingHeader(request.headers),
      conditions: parseWriteConditions(request.headers),
      customerKey: parseCustomerKey(request),
      body,
    };
  },
  access: ({ resource, tags }) => [['s3:PutObject', resource], ...taggingAccess(resource, tags)],
  async run(context, { key, headers, tags, conditions, customerKey, body }) {
    const written = await context.objects.putObject({
      calls: context.metadata,
      bucket: context.bucket(),
      key,
      owner: context.account().accountId,
      headers,
      ...(tags && { tags }),
      customerKey: customerKey?.secret,
      body,
      ...(conditions && { conditions }),
      signal: context.signal(),
    });
    context.record.objectSizeBytes = written.sizeBytes;
    const answer: AnswerHeaders = {
      ETag: `"${written.etag}"`,
      'x-amz-version-id': shownVersionId(written.versioning, written.versionId),
    };
    addChecksum(answer, written.checksum);
    addCustomerKey(answer, customerKey);
    return { status: 200, headers: answer };
  },
});
