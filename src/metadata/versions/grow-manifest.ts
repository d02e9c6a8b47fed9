// Changes of a manifest by appends and compaction. Pages are never rewritten: the change is in the version's own row.
import { must } from '../../base/assert.ts';
import type { CompactedSegment } from '../../ports/metadata/versions.ts';
import {
  type BlobUse,
  type Manifest,
  type ManifestBody,
  ownBody,
  type Segment,
} from '../../types/version.ts';

/** The manifest with `piece` behind it; `sizeBytes` is what it leads to already. What has grown is in parts no more. */
export function appendPiece(manifest: Manifest, piece: ManifestBody, sizeBytes: number): Manifest {
  if (piece.segments.length === 0) return manifest;
  if (manifest.kind === 'direct') return { kind: 'direct', ...joinBodies(manifest, piece), parts: [] };
  const tail = manifest.tail ?? { uses: [], segments: [], startBytes: sizeBytes };
  return {
    ...manifest,
    partCount: 0,
    tail: { ...joinBodies(tail, piece), startBytes: tail.startBytes },
  };
}

/** The manifest whose last segment has grown by so much, and the use that it names with it. */
export function replaceLast(manifest: Manifest, grown: BlobUse, byBytes: number): Manifest {
  const grow = ({ uses, segments }: ManifestBody): ManifestBody => {
    const last = must(segments.at(-1), 'what has grown is a segment');
    return {
      uses: uses.with(last.use, grown),
      segments: segments.with(-1, { ...last, sizeBytes: last.sizeBytes + byBytes }),
    };
  };
  if (manifest.kind === 'direct') return { kind: 'direct', ...grow(manifest), parts: [] };
  const tail = must(manifest.tail, 'pages do not grow');
  return { ...manifest, tail: { ...grow(tail), startBytes: tail.startBytes } };
}

function joinBodies(before: ManifestBody, behind: ManifestBody): ManifestBody {
  const shift = before.uses.length;
  const segments = behind.segments.map((segment) => ({ ...segment, use: segment.use + shift }));
  return { uses: [...before.uses, ...behind.uses], segments: [...before.segments, ...segments] };
}

/**
 * The manifest with one blob in place of a run of segments, and the use that it names that by; undefined where they do not
 * stand in it like this. The run is found by its data: of the pieces that an object was appended with, each version has
 * links of its own. The new blob gets that of the first one that it replaces: readers know a version by its first link
 * (dataLinkId).
 */
export function replaceRun(
  manifest: Manifest,
  run: readonly CompactedSegment[],
  compacted: BlobUse,
): { manifest: Manifest; use: BlobUse } | undefined {
  const body = ownBody(manifest);
  const from = body && findRun(body, run);
  if (body === undefined || from === undefined) return undefined;
  const { uses, segments } = body;
  const first = must(segments[from], 'a run begins with a segment');
  const use = { ...compacted, linkId: must(uses[first.use], 'a segment names a use of its manifest').linkId };
  const whole: Segment = { use: uses.length, offsetBytes: 0, sizeBytes: use.sizeBytes };
  const replaced = withoutUnused({
    uses: [...uses, use],
    segments: segments.toSpliced(from, run.length, whole),
  });
  return { manifest: withBody(manifest, replaced), use };
}

/** Where it begins. */
function findRun({ uses, segments }: ManifestBody, run: readonly CompactedSegment[]): number | undefined {
  const stands = (from: number) =>
    run.every((piece, index) => {
      const segment = segments[from + index];
      const use = segment && uses[segment.use];
      return (
        use?.blobId === piece.blobId &&
        use.grown?.lastPieceId === piece.lastPieceId &&
        segment?.offsetBytes === piece.offsetBytes &&
        segment.sizeBytes === piece.sizeBytes
      );
    });
  const from = segments.findIndex((_segment, index) => stands(index));
  return from === -1 || run.length === 0 ? undefined : from;
}

function withBody(manifest: Manifest, body: ManifestBody): Manifest {
  if (manifest.kind === 'direct') return { kind: 'direct', ...body, parts: manifest.parts };
  const { startBytes } = must(manifest.tail, 'pages are not replaced');
  return { ...manifest, tail: { ...body, startBytes } };
}

function withoutUnused({ uses, segments }: ManifestBody): ManifestBody {
  const indexOf = new Map<number, number>();
  const stored: BlobUse[] = [];
  for (const { use } of segments) {
    const used = uses[use];
    if (used !== undefined && !indexOf.has(use)) indexOf.set(use, stored.push(used) - 1);
  }
  return {
    uses: stored,
    segments: segments.map((segment) => ({ ...segment, use: indexOf.get(segment.use) ?? -1 })),
  };
}
