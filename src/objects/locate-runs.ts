// Turns a manifest and a range into runs of bytes within single chunks, in order. Pages of a paged manifest are fetched
// when they are reached.
import { must } from '../base/assert.ts';
import { AppError } from '../types/errors.ts';
import { type BlobId, homeShardOf } from '../types/names.ts';
import {
  type BlobUse,
  type Manifest,
  type ManifestPage,
  type Segment,
  sliceSegments,
} from '../types/version.ts';
import type { ByteRange, MetadataCalls } from './object-store.ts';

type DirectManifest = Extract<Manifest, { kind: 'direct' }>;
type PagedManifest = Extract<Manifest, { kind: 'paged' }>;

/** Bytes of one blob. */
export interface BlobRun {
  use: BlobUse;
  offsetBytes: number;
  sizeBytes: number;
}

/** Bytes of one chunk, or of an inline body, which counts as one. */
export interface ChunkRun {
  use: BlobUse;
  chunkIndex: number;
  /** Plaintext bytes of the whole chunk. */
  chunkBytes: number;
  isLastChunk: boolean;
  /** Positions within the chunk. */
  fromBytes: number;
  toBytes: number;
}

/** The runs of a range, in batches; `onPage` is told of each page that is read. Throws {@link MissingPage}. */
export async function* locateBlobRuns(
  calls: MetadataCalls,
  manifest: Manifest,
  range: ByteRange,
  onPage?: (page: ManifestPage) => void,
): AsyncGenerator<BlobRun[]> {
  if (range.sizeBytes === 0) return;
  if (manifest.kind === 'direct') {
    yield directRuns(manifest, range);
    return;
  }
  const endBytes = range.offsetBytes + range.sizeBytes;
  const { pages, tail } = manifest;
  const endOfPages = tail?.startBytes ?? Number.POSITIVE_INFINITY;
  for (const [page, { startBytes }] of pages.entries()) {
    const nextBytes = pages[page + 1]?.startBytes ?? endOfPages;
    if (nextBytes <= range.offsetBytes || startBytes >= endBytes) continue;
    const offsetBytes = Math.max(range.offsetBytes, startBytes) - startBytes;
    const sizeBytes = Math.min(endBytes, nextBytes) - startBytes - offsetBytes;
    const fetched = await fetchPage(calls, manifest, page);
    onPage?.(fetched);
    const { uses, segments } = fetched;
    yield blobRuns(uses, sliceSegments(segments, { offsetBytes, sizeBytes }));
  }
  if (tail === undefined || endBytes <= tail.startBytes) return;
  const offsetBytes = Math.max(range.offsetBytes - tail.startBytes, 0);
  const sizeBytes = endBytes - tail.startBytes - offsetBytes;
  yield blobRuns(tail.uses, sliceSegments(tail.segments, { offsetBytes, sizeBytes }));
}

/** The runs of a manifest without pages: nothing is fetched. */
export function directRuns({ uses, segments }: DirectManifest, range: ByteRange): BlobRun[] {
  return blobRuns(uses, sliceSegments(segments, range));
}

export async function fetchPage(
  calls: MetadataCalls,
  manifest: PagedManifest,
  page: number,
): Promise<ManifestPage> {
  const { manifestId } = manifest;
  const target = { shard: homeShardOf(manifestId) };
  const { value } = await calls.query(target, 'get-manifest-pages', {
    manifestId,
    from: page,
    to: page + 1,
  });
  const found = value.pages[0] ?? null;
  if (found === null) throw new MissingPage(manifestId, page);
  return found;
}

/** The version is gone, or its manifest is damaged: the caller, who knows the version, finds out (R33). */
export class MissingPage extends AppError {
  constructor(manifestId: BlobId, page: number) {
    super('ServiceUnavailable', { cause: new Error(`page ${page} of manifest ${manifestId} is missing`) });
  }
}

function blobRuns(uses: readonly BlobUse[], segments: readonly Segment[]): BlobRun[] {
  return segments.map(({ use, offsetBytes, sizeBytes }) => ({
    use: must(uses[use], 'a segment names a use of its manifest'),
    offsetBytes,
    sizeBytes,
  }));
}

/** One after the other: a page of parts of 5 GiB has a million chunks. */
export function* chunkRuns(runs: readonly BlobRun[]): Generator<ChunkRun, void> {
  for (const run of runs) yield* chunksOf(run);
}

function* chunksOf({ use, offsetBytes, sizeBytes }: BlobRun): Generator<ChunkRun, void> {
  const { chunkSizeBytes } = use;
  const endBytes = offsetBytes + sizeBytes;
  for (let at = offsetBytes; at < endBytes; ) {
    const chunkIndex = Math.floor(at / chunkSizeBytes);
    const startBytes = chunkIndex * chunkSizeBytes;
    const chunkBytes = Math.min(chunkSizeBytes, use.sizeBytes - startBytes);
    const to = Math.min(endBytes, startBytes + chunkBytes);
    yield {
      use,
      chunkIndex,
      chunkBytes,
      isLastChunk: startBytes + chunkBytes === use.sizeBytes,
      fromBytes: at - startBytes,
      toBytes: to - startBytes,
    };
    at = to;
  }
}
