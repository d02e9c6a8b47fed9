// One part of a multipart upload, from the bytes of an object: a link, and an ETag that is the source's MD5 only where
// the whole of an object is taken that has one.
import { isoSeconds } from '../../../base/text/http-dates.ts';
import { xmlText } from '../../../base/xml/write-xml.ts';
import type { ByteRange } from '../../../objects/object-store.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { VersionRecord } from '../../../types/version.ts';
import type { OperationContext } from '../context.ts';
import { answerWhenDone } from '../extensions/answer-when-done.ts';
import { requireJudged } from '../objects/find-version.ts';
import { addressOf, copiedVersionHeader, openCopySource } from '../objects/open-copy-source.ts';
import { defineOperation, type OperationRequest, type OperationResult, objectArn } from '../operation.ts';
import { invalidArgument, parsePartNumber, parseUploadId } from '../request/arguments.ts';
import { checksumXml } from '../request/checksum-headers.ts';
import {
  COPY_CONDITION_HEADERS,
  parseCopyConditions,
  requireCopyConditions,
} from '../request/copy-conditions.ts';
import { copySourceValues, parseCopySource } from '../request/copy-source.ts';
import {
  customerKeyAnswer,
  parseCustomerKey,
  parseSourceKey,
  requireObjectKey,
  requireUploadKey,
} from '../request/customer-key.ts';
import { parseCopyRange } from '../request/ranges.ts';
import { s3Document } from '../request/vendor.ts';
import { findUpload } from './find-upload.ts';

type PartCopyInput = ReturnType<typeof parse>;

export const uploadPartCopy = defineOperation({
  name: 'UploadPartCopy',
  match: { method: 'PUT', on: 'object', query: ['partNumber', 'uploadId'], header: 'x-amz-copy-source' },
  logName: 'REST.COPY.PART',
  body: 'none',
  // Where the upload has checksums.
  takesLong: true,
  conditions: COPY_CONDITION_HEADERS,
  errors: [
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidRange',
    'InvalidRequest',
    'NoSuchKey',
    'NoSuchUpload',
    'NoSuchVersion',
    'PreconditionFailed',
    'QuotaExceeded',
  ],
  differences:
    'The ETag is the MD5 of the part only where the range is a whole object with an MD5 ETag; else 32 hex digits made of source version and range. A range of more than 1,100 segments of its source is InvalidRequest: copy smaller ranges.',
  parse,
  access: ({ resource, source }) => [
    ['s3:PutObject', resource, undefined, { values: copySourceValues(source) }],
  ],
  run: (context, input) =>
    answerWhenDone(
      context,
      context.withMemory({ sizeBytes: LIMITS.sourceMemoryBytes }, () => copyPart(context, input)),
      customerKeyAnswer(input.customerKey),
    ),
});

function parse(request: OperationRequest) {
  const { bucket, key, query, headers } = request;
  return {
    key,
    resource: objectArn({ bucket, key }),
    partNumber: parsePartNumber(query.get('partNumber') ?? ''),
    uploadId: parseUploadId(query.get('uploadId')),
    source: parseCopySource(headers['x-amz-copy-source'] ?? ''),
    expectedOwner: headers['x-amz-source-expected-bucket-owner'],
    range: parseRange(headers['x-amz-copy-source-range']),
    sourceConditions: parseCopyConditions(headers),
    customerKey: parseCustomerKey(request),
    sourceKey: parseSourceKey(request),
  };
}

function parseRange(header: string | undefined): ByteRange | undefined {
  if (header === undefined) return undefined;
  const range = parseCopyRange(header);
  if (range !== undefined) return range;
  throw invalidArgument({
    name: 'x-amz-copy-source-range',
    value: header,
    message:
      'The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy',
  });
}

async function copyPart(context: OperationContext, input: PartCopyInput): Promise<OperationResult> {
  const { key, uploadId, partNumber, range, customerKey, sourceKey } = input;
  const upload = await findUpload(context, { key, uploadId });
  requireUploadKey(context, upload, customerKey);
  const source = await openCopySource(context, input.source, input.expectedOwner);
  const requireFit = (version: VersionRecord) => {
    requireJudged(context, addressOf(source), version);
    requireObjectKey(context, version, sourceKey);
    requireCopyConditions(input.sourceConditions, version, context.clock.wallMs());
    requireBytes(version.sizeBytes, range);
  };
  requireFit(source.found.version);
  const { versionId } = source;
  const part = await context.objects.copyPart({
    calls: context.metadata,
    bucket: context.bucket(),
    upload,
    customerKey: customerKey?.secret,
    partNumber,
    source: {
      bucket: source.bucketRow,
      key: source.key,
      found: source.found,
      customerKey: sourceKey?.secret,
      requireFit,
      ...(versionId !== undefined && { versionId }),
    },
    ...(range && { range }),
    signal: context.signal(),
  });
  const text = s3Document(
    'CopyPartResult',
    xmlText('LastModified', isoSeconds(part.modifiedAtMs)),
    xmlText('ETag', `"${part.etag}"`),
    checksumXml(part.checksum),
  );
  return {
    status: 200,
    headers: { ...copiedVersionHeader(source, part), ...customerKeyAnswer(customerKey) },
    body: { kind: 'xml', text },
  };
}

/** s3-behaviour 32: a range beyond the source is 400 InvalidRange. A part holds 5 GiB at most. */
function requireBytes(sourceBytes: number, range: ByteRange | undefined): void {
  if (range !== undefined && range.offsetBytes + range.sizeBytes > sourceBytes) {
    throw new AppError('InvalidRange', {
      status: 400,
      message: `Range specified is not valid for source object of size: ${sourceBytes}`,
      fields: { ActualObjectSize: sourceBytes },
    });
  }
  if ((range?.sizeBytes ?? sourceBytes) > LIMITS.partBytesMax) {
    throw new AppError('InvalidRequest', {
      message: `The specified copy source is larger than the maximum allowable size for a copy source: ${LIMITS.partBytesMax}`,
    });
  }
}
