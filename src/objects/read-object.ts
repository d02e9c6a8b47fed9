// THE GET STORY: open the key, locate and fetch the first bytes, so that damage is an error status and not a cut
// connection; then stream the rest behind them (read-body.ts), and check now and then that the version still exists.
import { must } from '../base/assert.ts';
import { BatchStream } from '../base/bytes/batch-stream.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { homeShardOf } from '../types/names.ts';
import { COMPACT_READ, piecesOf, planCompaction } from '../types/plan-compaction.ts';
import { isLiveBlob } from '../types/records/rows.ts';
import {
  dataLinkId,
  linksOf,
  type Manifest,
  mayBeCompacted,
  ownBody,
  type VersionRecord,
} from '../types/version.ts';
import type { PieceCompactor } from './compact-pieces.ts';
import type { DataPath } from './data-path.ts';
import { fetchPage } from './locate-runs.ts';
import type { ByteRange, MetadataCalls, ObjectStore, OpenObject } from './object-store.ts';
import { openWholeInline, readPlaintextBatches } from './read-body.ts';

type OpenInput = Parameters<ObjectStore['openObject']>[0];

/** Throws AppError InternalError or ServiceUnavailable when the first bytes cannot be read. */
export async function openObject(
  path: DataPath,
  compactor: PieceCompactor,
  input: OpenInput,
): Promise<OpenObject> {
  const { found, range } = input;
  if (range.sizeBytes === 0) return { kind: 'bytes', bytes: Buffer.alloc(0) };
  const kek = path.keys.openKek(found.version.kek, input.customerKey);
  const { manifest } = found.version;
  if (found.inlineBody !== undefined && found.version.sizeBytes <= LIMITS.sealBlockBytes) {
    const bytes = openWholeInline(path, { kek, manifest, range, inlineBody: found.inlineBody });
    return { kind: 'bytes', bytes };
  }
  scheduleCompaction(compactor, input);
  let stream: BatchStream | undefined;
  const batches = readPlaintextBatches(path, {
    tenant: input.calls.tenant,
    calls: input.calls,
    kek,
    manifest,
    range,
    ...(found.inlineBody && { inlineBody: found.inlineBody }),
    name: { bucket: input.bucket.believed.name, key: input.key, version: found.version.versionId },
    reread: () => rereadManifest(input),
    onEvicted: (error) => stream?.destroy(error),
  });
  const late = () => new AppError('ServiceUnavailable');
  const first = await input.calls.patience.bound(batches.next(), late).catch((error: unknown) => {
    // It gives back its memory when the disks have answered.
    void batches.return(undefined);
    throw error;
  });
  stream = new BatchStream(first.done === true ? [] : first.value, batches);
  return { kind: 'stream', stream, sizeBytes: range.sizeBytes };
}

/** A reader of many small pieces schedules their compaction for the next reader. */
function scheduleCompaction(compactor: PieceCompactor, { calls, bucket, key, found }: OpenInput): void {
  const body = found.isLatest ? ownBody(found.version.manifest) : undefined;
  if (body === undefined || !mayBeCompacted(found.version)) return;
  if (planCompaction(piecesOf(body, found.version.appendCount), COMPACT_READ) !== undefined)
    compactor.schedule({ calls, bucket, key, rule: COMPACT_READ });
}

/**
 * The manifest by which the bytes of `found` may be read further (R33): that of the version as it is now; or, if it is
 * gone, the one of `found` while its data is not marked for deletion: it was renamed, or other objects share its data.
 */
export async function rereadManifest(
  input: Pick<OpenInput, 'calls' | 'bucket' | 'key' | 'found'>,
): Promise<Manifest | undefined> {
  const { calls, found } = input;
  const { manifest } = found.version;
  return (await manifestNow(input)) ?? ((await isDataLive(calls, manifest)) ? manifest : undefined);
}

async function manifestNow({
  calls,
  bucket,
  key,
  found,
}: Pick<OpenInput, 'calls' | 'bucket' | 'key' | 'found'>): Promise<Manifest | undefined> {
  const { bucketId } = bucket.believed;
  const { versionId, manifest } = found.version;
  const query = { bucketId, key, versionId, includeBody: false };
  const target = { shard: bucket.homeShard, bucket: bucket.believed };
  const value = await calls.query(target, 'get-version', query).then(
    (reply) => reply.value,
    (error) => {
      // Renamed, or deleted.
      if (error instanceof AppError && error.code === 'NoSuchBucket') return undefined;
      throw error;
    },
  );
  if (value?.kind !== 'found') return undefined;
  const { version } = value;
  return dataLinkId(version.manifest) === dataLinkId(manifest) ? version.manifest : undefined;
}

/** Live data is not erased for LIMITS.readingGraceMs (R31). */
async function isDataLive(calls: MetadataCalls, manifest: Manifest): Promise<boolean> {
  const blobIds = linksOf(manifest).map(({ blobId }) => blobId);
  for (const [shard, ofHome] of Map.groupBy(blobIds, homeShardOf)) {
    const { value } = await calls.query({ shard }, 'get-blobs', { blobIds: ofHome });
    if (!value.blobs.every(isLiveBlob)) return false;
  }
  return true;
}

/** The range of a part (GET with partNumber), by the number of its upload. */
export async function partRange(
  input: Parameters<ObjectStore['partRange']>[0],
): ReturnType<ObjectStore['partRange']> {
  const { calls, version, partNumber } = input;
  const { manifest, sizeBytes } = version;
  const whole = { offsetBytes: 0, sizeBytes };
  if (manifest.kind === 'direct') {
    if (manifest.parts.length === 0) return partNumber === 1 ? { range: whole, partCount: 1 } : undefined;
    return partAt(manifest.parts, { partNumber, startBytes: 0 }, manifest.parts.length);
  }
  // An object that was composed, or has grown since its completion, has no parts.
  if (manifest.partCount === 0) return partNumber === 1 ? { range: whole, partCount: 1 } : undefined;
  // Part numbers ascend, so a part's number is greater than the number of parts before it: no later page can hold it.
  // Without gaps this page holds it; else it is searched for among the pages before.
  let low = 0;
  let high = manifest.pages.findLastIndex(({ partStart }) => partStart < partNumber);
  for (let page = high; low <= high; page = (low + high) >>> 1) {
    const { parts } = await fetchPage(calls, manifest, page);
    const [first, last] = [parts[0]?.partNumber ?? 0, parts.at(-1)?.partNumber ?? 0];
    if (partNumber < first) high = page - 1;
    else if (partNumber > last) low = page + 1;
    else {
      const { startBytes } = must(manifest.pages[page], 'a page that was read');
      return partAt(parts, { partNumber, startBytes }, manifest.partCount);
    }
  }
  return undefined;
}

function partAt(
  parts: Extract<VersionRecord['manifest'], { kind: 'direct' }>['parts'],
  at: { partNumber: number; startBytes: number },
  partCount: number,
): { range: ByteRange; partCount: number; checksum?: string } | undefined {
  const index = parts.findIndex(({ partNumber }) => partNumber === at.partNumber);
  const part = parts[index];
  if (part === undefined) return undefined;
  const offsetBytes = parts
    .slice(0, index)
    .reduce((total, { sizeBytes }) => total + sizeBytes, at.startBytes);
  const range = { offsetBytes, sizeBytes: part.sizeBytes };
  return { range, partCount, ...(part.checksum !== undefined && { checksum: part.checksum }) };
}
