// One part of a multipart upload, with its bytes in the request.
import { LIMITS } from '../../../types/limits.ts';
import { defineOperation, objectArn } from '../operation.ts';
import { parsePartNumber, parseUploadId } from '../request/arguments.ts';
import { addChecksum } from '../request/checksum-headers.ts';
import { addCustomerKey, parseCustomerKey, requireUploadKey } from '../request/customer-key.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';
import { boundBody } from '../request/request-body.ts';
import { findUpload, requireUploadChecksum } from './find-upload.ts';

export const uploadPart = defineOperation({
  name: 'UploadPart',
  match: { method: 'PUT', on: 'object', query: ['partNumber', 'uploadId'] },
  logName: 'REST.PUT.PART',
  body: 'stream',
  errors: [
    'BadDigest',
    'EntityTooLarge',
    'IncompleteBody',
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidRequest',
    'NoSuchUpload',
    'QuotaExceeded',
    'XAmzContentSHA256Mismatch',
  ],
  differences: 'With `Transfer-Encoding: chunked` the body may come without a length, which AWS refuses.',
  parse: (request) => {
    const { bucket, key, query } = request;
    const partNumber = parsePartNumber(query.get('partNumber') ?? '');
    const body = boundBody(LIMITS.partBytesMax, request.body);
    const uploadId = parseUploadId(query.get('uploadId'));
    const customerKey = parseCustomerKey(request);
    return { key, resource: objectArn({ bucket, key }), uploadId, partNumber, customerKey, body };
  },
  access: ({ resource }) => [['s3:PutObject', resource]],
  async run(context, { key, uploadId, partNumber, customerKey, body }) {
    const upload = await findUpload(context, { key, uploadId });
    requireUploadKey(context, upload, customerKey);
    requireUploadChecksum(upload, body.checksum?.algorithm ?? body.trailerAlgorithm);
    const part = await context.objects.putPart({
      calls: context.metadata,
      bucket: context.bucket(),
      upload,
      customerKey: customerKey?.secret,
      partNumber,
      body,
      signal: context.signal(),
    });
    context.record.storedBytes = part.sizeBytes;
    const headers: AnswerHeaders = { ETag: `"${part.etag}"` };
    addChecksum(headers, part.checksum);
    addCustomerKey(headers, customerKey);
    return { status: 200, headers };
  },
});
