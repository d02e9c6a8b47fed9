// The manifest of an object of parts: in the version itself while it has few segments, else in pages of its own, which
// are link-counted like a blob (architecture 3). Links of parts are carried over, no row of theirs is written (R26).
import { LIMITS } from '../model/limits.ts';
import { type BlobId, makeBlobId, makeLinkId } from '../model/names.ts';
import { type BlobRecord, blobCodec, manifestPageCodec, type PartRecord } from '../model/records/rows.ts';
import type { Manifest, ManifestPage, PartBoundary } from '../model/version.ts';
import type { DecideContext, RowPut } from '../ports/state-machine.ts';
import { blobRow, manifestPageRow, put } from './keyspace.ts';
import { type LinkName, ownLinkPut } from './links.ts';

export interface JoinedParts {
  manifest: Manifest;
  /** Rows of a paged manifest. */
  puts: RowPut[];
  /** Links of parts that the manifest does not need: one blob in several parts of a page keeps one. */
  spareLinks: LinkName[];
}

export function joinParts(parts: readonly PartRecord[], context: DecideContext): JoinedParts {
  const segmentCount = parts.reduce((sum, part) => sum + part.segments.length, 0);
  if (segmentCount <= LIMITS.manifestSegmentsInlineMax) {
    const { page, spareLinks } = joinPage(parts);
    return { manifest: { kind: 'direct', ...page }, puts: [], spareLinks };
  }
  return joinPaged(parts, segmentCount, context);
}

function joinPaged(parts: readonly PartRecord[], segmentCount: number, context: DecideContext): JoinedParts {
  const { nowMs, shard, random } = context;
  const manifestId = makeBlobId({ timeMs: nowMs, homeShard: shard, random: random(8) });
  const linkId = makeLinkId({ timeMs: nowMs, random: random(10) });
  const puts: RowPut[] = [];
  const spareLinks: LinkName[] = [];
  const pages: { startBytes: number; partStart: number }[] = [];
  let startBytes = 0;
  let partStart = 0;
  for (const group of pagesOf(parts)) {
    const joined = joinPage(group);
    puts.push(put(manifestPageRow(manifestId, pages.length), manifestPageCodec.encode(joined.page)));
    spareLinks.push(...joined.spareLinks);
    pages.push({ startBytes, partStart });
    startBytes += group.reduce((sum, part) => sum + part.sizeBytes, 0);
    partStart += group.length;
  }
  const blob: BlobRecord = {
    kind: 'manifest',
    sizeBytes: startBytes,
    storage: 'inline',
    chunkSizeBytes: startBytes,
  };
  puts.push(
    put(blobRow(manifestId), blobCodec.encode(blob)),
    ownLinkPut({ blobId: manifestId, linkId }, shard),
  );
  const manifest: Manifest = {
    kind: 'paged',
    manifestId,
    linkId,
    partCount: parts.length,
    segmentCount,
    pages,
  };
  return { manifest, puts, spareLinks };
}

/** Whole parts, as many as a page's segments hold; a part with more than that has a page for itself. */
function* pagesOf(parts: readonly PartRecord[]): Generator<PartRecord[]> {
  let page: PartRecord[] = [];
  let segmentCount = 0;
  for (const part of parts) {
    if (page.length > 0 && segmentCount + part.segments.length > LIMITS.manifestPageSegments) {
      yield page;
      page = [];
      segmentCount = 0;
    }
    page.push(part);
    segmentCount += part.segments.length;
  }
  if (page.length > 0) yield page;
}

function joinPage(parts: readonly PartRecord[]): { page: ManifestPage; spareLinks: LinkName[] } {
  const page: ManifestPage = { uses: [], segments: [], parts: [] };
  const spareLinks: LinkName[] = [];
  const useByBlob = new Map<BlobId, number>();
  for (const part of parts) {
    const useAt = part.uses.map((use) => {
      const known = useByBlob.get(use.blobId);
      if (known !== undefined) {
        spareLinks.push(use);
        return known;
      }
      useByBlob.set(use.blobId, page.uses.length);
      return page.uses.push(use) - 1;
    });
    for (const segment of part.segments) page.segments.push({ ...segment, use: useAt[segment.use] ?? -1 });
    page.parts.push(boundaryOf(part));
  }
  return { page, spareLinks };
}

function boundaryOf({ partNumber, sizeBytes, checksum }: PartRecord): PartBoundary {
  return { partNumber, sizeBytes, ...(checksum && { checksum: checksum.value }) };
}
