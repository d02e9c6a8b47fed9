// Which bytes of an object a request wants: the Range header of GET and HEAD, and x-amz-copy-source-range.
// One range at a time, as AWS: a list of ranges, or one that cannot be read, asks for the whole object.
import type { ByteRange } from '../../../objects/object-store.ts';

export type RangeOutcome =
  | { kind: 'whole' }
  | { kind: 'range'; range: ByteRange }
  /** 416 InvalidRange. */
  | { kind: 'unsatisfiable' };

const WHOLE: RangeOutcome = { kind: 'whole' };
const UNSATISFIABLE: RangeOutcome = { kind: 'unsatisfiable' };
/** Blanks stand where they are only once: two runs of them side by side would take quadratic time. */
const SINGLE_RANGE = /^bytes=\s*(?:(\d+)\s*)?-\s*(?:(\d+)\s*)?$/i;
const COPY_RANGE = /^bytes=(\d+)-(\d+)$/;

/** What the Range header means for an object of `sizeBytes` (RFC 9110 14.1.2, AWS GetObject). */
export function resolveRange(header: string, sizeBytes: number): RangeOutcome {
  const match = SINGLE_RANGE.exec(header);
  if (match === null) return WHOLE;
  const [, first = '', last = ''] = match;
  if (first === '') {
    if (last === '') return WHOLE;
    if (Number(last) === 0) return UNSATISFIABLE;
    // AWS: the last bytes of an empty object are all of it, with 200.
    if (sizeBytes === 0) return WHOLE;
    const suffixBytes = Math.min(Number(last), sizeBytes);
    return { kind: 'range', range: { offsetBytes: sizeBytes - suffixBytes, sizeBytes: suffixBytes } };
  }
  const offsetBytes = Number(first);
  const endBytes = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  if (last !== '' && Number(last) < offsetBytes) return WHOLE;
  if (offsetBytes >= sizeBytes) return UNSATISFIABLE;
  return { kind: 'range', range: { offsetBytes, sizeBytes: endBytes - offsetBytes } };
}

/** The bytes of x-amz-copy-source-range; undefined when it is malformed: both ends must be there (AWS UploadPartCopy). */
export function parseCopyRange(header: string): ByteRange | undefined {
  const match = COPY_RANGE.exec(header);
  if (match === null) return undefined;
  const [offsetBytes, lastByte] = [Number(match[1]), Number(match[2])];
  if (lastByte < offsetBytes || !Number.isSafeInteger(lastByte)) return undefined;
  return { offsetBytes, sizeBytes: lastByte + 1 - offsetBytes };
}

/** "bytes 0-4/10". */
export function contentRange(range: ByteRange, sizeBytes: number): string {
  return `bytes ${range.offsetBytes}-${range.offsetBytes + range.sizeBytes - 1}/${sizeBytes}`;
}
