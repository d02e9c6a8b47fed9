// The parts that an upload has so far, in the order of their numbers.
import { isoSeconds } from '../../../base/text/http-dates.ts';
import { escapeXml } from '../../../base/xml/write-xml.ts';
import type { ListedPart } from '../../../ports/metadata/uploads.ts';
import { LIMITS } from '../../../types/limits.ts';
import { noSuchUpload } from '../multipart/find-upload.ts';
import { requireOwnUpload } from '../multipart/own-upload.ts';
import { defineOperation, objectArn } from '../operation.ts';
import { parseCount, parseNumberMarker, parseUploadId } from '../request/arguments.ts';
import { checksumXml } from '../request/checksum-headers.ts';
import { parseCustomerKey, requireUploadKey } from '../request/customer-key.ts';
import { abortHeaders } from '../request/lifecycle-headers.ts';
import { s3Document } from '../request/vendor.ts';
import { identityXml } from '../xml/list-xml.ts';

/** Memory of a part with its checksum while the page is read and made, about. */
const LISTED_PART_BYTES = 4096;

export const listParts = defineOperation({
  name: 'ListParts',
  match: { method: 'GET', on: 'object', query: ['uploadId'] },
  logName: 'REST.GET.UPLOAD',
  body: 'none',
  errors: ['InvalidArgument', 'InvalidEncryptionAlgorithmError', 'InvalidRequest', 'NoSuchUpload'],
  differences: 'The key of the customer is not needed; one that is sent must be that of the upload.',
  parse: (request) => {
    const { bucket, key, query } = request;
    return {
      bucket,
      key,
      resource: objectArn({ bucket, key }),
      uploadId: parseUploadId(query.get('uploadId')),
      max: parseCount(query, { name: 'max-parts', most: LIMITS.listPageMax }),
      after: parseNumberMarker(query, 'part-number-marker'),
      customerKey: parseCustomerKey(request),
    };
  },
  access: ({ resource }) => [['s3:ListMultipartUploadParts', resource]],
  memoryBytes: ({ max }) => max * LISTED_PART_BYTES,
  async run(context, { bucket, key, resource, uploadId, max, after, customerKey }) {
    const { homeShard, believed } = context.bucket();
    const { value } = await context.metadata.query({ shard: homeShard, bucket: believed }, 'list-parts', {
      bucketId: believed.bucketId,
      key,
      uploadId,
      after,
      max,
    });
    if (value.kind === 'no-such-upload') throw noSuchUpload(uploadId);
    const { upload, parts, isTruncated } = value;
    const { initiator } = upload;
    await requireOwnUpload(context, { action: 's3:ListMultipartUploadParts', resource, initiator });
    if (customerKey !== undefined) requireUploadKey(context, upload, customerKey);
    const checksum = upload.checksum;
    await context.turn();
    const text = s3Document(
      'ListPartsResult',
      `<Bucket>${bucket}</Bucket><Key>${escapeXml(key)}</Key><UploadId>${uploadId}</UploadId>` +
        `<Initiator>${await identityXml(context, initiator)}</Initiator>` +
        `<Owner>${await identityXml(context, upload.owner)}</Owner><StorageClass>STANDARD</StorageClass>` +
        `<PartNumberMarker>${after}</PartNumberMarker>` +
        `<NextPartNumberMarker>${parts.at(-1)?.partNumber ?? 0}</NextPartNumberMarker>` +
        `<MaxParts>${max}</MaxParts><IsTruncated>${isTruncated}</IsTruncated>` +
        (checksum === undefined
          ? ''
          : `<ChecksumAlgorithm>${checksum.algorithm}</ChecksumAlgorithm><ChecksumType>${checksum.type}</ChecksumType>`) +
        parts.map(partXml).join(''),
    );
    return { status: 200, headers: abortHeaders(context, upload), body: { kind: 'xml', text } };
  },
});

function partXml(part: ListedPart): string {
  return `<Part><PartNumber>${part.partNumber}</PartNumber><LastModified>${isoSeconds(part.modifiedAtMs)}</LastModified><ETag>&quot;${part.etag}&quot;</ETag><Size>${part.sizeBytes}</Size>${checksumXml(part.checksum)}</Part>`;
}
