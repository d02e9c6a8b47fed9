// What a Complete may ask for, of parts that are there by number and ETag (AWS CompleteMultipartUpload,
// s3-behaviour 30).
import { createHash } from 'node:crypto';
import type { Steps } from '../../base/async/steps.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { CompletePart, CompleteRefusal } from '../../ports/metadata/uploads.ts';
import type { Checksum } from '../../types/checksums.ts';
import { LIMITS } from '../../types/limits.ts';
import type { PartRecord, UploadRecord } from '../../types/records/rows.ts';
import { wholeChecksum } from '../versions/part-checksums.ts';

type Expected = NonNullable<CommandOf<'complete-upload'>['expected']>;

/** Parts in order, fit to be an object. */
export interface FitParts {
  kind: 'fit';
  parts: PartRecord[];
  sizeBytes: number;
  checksum?: Checksum;
}

/** In steps: the checksum of the whole is combined of those of the parts. */
export function* checkPartList(options: {
  upload: UploadRecord;
  /** Those that are listed, in their order. */
  parts: PartRecord[];
  listed: readonly CompletePart[];
  expected: Expected | undefined;
}): Steps<FitParts | CompleteRefusal> {
  const { upload, parts, listed, expected } = options;
  const refusal = checkSizes(parts, expected) ?? checkPartChecksums(upload, parts, listed);
  if (refusal !== undefined) return refusal;
  const whole = yield* checkWhole(upload, parts, expected);
  if ('kind' in whole) return whole;
  return { kind: 'fit', parts, sizeBytes: totalBytes(parts), ...whole };
}

/** Distinguishes a repeated Complete from another one for the same upload. */
export function digestPartList(listed: readonly CompletePart[]): string {
  const hash = createHash('sha256');
  for (const { partNumber, etag } of listed) hash.update(`${partNumber} ${etag}\n`);
  return hash.digest('hex');
}

function checkSizes(
  parts: readonly PartRecord[],
  expected: Expected | undefined,
): CompleteRefusal | undefined {
  const small = parts.slice(0, -1).find(({ sizeBytes }) => sizeBytes < LIMITS.partBytesMin);
  if (small !== undefined) {
    const { partNumber, sizeBytes, etag } = small;
    return { kind: 'part-too-small', partNumber, sizeBytes, etag };
  }
  const sizeBytes = totalBytes(parts);
  if (sizeBytes > LIMITS.objectBytesMax) return { kind: 'too-large' };
  const isExpected = expected?.sizeBytes === undefined || expected.sizeBytes === sizeBytes;
  return isExpected ? undefined : { kind: 'size-mismatch' };
}

/** A checksum in the list must be the part's own; a composite upload needs one for every part. */
function checkPartChecksums(
  upload: UploadRecord,
  parts: readonly PartRecord[],
  listed: readonly CompletePart[],
): CompleteRefusal | undefined {
  for (const [at, { partNumber, checksum }] of listed.entries()) {
    if (checksum === undefined) {
      if (upload.checksum?.type === 'COMPOSITE') return { kind: 'checksum-missing', partNumber };
      continue;
    }
    const own = parts[at]?.checksum;
    if (own?.algorithm !== checksum.algorithm || own.value !== checksum.value) {
      return { kind: 'bad-checksum', algorithm: checksum.algorithm };
    }
  }
  return undefined;
}

/** The object's checksum: the upload's kind of it, or the full-object one that this request brings and that holds. */
function* checkWhole(
  upload: UploadRecord,
  parts: readonly PartRecord[],
  expected: Expected | undefined,
): Steps<{ checksum?: Checksum } | CompleteRefusal> {
  const given = expected?.checksum;
  const algorithm = upload.checksum?.algorithm ?? given?.algorithm;
  if (algorithm === undefined) return {};
  const type = upload.checksum?.type ?? 'FULL_OBJECT';
  const value = yield* wholeChecksum({ algorithm, type, parts });
  // A checksum that nobody can verify is refused, never ignored.
  if (value === undefined) return { kind: 'bad-checksum', algorithm };
  if (given !== undefined && !isSame(given, { algorithm, type, value })) {
    return { kind: 'bad-checksum', algorithm: given.algorithm };
  }
  return { checksum: { algorithm, type, value } };
}

/** Clients write composite values with and without their "-N". */
function isSame(given: Checksum, computed: Checksum): boolean {
  if (given.algorithm !== computed.algorithm) return false;
  return given.value === computed.value || given.value === computed.value.split('-')[0];
}

function totalBytes(parts: readonly PartRecord[]): number {
  return parts.reduce((sum, part) => sum + part.sizeBytes, 0);
}
