// Makes an object of the parts of an upload. All is decided in one command of the shard, which also keeps the answer,
// so that repeating the request repeats it (s3-behaviour 29).

import { unreachable } from '../../../base/assert.ts';
import { xmlText } from '../../../base/xml/write-xml.ts';
import type { CommandOf, OutcomeOf } from '../../../ports/metadata/port.ts';
import type { ChecksumType } from '../../../types/checksums.ts';
import { blockedRemoval } from '../../../types/delete-blocker.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { BucketName, ObjectKey, UploadId } from '../../../types/names.ts';
import { overQuotaError } from '../../../types/quota.ts';
import type { OperationContext } from '../context.ts';
import { answerWhenDone } from '../extensions/answer-when-done.ts';
import { shownVersionId } from '../objects/find-version.ts';
import { madeExpiration } from '../objects/made-expiration.ts';
import { defineOperation, type OperationRequest, type OperationResult, objectArn } from '../operation.ts';
import { parseUploadId } from '../request/arguments.ts';
import { checksumXml, parseChecksumType, parseObjectChecksum } from '../request/checksum-headers.ts';
import { type CustomerKey, parseCustomerKey, requireUploadKey } from '../request/customer-key.ts';
import { s3Document } from '../request/vendor.ts';
import {
  conditionAccess,
  parseWriteConditions,
  WRITE_CONDITION_HEADERS,
} from '../request/write-conditions.ts';
import { parseCompleteBody } from '../xml/complete-body.ts';
import { percentEncode } from '../xml/list-xml.ts';
import { noSuchUpload, queryUpload, requireUploadOrAnswer } from './find-upload.ts';

type Complete = CommandOf<'complete-upload'>;
type Completed = Extract<OutcomeOf<'complete-upload'>, { kind: 'committed' }>;

interface CompleteHead {
  bucket: BucketName;
  key: ObjectKey;
  resource: string;
  uploadId: UploadId;
  expected: NonNullable<Complete['expected']>;
  checksumType: ChecksumType | undefined;
  customerKey: CustomerKey | undefined;
  conditions: Complete['conditions'] | undefined;
}

type CompleteInput = CompleteHead & Pick<Complete, 'parts'>;

export const completeMultipartUpload = defineOperation({
  name: 'CompleteMultipartUpload',
  match: { method: 'POST', on: 'object', query: ['uploadId'] },
  logName: 'REST.POST.UPLOAD',
  body: 'xml',
  checksumOf: 'object',
  conditions: WRITE_CONDITION_HEADERS,
  bodyBytesMax: LIMITS.completeBodyBytesMax,
  errors: [
    'BadDigest',
    'EntityTooLarge',
    'EntityTooSmall',
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidPart',
    'InvalidPartOrder',
    'InvalidRequest',
    'MalformedXML',
    'NoSuchKey',
    'NoSuchUpload',
    'PreconditionFailed',
    'QuotaExceeded',
  ],
  differences:
    'The key of the customer is not needed; one that is sent must be that of the upload. A checksum that the request lacks or that contradicts the parts is BadDigest. An answer that takes long begins with 200 and white space; then an error is its body.',
  parse: (request): CompleteHead => {
    const { bucket, key, query } = request;
    return {
      bucket,
      key,
      resource: objectArn({ bucket, key }),
      uploadId: parseUploadId(query.get('uploadId')),
      expected: parseExpected(request.headers),
      checksumType: parseChecksumType(request.headers),
      customerKey: parseCustomerKey(request),
      conditions: parseWriteConditions(request.headers),
    };
  },
  access: ({ resource, conditions }) => [
    ['s3:PutObject', resource],
    ...conditionAccess(resource, conditions),
  ],
  precheck: (context, { key, uploadId }) => requireUploadOrAnswer(context, { key, uploadId }),
  parseDocument: (xmlBody) => parseCompleteBody(xmlBody),
  run: (context, head, parts) => answerWhenDone(context, complete(context, { ...head, parts })),
});

/** What the client says the whole is: a checksum, x-amz-mp-object-size. */
function parseExpected(headers: OperationRequest['headers']): CompleteHead['expected'] {
  const expected: CompleteHead['expected'] = {};
  const checksum = parseObjectChecksum(headers);
  if (checksum !== undefined) expected.checksum = checksum;
  const size = headers['x-amz-mp-object-size'];
  if (size === undefined) return expected;
  if (!/^\d{1,15}$/.test(size)) {
    throw new AppError('InvalidRequest', {
      message: `Value for x-amz-mp-object-size header is invalid: '${size}'`,
    });
  }
  return { ...expected, sizeBytes: Number(size) };
}

