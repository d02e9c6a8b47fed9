// The uploads of a bucket that are neither completed nor aborted, by key and then by time of initiation.
import { isoSeconds } from '../../../base/text/http-dates.ts';
import type { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { AccountId, UploadId } from '../../../types/names.ts';
import type { UploadRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation, type QueryParameters } from '../operation.ts';
import { invalidArgument, isUploadId, parseCount, parseEncodingType } from '../request/arguments.ts';
import { s3Document } from '../request/vendor.ts';
import { commonPrefixesXml, identityXml, nameWriter, type WriteName, writeInTurns } from '../xml/list-xml.ts';

export const listMultipartUploads = defineOperation({
  name: 'ListMultipartUploads',
  match: { method: 'GET', on: 'bucket', query: ['uploads'] },
  logName: 'REST.GET.UPLOADS',
  body: 'none',
  errors: ['InvalidArgument'],
  parse: ({ bucket, query }) => {
    const isUrlEncoded = parseEncodingType(query);
    return {
      bucket,
      resource: bucketArn(bucket),
      prefix: query.get('prefix') ?? '',
      delimiter: query.get('delimiter') || undefined,
      ...parseMarkers(query),
      max: parseCount(query, { name: 'max-uploads', most: LIMITS.listPageMax }),
      isUrlEncoded,
      writeName: nameWriter(isUrlEncoded),
    };
  },
  access: ({ resource }) => [['s3:ListBucketMultipartUploads', resource]],
  memoryBytes: ({ max }) => max * LIMITS.listedKeyMemoryBytes,
  async run(context, input) {
    const { homeShard, believed } = context.bucket();
    const { prefix, delimiter, keyMarker, uploadIdMarker, max, writeName } = input;
    const { value: page } = await context.metadata.query(
      { shard: homeShard, bucket: believed },
      'list-uploads',
      {
        bucketId: believed.bucketId,
        prefix,
        max,
        ...(delimiter !== undefined && { delimiter }),
        ...(keyMarker && { keyMarker }),
        ...(uploadIdMarker && { uploadIdMarker }),
      },
    );
    if (page.isMarkerOfOtherKey) throw invalidUploadMarker(uploadIdMarker);
    await context.turn();
    const text = s3Document(
      'ListMultipartUploadsResult',
      `<Bucket>${input.bucket}</Bucket><KeyMarker>${writeName(keyMarker)}</KeyMarker><UploadIdMarker>${uploadIdMarker}</UploadIdMarker>` +
        `<NextKeyMarker>${writeName(page.nextKeyMarker ?? '')}</NextKeyMarker><NextUploadIdMarker>${page.nextUploadIdMarker ?? ''}</NextUploadIdMarker>` +
        (delimiter === undefined ? '' : `<Delimiter>${writeName(delimiter)}</Delimiter>`) +
        `<Prefix>${writeName(prefix)}</Prefix>${input.isUrlEncoded ? '<EncodingType>url</EncodingType>' : ''}` +
        `<MaxUploads>${max}</MaxUploads><IsTruncated>${page.isTruncated}</IsTruncated>` +
        (await uploadsXml(context, page.uploads, writeName)) +
        (await commonPrefixesXml(context, page.commonPrefixes, writeName)),
    );
    return { status: 200, body: { kind: 'xml', text } };
  },
});

/** An upload id says where to go on within a key, so without a key it says nothing, as AWS has it. */
function parseMarkers(query: QueryParameters): { keyMarker: string; uploadIdMarker: UploadId | '' } {
  const keyMarker = query.get('key-marker') ?? '';
  const uploadIdMarker = query.get('upload-id-marker') ?? '';
  if (keyMarker === '' || uploadIdMarker === '') return { keyMarker, uploadIdMarker: '' };
  if (isUploadId(uploadIdMarker)) return { keyMarker, uploadIdMarker };
  throw invalidUploadMarker(uploadIdMarker);
}

function invalidUploadMarker(value: string): AppError {
  return invalidArgument({ name: 'upload-id-marker', value, message: 'Invalid uploadId marker' });
}

/** s3-behaviour 33: initiator and owner, each with ID and DisplayName. */
async function uploadsXml(
  context: OperationContext,
  uploads: readonly UploadRecord[],
  writeName: WriteName,
): Promise<string> {
  const identities = new Map<AccountId, string>();
  for (const accountId of uploads.flatMap((upload) => [upload.initiator, upload.owner])) {
    if (!identities.has(accountId)) identities.set(accountId, await identityXml(context, accountId));
  }
  return writeInTurns(context, uploads, ({ key, uploadId, initiator, owner, initiatedAtMs, checksum }) => {
    let xml =
      `<Upload><Key>${writeName(key)}</Key><UploadId>${uploadId}</UploadId><Initiator>${identities.get(initiator)}</Initiator>` +
      `<Owner>${identities.get(owner)}</Owner><StorageClass>STANDARD</StorageClass><Initiated>${isoSeconds(initiatedAtMs)}</Initiated>`;
    if (checksum !== undefined) {
      xml += `<ChecksumAlgorithm>${checksum.algorithm}</ChecksumAlgorithm><ChecksumType>${checksum.type}</ChecksumType>`;
    }
    return `${xml}</Upload>`;
  });
}
