// Which small pieces of an object that is appended to are to become one. Pieces are sorted into tiers by their size, as
// a log-structured tree has it: the smallest tier that holds enough neighbours is folded. What is folded is several
// times as large as each of its pieces, so that each byte is written again a few times at most, whatever the sizes.
import { LIMITS } from './limits.ts';
import type { ManifestBody } from './version.ts';

/** Pieces `from` to `to`, the latter not included. */
export interface CompactionRun {
  from: number;
  to: number;
}

/** How many pieces are enough, and by how much the compacted blob is larger than each of them. */
export interface CompactionRule {
  piecesMin: number;
  growthMin: number;
  /** Also of a blob of pieces to which more may come. */
  includesGrowing: boolean;
}

/** A piece as compaction sees it: bytes of one blob, which may consist of several pieces. */
export interface CompactionPiece {
  sizeBytes: number;
  /** Of a blob of pieces. */
  pieceCount?: number;
  /** It was there before anything was appended. */
  isKept?: true;
}

/**
 * Of an object that was appended to so often. A composition's own pieces are other objects' data, which it was made not to
 * copy: so many as there were appends, and one more for what a PUT began with, are taken for what came by them, at the most.
 */
export function piecesOf(body: ManifestBody | undefined, appendCount = 0): CompactionPiece[] {
  if (body === undefined) return [];
  const first = body.segments.length - appendCount - 1;
  return body.segments.map(({ use, sizeBytes }, index) => {
    const pieceCount = body.uses[use]?.grown?.pieceCount;
    return {
      sizeBytes,
      ...(pieceCount !== undefined && { pieceCount }),
      ...(index < first && { isKept: true }),
    };
  });
}

/** Behind an append: nobody may ever read what it is for. */
export const COMPACT_APPENDED: CompactionRule = {
  piecesMin: LIMITS.compactPiecesMin,
  growthMin: LIMITS.compactGrowthMin,
  includesGrowing: false,
};
/** Behind a read: it may be read again. */
export const COMPACT_READ: CompactionRule = {
  piecesMin: LIMITS.compactReadPiecesMin,
  growthMin: LIMITS.compactReadGrowthMin,
  includesGrowing: true,
};

const TIER_FACTOR = 16;

/** The first run of neighbours that is worth compacting, or one growing blob, in order; undefined: none. */
export function planCompaction(
  pieces: readonly CompactionPiece[],
  rule: CompactionRule = COMPACT_APPENDED,
): CompactionRun | undefined {
  const growingAt = rule.includesGrowing ? undefined : growingIndex(pieces);
  const many = pieces.findIndex(
    ({ pieceCount = 0, isKept = false }, index) =>
      pieceCount >= rule.piecesMin && index !== growingAt && !isKept,
  );
  if (many !== -1) return { from: many, to: many + 1 };
  if (pieces.length < rule.piecesMin) return undefined;
  // What may grow is a neighbour of nothing, nor is what is kept.
  const sizes = pieces.map(({ sizeBytes, isKept = false }, index) =>
    index === growingAt || isKept ? Number.POSITIVE_INFINITY : sizeBytes,
  );
  for (let tierBytes = TIER_FACTOR ** 2; ; tierBytes *= TIER_FACTOR) {
    const belowBytes = Math.min(tierBytes, LIMITS.compactPieceBytesMax);
    for (const run of runsBelow(sizes, belowBytes, rule)) {
      const fitting = cutToFit(sizes, run, rule);
      if (fitting !== undefined) return fitting;
    }
    if (belowBytes === LIMITS.compactPieceBytesMax) return undefined;
  }
}

/** Of the one that the next append may come into. */
function growingIndex(pieces: readonly CompactionPiece[]): number | undefined {
  const { pieceCount = LIMITS.grownPiecesMax } = pieces.at(-1) ?? {};
  return pieceCount < LIMITS.grownPiecesMax ? pieces.length - 1 : undefined;
}

/** The longest runs of neighbours that are all smaller than that. */
function* runsBelow(
  sizes: readonly number[],
  belowBytes: number,
  { piecesMin }: CompactionRule,
): Generator<CompactionRun> {
  let from = 0;
  for (let at = 0; at <= sizes.length; at++) {
    const size = sizes[at];
    if (size !== undefined && size < belowBytes) continue;
    if (at - from >= piecesMin) yield { from, to: at };
    from = at + 1;
  }
}

/** As much of the run's beginning as one compaction takes; undefined if it would not grow by enough, or is too short. */
function cutToFit(
  sizes: readonly number[],
  { from, to }: CompactionRun,
  { piecesMin, growthMin }: CompactionRule,
): CompactionRun | undefined {
  let totalBytes = 0;
  let largestBytes = 0;
  let end = from;
  while (end < to && end - from < LIMITS.compactPiecesMax) {
    const size = sizes[end] ?? 0;
    if (totalBytes + size > LIMITS.compactedBytesMax) break;
    totalBytes += size;
    largestBytes = Math.max(largestBytes, size);
    end++;
  }
  const isWorthIt = totalBytes >= growthMin * largestBytes;
  // A run large enough for a compaction of its own needs no minimum of pieces.
  const isMany = end - from >= piecesMin || end < to;
  return isWorthIt && isMany && end - from > 1 ? { from, to: end } : undefined;
}
