// Data that only compositions keep (service 4.2, compose rule 6), by bucket, a page of blobs at a time; the caller adds up the
// pages. Of a blob that several shards hold, each is asked, one after the other: data copied meanwhile may be reported as it
// was. It is the report of `holdfast composed`, and what metering measures at the end of each day.

import type { BlobClaim, Charging, ClaimedBlob, CompositionHolder } from '../../ports/metadata/blobs.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { BlobId, BucketId } from '../../types/names.ts';
import { askShard, SilentShard } from './ask-shard.ts';

/** Blobs of one page, each with a look at its links: some milliseconds of a shard. */
const PAGE = 100;

export interface ComposedPlace {
  shard: number;
  after?: BlobId;
}

export interface ComposedReport {
  /** In a page a bucket is there once, in several pages as often. Its name is its id where it is open no more. */
  buckets: { bucketId: BucketId; name: string; sizeBytes: number; blobCount: number }[];
  /** This shard does not answer: the page is to be asked for again. */
  missingShard?: number;
  /** Absent behind the last page. */
  next?: ComposedPlace;
}

/** What keeps a blob: the bucket of a composition, and its shard. */
interface Keeper {
  bucketId: BucketId;
  shard: number;
}

/** Throws AppError NoSuchEntity for a shard that there is not. */
export async function readComposed(metadata: MetadataPort, place: ComposedPlace): Promise<ComposedReport> {
  if (place.shard >= metadata.shardCount)
    throw new AppError('NoSuchEntity', { message: 'There is no such shard.' });
  try {
    return await readPage(metadata, place);
  } catch (error) {
    if (error instanceof SilentShard) return { buckets: [], missingShard: error.shard, next: place };
    throw error;
  }
}

/** What compositions of a bucket keep, and the bucket's home. */
export interface ComposedSum {
  shard: number;
  sizeBytes: number;
  blobCount: number;
}

/** Of the blobs of one shard; with `charging` the charged bytes of those that nobody else is charged for (extensions 6). */
export async function sumComposed(
  metadata: MetadataPort,
  { shard, after }: ComposedPlace,
  charging?: Charging,
): Promise<{ found: Map<BucketId, ComposedSum>; next?: BlobId }> {
  const query = { limit: PAGE, ...(after && { after }), ...(charging && { charging }) };
  const { buckets, claimed, next } = await askShard(metadata, shard, 'count-composed-only', query);
  const found = new Map<BucketId, ComposedSum>();
  const add = (keeper: Keeper, sizeBytes: number, blobCount: number) => {
    const sum = found.get(keeper.bucketId) ?? { shard: keeper.shard, sizeBytes: 0, blobCount: 0 };
    sum.sizeBytes += sizeBytes;
    sum.blobCount += blobCount;
    found.set(keeper.bucketId, sum);
  };
  for (const { bucketId, sizeBytes, blobCount } of buckets) add({ bucketId, shard }, sizeBytes, blobCount);
  const keepers = await keepersOf(metadata, { home: shard, claimed, isCharging: charging !== undefined });
  for (const { blobId, sizeBytes } of claimed) {
    const keeper = keepers.get(blobId);
    if (keeper !== undefined && keeper !== 'other') add(keeper, sizeBytes, 1);
  }
  return { found, ...(next && { next }) };
}

async function readPage(metadata: MetadataPort, place: ComposedPlace): Promise<ComposedReport> {
  const { shard } = place;
  const { found, next } = await sumComposed(metadata, place);
  const shown = [...found].map(async ([bucketId, { shard: of, ...sum }]) => {
    const { bucket } = await askShard(metadata, of, 'get-bucket', { bucketId, kinds: [] });
    // Somebody else may have the name of one that is being emptied.
    const name = bucket === null || bucket.state === 'deleted' ? bucketId : bucket.name;
    return { bucketId, name, ...sum };
  });
  const behind = next !== undefined ? { shard, after: next } : { shard: shard + 1 };
  const report = { buckets: await Promise.all(shown) };
  return behind.shard < metadata.shardCount ? { ...report, next: behind } : report;
}

/** A blob, and something by which another shard may hold it: itself, or a manifest whose pages it is in. */
interface Question {
  of: BlobId;
  claim: BlobClaim;
}

/** Of blobs that several shards claim: what keeps them; `other`: more than compositions. */
async function keepersOf(
  metadata: MetadataPort,
  options: { home: number; claimed: readonly ClaimedBlob[]; isCharging: boolean },
): Promise<Map<BlobId, Keeper | 'other'>> {
  const { home, claimed, isCharging } = options;
  const keepers = new Map<BlobId, Keeper | 'other'>();
  for (const { blobId, bucketId } of claimed) if (bucketId) keepers.set(blobId, { bucketId, shard: home });
  let questions = claimed.flatMap(({ blobId, claims }) => claims.map((claim) => ({ of: blobId, claim })));
  // Of a blob, then of the manifests that it is in elsewhere, which are in none themselves.
  while (questions.length > 0) {
    const further: Question[] = [];
    for (const [shard, some] of Map.groupBy(questions, ({ claim }) => claim.shard)) {
      const blobIds = [...new Set(some.map(({ claim }) => claim.blobId))];
      const holders = await holdersIn(metadata, shard, { blobIds, isCharging });
      for (const { of, claim } of some) {
        const holder = holders.get(claim.blobId);
        if (holder?.kind === 'other') keepers.set(of, 'other');
        else if (keepers.has(of)) continue;
        else if (holder?.kind === 'composition') keepers.set(of, { bucketId: holder.bucketId, shard });
        else if (holder?.kind === 'claimed')
          further.push(...holder.claims.map((one) => ({ of, claim: one })));
      }
    }
    questions = further;
  }
  return keepers;
}

async function holdersIn(
  metadata: MetadataPort,
  shard: number,
  { blobIds, isCharging }: { blobIds: readonly BlobId[]; isCharging: boolean },
): Promise<Map<BlobId, CompositionHolder>> {
  const found = new Map<BlobId, CompositionHolder>();
  for (let left = blobIds; left.length > 0; left = blobIds.slice(found.size)) {
    const { holders } = await askShard(metadata, shard, 'find-compositions', {
      blobIds: [...left],
      ...(isCharging && { isCharging }),
    });
    if (holders.length === 0) throw new SilentShard(shard);
    for (const [at, holder] of holders.entries()) found.set(left[at] as BlobId, holder);
  }
  return found;
}
