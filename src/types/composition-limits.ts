// The limits of compositions, appends and the compaction of small pieces: a part of LIMITS (limits.ts), which has their
// relations to others.
import { assert } from '../base/assert.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export const COMPOSITION_LIMITS = {
  /** service 8: original data objects in one composed object; appends of one object. */
  composeOriginalsMax: 32,
  appendCountMax: 1023,
  /** extensions 6: of each original data object at least so much is charged. */
  chargedBytesMin: 4 * KiB,
  /** Pieces of one composition, which is written by one entry, with two rows of each: some 30 ms of the thread. */
  composeSegmentsMax: 5000,
  composeBodyBytesMax: 256 * KiB,
  /** Objects that a gateway remembers from its last appends. */
  recentAppendsMax: 1024,
  /** An append that is this small goes into the blob of those before it; one blob takes so many of them, and so much. */
  grownPieceBytesMax: 16 * KiB,
  grownPiecesMax: 64,
  grownBlobBytesMax: 64 * KiB,
  /** Small neighbouring pieces that are compacted into one. */
  compactPiecesMin: 16,
  compactPiecesMax: 256,
  /** A piece that is this large stays as it is. */
  compactPieceBytesMax: 1 * MiB,
  /** Of what several pieces become. */
  compactedBytesMax: 4 * MiB,
  /** Sources that the row of a compacted blob lists, 24 bytes each. */
  compactedRangesMax: 1024,
  /** A compacted blob is this many times as large as each of its pieces, which bounds how often a byte is written. */
  compactGrowthMin: 4,
  /** The same where somebody reads them. */
  compactReadPiecesMin: 8,
  compactReadGrowthMin: 2,
  /** Objects of one gateway that wait for it; what is more is met again by the next append or read. */
  compactionsWaitingMax: 256,
  /** Pause of an object whose compaction has failed, and of all after several failures in a row. */
  compactionPauseMs: 60_000,
  compactionFailuresInARowMax: 3,
  /** Objects that rest, of one gateway. */
  compactionsPausedMax: 1024,
  /** Of bodies that lie with their metadata: asked for in one call. */
  bodiesPerCallBytesMax: 256 * KiB,
  bodiesPerCallMax: 256,
} as const;

assert(
  COMPOSITION_LIMITS.compactGrowthMin < COMPOSITION_LIMITS.compactPiecesMin &&
    COMPOSITION_LIMITS.compactPiecesMin <= COMPOSITION_LIMITS.compactPiecesMax,
  'pieces of one size are folded',
);
assert(
  COMPOSITION_LIMITS.grownPieceBytesMax < COMPOSITION_LIMITS.grownBlobBytesMax &&
    COMPOSITION_LIMITS.grownBlobBytesMax <= COMPOSITION_LIMITS.bodiesPerCallBytesMax &&
    COMPOSITION_LIMITS.compactPiecesMin <= COMPOSITION_LIMITS.grownPiecesMax,
  'a blob of pieces takes several, is read by one call, and is worth folding when it is full',
);
assert(
  COMPOSITION_LIMITS.compactPiecesMax <= COMPOSITION_LIMITS.compactedRangesMax,
  'what was folded notes each piece that it was made of',
);
assert(
  COMPOSITION_LIMITS.compactPieceBytesMax < COMPOSITION_LIMITS.compactedBytesMax,
  'two pieces can be folded',
);