async function complete(context: OperationContext, input: CompleteInput): Promise<OperationResult> {
  const { bucket, key, uploadId, parts, expected, conditions } = input;
  const { homeShard, believed } = context.bucket();
  if (input.checksumType !== undefined || input.customerKey !== undefined)
    await requireSameUpload(context, input);
  const { value } = await context.metadata.execute(
    { shard: homeShard, bucket: believed },
    'complete-upload',
    {
      bucketId: believed.bucketId,
      key,
      uploadId,
      parts,
      expected,
      ...(conditions && { conditions }),
    },
  );
  if (value.kind !== 'committed') throw refusalOf(value, input);
  const text = s3Document(
    'CompleteMultipartUploadResult',
    xmlText('Location', `${context.bucketUrl()}/${percentEncode(key)}`),
    xmlText('Bucket', bucket),
    xmlText('Key', key),
    xmlText('ETag', `"${value.etag}"`),
    checksumXml(value.checksum),
  );
  const headers = {
    'x-amz-version-id': shownVersionId(value.versioning, value.versionId),
    'x-amz-expiration': await madeExpiration(context, { key, versionId: value.versionId }),
  };
  return { status: 200, headers, body: { kind: 'xml', text } };
}

/**
 * The upload is as the request says: of this checksum type, begun with this key. One that is gone is not looked at: the
 * request may be a repetition.
 */
async function requireSameUpload(
  context: OperationContext,
  { key, uploadId, customerKey, checksumType }: CompleteInput,
): Promise<void> {
  const upload = await queryUpload(context, { key, uploadId });
  if (upload === null) return;
  if (customerKey !== undefined) requireUploadKey(context, upload, customerKey);
  if (checksumType === undefined || upload.checksum === undefined || upload.checksum.type === checksumType)
    return;
  throw new AppError('BadDigest', {
    message: `The upload was created using the ${upload.checksum.type} checksum mode. The complete request must use the same checksum mode.`,
  });
}

function refusalOf(
  refusal: Exclude<OutcomeOf<'complete-upload'>, Completed>,
  input: CompleteInput,
): AppError {
  const UploadId = input.uploadId;
  switch (refusal.kind) {
    case 'no-such-upload':
      return noSuchUpload(UploadId);
    case 'invalid-part': {
      const { partNumber } = refusal;
      const etag = input.parts.find((part) => part.partNumber === partNumber)?.etag ?? '';
      return new AppError('InvalidPart', { fields: { UploadId, PartNumber: partNumber, ETag: etag } });
    }
    case 'invalid-part-order':
      return new AppError('InvalidPartOrder', { fields: { UploadId } });
    case 'part-too-small':
      return new AppError('EntityTooSmall', {
        fields: {
          ProposedSize: refusal.sizeBytes,
          MinSizeAllowed: LIMITS.partBytesMin,
          PartNumber: refusal.partNumber,
          ETag: refusal.etag,
        },
      });
    case 'too-large':
      return new AppError('EntityTooLarge', { fields: { MaxSizeAllowed: LIMITS.objectBytesMax } });
    case 'too-many-segments': {
      const message =
        'The parts of the upload are copies of more pieces of other objects than one object may be made of. Upload some of them with their bytes, or abort the upload.';
      return new AppError('InvalidRequest', { message });
    }
    case 'size-mismatch': {
      const message = `The provided 'x-amz-mp-object-size' header value ${input.expected.sizeBytes} does not match what was computed`;
      return new AppError('InvalidRequest', { message });
    }
    case 'bad-checksum': {
      const message = `The ${refusal.algorithm.toLowerCase()} you specified did not match the calculated checksum.`;
      return new AppError('BadDigest', { message });
    }
    case 'checksum-missing': {
      const message = `The upload was created using a checksum. The complete request must include the checksum for each part. It was missing for part ${refusal.partNumber} in the request.`;
      return new AppError('BadDigest', { message });
    }
    case 'precondition-failed':
      return new AppError('PreconditionFailed', { fields: { Condition: refusal.condition } });
    case 'no-such-key':
      return new AppError('NoSuchKey', { fields: { Key: input.key } });
    case 'blocked':
      return blockedRemoval(refusal.blocker);
    case 'over-quota':
    case 'over-lease':
      return overQuotaError(refusal);
    default:
      return unreachable(refusal);
  }
}
