// The manifest of an object of parts: in the version itself while it has few segments, else in pages of its own, which
// are link-counted like a blob (design "Data model"). Links of parts are carried over, no row of theirs is written (R26).

import type { DecideContext } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { PartRecord } from '../../types/records/rows.ts';
import type { ManifestPage, PartBoundary } from '../../types/version.ts';
import type { LinkName } from '../blobs/links.ts';
import { type LaidManifest, layPages } from '../versions/manifest-pages.ts';

export interface JoinedParts extends LaidManifest {
  /** Links of parts that the manifest does not need: one blob in several parts of a page keeps one. */
  spareLinks: LinkName[];
}

export function joinParts(parts: readonly PartRecord[], context: DecideContext): JoinedParts {
  const segmentCount = parts.reduce((sum, part) => sum + part.segments.length, 0);
  if (segmentCount <= LIMITS.manifestSegmentsInlineMax) {
    const { page, spareLinks } = joinPage(parts);
    return { manifest: { kind: 'direct', ...page }, puts: [], spareLinks };
  }
  return joinPaged(parts, context);
}

function joinPaged(parts: readonly PartRecord[], context: DecideContext): JoinedParts {
  const spareLinks: LinkName[] = [];
  const pages = [...pagesOf(parts)].map((group) => {
    const joined = joinPage(group);
    spareLinks.push(...joined.spareLinks);
    return joined.page;
  });
  return { ...layPages(pages, context), spareLinks };
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
  const useByBlob = new Map<string, number>();
  for (const part of parts) {
    const useAt = part.uses.map((use) => {
      // A blob that grew between the copies has a use for each of them: nothing here shows that they see the same pieces.
      const seen = `${use.blobId} ${use.grown?.lastPieceId ?? ''}`;
      const known = useByBlob.get(seen);
      if (known !== undefined) {
        spareLinks.push(use);
        return known;
      }
      useByBlob.set(seen, page.uses.length);
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
