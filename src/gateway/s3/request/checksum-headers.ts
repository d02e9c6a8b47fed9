// Checksums in headers and XML: which one a request asks for, and how answers show one. Verifying bytes is the data
// path's; the digests of a body come with the body (request-body.ts).
import {
  CHECKSUM_ALGORITHMS,
  CHECKSUM_BYTES,
  type Checksum,
  type ChecksumAlgorithm,
  type ChecksumType,
  checksumHeader,
} from '../../../types/checksums.ts';
import { AppError } from '../../../types/errors.ts';
import type { AnswerHeaders } from './object-headers.ts';

type Headers = Readonly<Record<string, string>>;

const HEADERS = CHECKSUM_ALGORITHMS.map((algorithm) => ({ algorithm, header: checksumHeader(algorithm) }));
/** Full-object checksums are combined from the parts', which only CRCs allow; of CRC64NVME there is no other form. */
const TYPES: Readonly<Record<ChecksumAlgorithm, readonly [byDefault: ChecksumType, ...ChecksumType[]]>> = {
  CRC32: ['COMPOSITE', 'FULL_OBJECT'],
  CRC32C: ['COMPOSITE', 'FULL_OBJECT'],
  CRC64NVME: ['FULL_OBJECT'],
  SHA1: ['COMPOSITE'],
  SHA256: ['COMPOSITE'],
};

/** x-amz-checksum-algorithm of CopyObject and CreateMultipartUpload. */
export function parseChecksumAlgorithm(headers: Headers): ChecksumAlgorithm | undefined {
  const text = headers['x-amz-checksum-algorithm'];
  if (text === undefined) return undefined;
  const algorithm = CHECKSUM_ALGORITHMS.find((candidate) => candidate === text.toUpperCase());
  if (algorithm !== undefined) return algorithm;
  throw refuse(
    `Checksum algorithm provided is unsupported. Please try again with any of the valid types: [${CHECKSUM_ALGORITHMS.join(', ')}]`,
  );
}

/** x-amz-checksum-type. */
export function parseChecksumType(headers: Headers): ChecksumType | undefined {
  const text = headers['x-amz-checksum-type']?.toUpperCase();
  if (text === undefined || text === 'COMPOSITE' || text === 'FULL_OBJECT') return text;
  throw refuse('Value for x-amz-checksum-type header is invalid.');
}

/** What a new upload's parts and object are to be summed with (AWS CreateMultipartUpload). */
export function parseUploadChecksum(
  headers: Headers,
): { algorithm: ChecksumAlgorithm; type: ChecksumType } | undefined {
  const algorithm = parseChecksumAlgorithm(headers);
  const type = parseChecksumType(headers);
  if (algorithm === undefined) {
    if (type === undefined) return undefined;
    throw refuse('The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.');
  }
  const [byDefault] = TYPES[algorithm];
  if (type !== undefined && !TYPES[algorithm].includes(type)) {
    throw refuse(
      `The ${type} checksum type cannot be used with the ${algorithm.toLowerCase()} checksum algorithm.`,
    );
  }
  return { algorithm, type: type ?? byDefault };
}

/**
 * The checksum of the whole object from CompleteMultipartUpload. Without x-amz-checksum-type its form decides: a composite
 * one ends in "-N", and of SHA1 and SHA256 there is no other. BadDigest when it can be neither.
 */
export function parseObjectChecksum(headers: Headers): Checksum | undefined {
  const type = parseChecksumType(headers);
  for (const { algorithm, header } of HEADERS) {
    const text = headers[header];
    if (text === undefined) continue;
    const [value = '', parts] = text.split('-');
    if (!isDigest(algorithm, value) || (parts !== undefined && !/^[1-9]\d{0,4}$/.test(parts))) {
      throw new AppError('BadDigest', { message: `Value for ${header} header is invalid.` });
    }
    const byForm =
      parts === undefined && TYPES[algorithm].includes('FULL_OBJECT') ? 'FULL_OBJECT' : 'COMPOSITE';
    return { algorithm, type: type ?? byForm, value: text };
  }
  return undefined;
}

/** True for the base64 form of a digest of this algorithm. */
export function isDigest(algorithm: ChecksumAlgorithm, text: string): boolean {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === CHECKSUM_BYTES[algorithm] && bytes.toString('base64') === text;
}

/** x-amz-checksum-mode: the reader wants checksums (s3-behaviour 30). */
export function wantsChecksum(headers: Headers): boolean {
  const mode = headers['x-amz-checksum-mode'];
  if (mode === undefined) return false;
  if (mode.toUpperCase() === 'ENABLED') return true;
  throw refuse('Value for x-amz-checksum-mode header is invalid.');
}

/** True when the request brings some digest of its body (DeleteObjects needs one). */
export function hasBodyDigest(headers: Headers): boolean {
  if (headers['content-md5'] !== undefined || headers['x-amz-trailer'] !== undefined) return true;
  return HEADERS.some(({ header }) => headers[header] !== undefined);
}

/** Puts a checksum on an answer. */
export function addChecksum(
  answer: AnswerHeaders,
  checksum: { algorithm: ChecksumAlgorithm; value: string; type?: ChecksumType } | undefined,
): void {
  if (checksum === undefined) return;
  answer[checksumHeader(checksum.algorithm)] = checksum.value;
  if (checksum.type !== undefined) answer['x-amz-checksum-type'] = checksum.type;
}

/** `<ChecksumCRC32>…</ChecksumCRC32>` and, where it has one, `<ChecksumType>`. Base64 needs no escaping. */
export function checksumXml(
  checksum: { algorithm: ChecksumAlgorithm; value: string; type?: ChecksumType } | undefined,
): string {
  if (checksum === undefined) return '';
  const { algorithm, value, type } = checksum;
  const typeXml = type === undefined ? '' : `<ChecksumType>${type}</ChecksumType>`;
  return `<Checksum${algorithm}>${value}</Checksum${algorithm}>${typeXml}`;
}

function refuse(message: string): AppError {
  return new AppError('InvalidRequest', { message });
}
