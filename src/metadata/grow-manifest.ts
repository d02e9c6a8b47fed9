// What appending and folding make of a manifest. Pages are never written again: what changes is in the version's own row.
import { must } from '../lib/assert.ts';
import type { BlobId, LinkId } from '../model/names.ts';
import type { BlobUse, Manifest, ManifestBody, Segment } from '../model/version.ts';

/** The manifest with `piece` behind it; `sizeBytes` is what it leads to already. What has grown is in parts no more. */
export function appendPiece(manifest: Manifest, piece: ManifestBody, sizeBytes: number): Manifest {
  if (piece.segments.length === 0) return manifest;
  if (manifest.kind === 'direct') return { kind: 'direct', ...joinBodies(manifest, piece), parts: [] };
  const tail = manifest.tail ?? { uses: [], segments: [], startBytes: sizeBytes };
  return {
    ...{ ...manifest, partCount: 0 },
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

/** A segment by what it leads to, wherever it stands. */
export interface NamedSegment {
  blobId: BlobId;
  linkId: LinkId;
  offsetBytes: number;
  sizeBytes: number;
}

/** The manifest with one blob in place of a run of segments; undefined where they do not stand in it like this any more. */
export function replaceRun(
  manifest: Manifest,
  run: readonly NamedSegment[],
  use: BlobUse,
): Manifest | undefined {
  if (manifest.kind === 'direct') {
    const body = replaceInBody(manifest, run, use);
    return body && { kind: 'direct', ...body, parts: manifest.parts };
  }
  const { tail } = manifest;
  const body = tail && replaceInBody(tail, run, use);
  return body && { ...manifest, tail: { ...body, startBytes: tail.startBytes } };
}

function replaceInBody(
  { uses, segments }: ManifestBody,
  run: readonly NamedSegment[],
  folded: BlobUse,
): ManifestBody | undefined {
  const stands = (from: number) =>
    run.every((named, index) => {
      const segment = segments[from + index];
      const use = segment && uses[segment.use];
      return (
        use?.blobId === named.blobId &&
        use.linkId === named.linkId &&
        segment?.offsetBytes === named.offsetBytes &&
        segment.sizeBytes === named.sizeBytes
      );
    });
  const from = segments.findIndex((_segment, index) => stands(index));
  if (from === -1 || run.length === 0) return undefined;
  const whole: Segment = { use: uses.length, offsetBytes: 0, sizeBytes: folded.sizeBytes };
  return withoutUnused({
    uses: [...uses, folded],
    segments: [...segments.slice(0, from), whole, ...segments.slice(from + run.length)],
  });
}

function withoutUnused({ uses, segments }: ManifestBody): ManifestBody {
  const indexOf = new Map<number, number>();
  const kept: BlobUse[] = [];
  for (const { use } of segments) {
    const used = uses[use];
    if (used !== undefined && !indexOf.has(use)) indexOf.set(use, kept.push(used) - 1);
  }
  return {
    uses: kept,
    segments: segments.map((segment) => ({ ...segment, use: indexOf.get(segment.use) ?? -1 })),
  };
}
