// The manifest of an object of parts: in the version itself while it has few segments, else in pages of its own, which
// are link-counted like a blob (design "Data model"). Links of parts are carried over, no row of theirs is written (R26).

import type { Steps } from '../../base/async/steps.ts';
import type { DecideContext, RowPut } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { PartRecord } from '../../types/records/rows.ts';
import type { ManifestPage, PartBoundary } from '../../types/version.ts';
import { type LinkName, removeLinks } from '../blobs/links.ts';
import { type EncodedPage, encodePage, type LaidManifest, layPages } from '../versions/manifest-pages.ts';

/** What the manifest is going to say, before it has an id. */
export interface JoinedParts {
  body: { kind: 'direct'; page: ManifestPage } | { kind: 'paged'; pages: EncodedPage[] };
  /**
   * Rows of links that the manifest does not need (removeLinks): one blob in several parts of a page keeps one. No more of them
   * than one entry may end: behind these a page has a use for each link.
   */
  spareLinks: RowPut[];
}

/** To end so many keeps the thread for some 10 ms. */
export const SPARE_LINKS_MAX = 2000;

export function* joinParts(parts: readonly PartRecord[]): Steps<JoinedParts> {
  const segmentCount = parts.reduce((sum, part) => sum + part.segments.length, 0);
  if (segmentCount <= LIMITS.manifestSegmentsInlineMax) {
    const { page, spareLinks } = joinPage(parts, SPARE_LINKS_MAX);
    return { body: { kind: 'direct', page }, spareLinks: removeLinks(spareLinks) };
  }
  const spareLinks: RowPut[] = [];
  const pages: EncodedPage[] = [];
  for (const group of pagesOf(parts)) {
    const joined = joinPage(group, SPARE_LINKS_MAX - spareLinks.length);
    spareLinks.push(...removeLinks(joined.spareLinks));
    pages.push(encodePage(joined.page));
    yield;
  }
  return { body: { kind: 'paged', pages }, spareLinks };
}

export function layJoined({ body }: JoinedParts, context: DecideContext): LaidManifest {
  if (body.kind === 'paged') return layPages(body.pages, context);
  return { manifest: { kind: 'direct', ...body.page }, puts: [] };
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

function joinPage(
  parts: readonly PartRecord[],
  sparesMax: number,
): { page: ManifestPage; spareLinks: LinkName[] } {
  const page: ManifestPage = { uses: [], segments: [], parts: [] };
  const spareLinks: LinkName[] = [];
  const useByBlob = new Map<string, number>();
  for (const part of parts) {
    const useAt = part.uses.map((use) => {
      // A blob that grew between the copies has a use for each of them: nothing here shows that they see the same pieces.
      const seen = `${use.blobId} ${use.grown?.lastPieceId ?? ''}`;
      const known = useByBlob.get(seen);
      if (known !== undefined && spareLinks.length < sparesMax) {
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
