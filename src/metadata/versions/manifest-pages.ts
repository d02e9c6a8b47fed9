// Manifests of many segments: in pages of their own, which are rows, and link-counted as one like a blob (design "Data").

import { must } from '../../base/assert.ts';
import type { Steps } from '../../base/async/steps.ts';
import type { DecideContext, PrepareContext, RowPut } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BlobId, type BucketId, idTimeMs, makeBlobId, makeLinkId } from '../../types/names.ts';
import { type BlobRecord, blobCodec, manifestPageCodec } from '../../types/records/rows.ts';
import type { Manifest, ManifestBody, ManifestPage } from '../../types/version.ts';
import { ownLinkPut } from '../blobs/links.ts';
import { blobRow, manifestPageRow, put } from '../schema/keyspace.ts';

export interface LaidManifest {
  manifest: Manifest;
  /** Rows of its pages, and of links that only they need. */
  puts: RowPut[];
}

/** Of a composition: its bucket, and the id that its manifest is to have, which the links of its pages name. */
interface Composed {
  composedIn: BucketId;
  inManifest: BlobId;
}

/** `nowMs`: of the shard, which ids bear. */
type LayContext = Pick<DecideContext, 'nowMs' | 'shard' | 'random'>;

function newManifestId({ nowMs, shard, random }: LayContext): BlobId {
  return makeBlobId({ timeMs: nowMs, homeShard: shard, random: random(8) });
}

/** A page as its row has it, and what the manifest says of it. */
export interface EncodedPage {
  bytes: Uint8Array;
  sizeBytes: number;
  partCount: number;
  segmentCount: number;
}

export function encodePage(page: ManifestPage): EncodedPage {
  return {
    bytes: manifestPageCodec.encode(page),
    sizeBytes: page.segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    partCount: page.parts.length,
    segmentCount: page.segments.length,
  };
}

/** The rows of a paged manifest. */
export function layPages(
  pages: Iterable<EncodedPage>,
  context: LayContext,
  composed?: Composed,
): LaidManifest {
  const { nowMs, shard, random } = context;
  const manifestId = composed?.inManifest ?? newManifestId(context);
  const linkId = makeLinkId({ timeMs: nowMs, random: random(10) });
  const puts: RowPut[] = [];
  const bounds: { startBytes: number; partStart: number }[] = [];
  let startBytes = 0;
  let partCount = 0;
  let segmentCount = 0;
  for (const page of pages) {
    puts.push(put(manifestPageRow(manifestId, bounds.length), page.bytes));
    bounds.push({ startBytes, partStart: partCount });
    startBytes += page.sizeBytes;
    partCount += page.partCount;
    segmentCount += page.segmentCount;
  }
  const blob: BlobRecord = {
    kind: 'manifest',
    sizeBytes: startBytes,
    storage: 'inline',
    chunkSizeBytes: startBytes,
    ...(composed !== undefined && { isComposed: true }),
  };
  puts.push(
    put(blobRow(manifestId), blobCodec.encode(blob)),
    ownLinkPut({ blobId: manifestId, linkId }, shard, { composedIn: composed?.composedIn }),
  );
  return {
    manifest: { kind: 'paged', manifestId, linkId, partCount, segmentCount, pages: bounds },
    puts,
  };
}

/**
 * The manifest of a composition: in its version while it has few segments. The links of `body` are granted beside it, with the
 * manifest's id where there are pages; a page that uses a blob which an earlier one uses too gets a link of its own, for pages go
 * one by one. Before it is decided: the ids are of the time that those of its links are of.
 */
export function* layComposition(
  body: ManifestBody,
  prepare: PrepareContext,
  composedIn: BucketId,
): Steps<LaidManifest> {
  if (body.segments.length <= LIMITS.manifestSegmentsInlineMax)
    return { manifest: { kind: 'direct', ...body, parts: [] }, puts: [] };
  const linkPuts: RowPut[] = [];
  const [first] = body.uses;
  const context = { ...prepare, nowMs: idTimeMs(must(first, 'segments have uses').linkId) };
  const composed = { composedIn, inManifest: newManifestId(context) };
  const pages = yield* pagesOf(body, linkPuts, context, composed);
  const laid = layPages(pages, context, composed);
  return { ...laid, puts: [...laid.puts, ...linkPuts] };
}

function* pagesOf(
  body: ManifestBody,
  linkPuts: RowPut[],
  context: LayContext,
  composed: Composed,
): Steps<EncodedPage[]> {
  const { nowMs, random, shard } = context;
  const pages: EncodedPage[] = [];
  const linked = new Set<BlobId>();
  for (let from = 0; from < body.segments.length; from += LIMITS.manifestPageSegments) {
    const page: ManifestPage = { uses: [], segments: [], parts: [] };
    const useAt = new Map<number, number>();
    for (const segment of body.segments.slice(from, from + LIMITS.manifestPageSegments)) {
      const { [segment.use]: use } = body.uses;
      if (use === undefined) throw new RangeError('a segment names a use of its manifest');
      let index = useAt.get(segment.use);
      if (index === undefined) {
        const linkId = linked.has(use.blobId)
          ? makeLinkId({ timeMs: nowMs, random: random(10) })
          : use.linkId;
        if (linkId !== use.linkId) linkPuts.push(ownLinkPut({ blobId: use.blobId, linkId }, shard, composed));
        linked.add(use.blobId);
        index = page.uses.push({ ...use, linkId }) - 1;
        useAt.set(segment.use, index);
      }
      page.segments.push({ ...segment, use: index });
    }
    pages.push(encodePage(page));
    yield;
  }
  return pages;
}
