// The sources of a compacted blob's bytes (metadata/versions/compact-version.ts): blobs that other versions and copies may
// still use. Meanwhile the same bytes are stored twice, though they were uploaded once: counting leaves out of the
// compacted blob what still exists in its sources. Pure.
import { must } from '../base/assert.ts';
import { ByteReader, ByteWriter } from '../base/bytes/byte-cursor.ts';
import { LIMITS } from './limits.ts';
import type { BlobId } from './names.ts';

/** A range of a compacted blob, and another blob with the same bytes. */
export interface CompactedRange {
  blobId: BlobId;
  offsetBytes: number;
  sizeBytes: number;
}

/** One of the segments that become a blob, in order. */
export interface CompactedSource {
  blobId: BlobId;
  /** The range of it that is compacted. */
  offsetBytes: number;
  sizeBytes: number;
  /** Something else may go on using it. */
  livesOn: boolean;
  /** Its own sources if it was compacted itself, as its row has them. */
  foldedFrom: Uint8Array | undefined;
}

/**
 * Includes blobs of all tiers, because those between may be deleted before the first ones. If there are too many, which
 * happens only to compositions of compacted blobs, only the direct sources are listed: then bytes may be counted twice.
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
