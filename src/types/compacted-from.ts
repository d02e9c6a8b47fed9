// What a folded blob's bytes were read from (metadata/versions/fold-version.ts): blobs that other versions and copies may go
// on using. For as long as they do, the same bytes are there twice, and were uploaded once: who counts them leaves out of the
// folded blob what is still there as it came. Pure.
import { must } from '../base/assert.ts';
import { ByteReader, ByteWriter } from '../base/bytes/byte-cursor.ts';
import { LIMITS } from './limits.ts';
import type { BlobId } from './names.ts';

/** A range of a folded blob, and the blob that has these bytes, too. */
export interface CompactedRange {
  blobId: BlobId;
  offsetBytes: number;
  sizeBytes: number;
}

/** One of the segments that become a blob, in order. */
export interface CompactedSource {
  blobId: BlobId;
  /** What of it is folded. */
  offsetBytes: number;
  sizeBytes: number;
  /** Something else may go on using it. */
  livesOn: boolean;
  /** Where it was folded itself: as a row has it. */
  foldedFrom: Uint8Array | undefined;
}

/**
 * Of blobs of all tiers, because those between may go before the first ones do. Where these are too many, which only
 * compositions of what was folded make, of the sources themselves: then bytes may be counted twice, and no worse.
 */
export function compactedRanges(sources: readonly CompactedSource[]): CompactedRange[] {
  return (
    rangesOf(sources, LIMITS.compactedRangesMax) ?? must(rangesOf(sources.map(withoutTiers)), 'no bound')
  );
}

const withoutTiers = (source: CompactedSource): CompactedSource => ({ ...source, foldedFrom: undefined });

/** undefined: more than so many. */
function rangesOf(
  sources: readonly CompactedSource[],
  countMax = Number.POSITIVE_INFINITY,
): CompactedRange[] | undefined {
  const ranges: CompactedRange[] = [];
  let atBytes = 0;
  for (const source of sources) {
    if (ranges.length > countMax) return undefined;
    const { blobId, sizeBytes } = source;
    if (source.livesOn) ranges.push({ blobId, offsetBytes: atBytes, sizeBytes });
    for (const range of unpackRanges(source.foldedFrom)) {
      const from = Math.max(range.offsetBytes, source.offsetBytes);
      const to = Math.min(range.offsetBytes + range.sizeBytes, source.offsetBytes + sizeBytes);
      if (from >= to) continue;
      const offsetBytes = atBytes + (from - source.offsetBytes);
      ranges.push({ blobId: range.blobId, offsetBytes, sizeBytes: to - from });
    }
    atBytes += sizeBytes;
  }
  return ranges.length > countMax ? undefined : ranges;
}

/** How many bytes are in at least one of the ranges. */
export function coveredBytes(ranges: readonly CompactedRange[]): number {
  let [sumBytes, endBytes] = [0, 0];
  for (const { offsetBytes, sizeBytes } of ranges.toSorted((a, b) => a.offsetBytes - b.offsetBytes)) {
    const end = offsetBytes + sizeBytes;
    sumBytes += Math.max(0, end - Math.max(offsetBytes, endBytes));
    endBytes = Math.max(endBytes, end);
  }
  return sumBytes;
}

const ID_BYTES = 16;
/** id 16 | offset 4 | size 4 */
const RANGE_BYTES = ID_BYTES + 4 + 4;

/** As a blob's row has them: one behind the other. */
export function packRanges(ranges: readonly CompactedRange[]): Uint8Array {
  const buffer = Buffer.allocUnsafe(ranges.length * RANGE_BYTES);
  const writer = new ByteWriter(buffer);
  for (const { blobId, offsetBytes, sizeBytes } of ranges) {
    writer.hex(blobId, ID_BYTES);
    writer.uint(offsetBytes, 4);
    writer.uint(sizeBytes, 4);
  }
  writer.end();
  return buffer;
}

/** Throws BrokenInvariant or RangeError where it is cut off. */
export function unpackRanges(packed: Uint8Array | undefined): CompactedRange[] {
  if (packed === undefined) return [];
  const reader = new ByteReader(packed);
  const count = Math.ceil(packed.length / RANGE_BYTES);
  return Array.from({ length: count }, () => ({
    blobId: reader.hex(ID_BYTES) as BlobId,
    offsetBytes: reader.uint(4),
    sizeBytes: reader.uint(4),
  }));
}
