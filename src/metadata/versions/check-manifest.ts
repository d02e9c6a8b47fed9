// Manifests as fsck sees them: the pieces add up to the size, and every use has its link and its data.
import type { FindingPlace } from '../../types/findings.ts';
import { type BlobId, homeShardOf } from '../../types/names.ts';
import { manifestPageCodec } from '../../types/records/rows.ts';
import type { Manifest, ManifestBody } from '../../types/version.ts';
import type { CheckScan } from '../checks/scan.ts';
import { manifestPageRange, manifestPageRow } from '../schema/keyspace.ts';

/** What the pages of a manifest hold, in order. */
export interface PagesSeen {
  sizeBytes: number;
  pages: { startBytes: number; partStart: number }[];
}

export async function checkManifest(
  scan: CheckScan,
  version: { sizeBytes: number; manifest: Manifest; place: FindingPlace },
): Promise<void> {
  const { sizeBytes, manifest, place } = version;
  if (manifest.kind === 'direct') {
    const parts = manifest.parts.reduce((sum, part) => sum + part.sizeBytes, 0);
    if (manifest.parts.length > 0 && parts !== sizeBytes) {
      scan.found('manifest-wrong', { ...place, note: `parts of ${parts} bytes, not ${sizeBytes}` });
    }
    await checkBody(scan, { body: manifest, sizeBytes, place });
    return;
  }
  const { manifestId, linkId, tail } = manifest;
  if (tail !== undefined) {
    await checkBody(scan, { body: tail, sizeBytes: sizeBytes - tail.startBytes, place });
  }
  const layout = { kind: 'manifest', sizeBytes: tail?.startBytes ?? sizeBytes } as const;
  await scan.checkUse({ blobId: manifestId, linkId, layout }, place);
  if (homeShardOf(manifestId) !== scan.shard) return;
  const { pages } = await readPages(scan, manifestId);
  if (JSON.stringify(pages) !== JSON.stringify(manifest.pages)) {
    const note = `${manifest.pages.length} pages, is ${pages.length}, or they begin elsewhere`;
    scan.found('manifest-wrong', { ...place, manifest: manifestId, note });
  }
}

/** Segments within their uses, that make `sizeBytes` together; every use with its link and data. */
export async function checkBody(
  scan: CheckScan,
  { body, sizeBytes, place }: { body: ManifestBody; sizeBytes: number; place: FindingPlace },
): Promise<void> {
  let total = 0;
  for (const { use, offsetBytes, sizeBytes: length } of body.segments) {
    total += length;
    const blobBytes = body.uses[use]?.sizeBytes ?? 0;
    if (offsetBytes < 0 || length <= 0 || offsetBytes + length > blobBytes) {
      const note = `a piece of ${length} bytes at ${offsetBytes} of ${blobBytes}`;
      scan.found('manifest-wrong', { ...place, note });
    }
  }
  if (total !== sizeBytes) {
    scan.found('manifest-wrong', { ...place, note: `pieces of ${total} bytes, not ${sizeBytes}` });
  }
  for (const { blobId, linkId, ...layout } of body.uses) {
    await scan.checkUse({ blobId, linkId, layout: { kind: 'data', ...layout } }, place);
  }
}

/** Up to the first one that is missing. */
export async function readPages(scan: CheckScan, manifestId: BlobId): Promise<PagesSeen> {
  const seen: PagesSeen = { sizeBytes: 0, pages: [] };
  let partStart = 0;
  for (let page = 0; ; page++) {
    const row = await scan.row(manifestPageRow(manifestId, page));
    if (row === undefined) break;
    const { parts, segments } = manifestPageCodec.decode(row);
    seen.pages.push({ startBytes: seen.sizeBytes, partStart });
    partStart += parts.length;
    seen.sizeBytes += segments.reduce((sum, segment) => sum + segment.sizeBytes, 0);
  }
  const further = await scan.view.range(manifestPageRange(manifestId, seen.pages.length, 1));
  if (further.length > 0) {
    scan.found('manifest-wrong', {
      manifest: manifestId,
      page: seen.pages.length,
      note: 'a page is missing',
    });
  }
  return seen;
}
