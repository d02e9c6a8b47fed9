// What `holdfast composed` shows: the data that compositions alone keep (service.txt 4.2, compose rule 6), by bucket, a page
// of blobs at a time; who asks adds the pages up. Of a blob that is held in several shards each is asked.
import { AppError } from '../../model/errors.ts';
import type { BlobId, BucketId } from '../../model/names.ts';
import type { ClaimedBlob } from '../../ports/compose-calls.ts';
import type { MetadataPort, QueryName, QueryOf, ResultOf } from '../../ports/metadata.ts';

/** Blobs of one page, each with a look at its links: some milliseconds of a shard. */
const PAGE = 500;

export interface ComposedPlace {
  shard: number;
  after?: BlobId;
}

export interface ComposedReport {
  /** In a page a bucket is there once, in several pages as often. Its name is its id where it is not known any more. */
  buckets: { bucketId: BucketId; name: string; sizeBytes: number; blobCount: number }[];
  /** Absent behind the last page. */
  next?: ComposedPlace;
}

/** Throws AppError NoSuchEntity for a shard that there is not, ServiceUnavailable when one does not answer. */
export async function readComposed(
  metadata: MetadataPort,
  { shard, after }: ComposedPlace,
): Promise<ComposedReport> {
  if (shard >= metadata.shardCount)
    throw new AppError('NoSuchEntity', { message: 'There is no such shard.' });
  const query = { limit: PAGE, ...(after && { after }) };
  const { buckets, claimed, next } = await ask(metadata, shard, 'count-composed-only', query);
  const found = new Map<BucketId, { shard: number; sizeBytes: number; blobCount: number }>();
  const add = (bucketId: BucketId, of: { shard: number; sizeBytes: number; blobCount: number }) => {
    const { sizeBytes = 0, blobCount = 0 } = found.get(bucketId) ?? {};
    found.set(bucketId, {
      ...{ shard: of.shard, sizeBytes: sizeBytes + of.sizeBytes, blobCount: blobCount + of.blobCount },
    });
  };
  for (const { bucketId, ...sum } of buckets) add(bucketId, { shard, ...sum });
  for (const { sizeBytes, at } of await composedElsewhere(metadata, shard, claimed))
    add(at.bucketId, { shard: at.shard, sizeBytes, blobCount: 1 });
  const shown = [...found].map(async ([bucketId, { shard: of, ...sum }]) => {
    const { bucket } = await ask(metadata, of, 'get-bucket', { bucketId });
    return { bucketId, name: bucket?.name ?? bucketId, ...sum };
  });
  const behind = next !== undefined ? { shard, after: next } : { shard: shard + 1 };
  return {
    buckets: await Promise.all(shown),
    ...(behind.shard < metadata.shardCount && { next: behind }),
  };
}

/** Of blobs that several shards hold those that all of these hold by compositions alone, and the first one's bucket. */
async function composedElsewhere(
  metadata: MetadataPort,
  home: number,
  claimed: readonly ClaimedBlob[],
): Promise<{ sizeBytes: number; at: { bucketId: BucketId; shard: number } }[]> {
  const places = new Map<BlobId, { bucketId: BucketId; shard: number } | 'other'>();
  for (const { blobId, bucketId } of claimed) if (bucketId) places.set(blobId, { bucketId, shard: home });
  for (const shard of new Set(claimed.flatMap(({ shards }) => shards))) {
    const blobIds = claimed.filter(({ shards }) => shards.includes(shard)).map(({ blobId }) => blobId);
    const { holders } = await ask(metadata, shard, 'find-compositions', { blobIds });
    for (const [at, blobId] of blobIds.entries()) {
      const holder = holders[at] ?? { kind: 'other' };
      if (holder.kind === 'other') places.set(blobId, 'other');
      else if (holder.kind === 'composition' && !places.has(blobId))
        places.set(blobId, { bucketId: holder.bucketId, shard });
    }
  }
  return claimed.flatMap(({ blobId, sizeBytes }) => {
    const at = places.get(blobId);
    return at === undefined || at === 'other' ? [] : [{ sizeBytes, at }];
  });
}

async function ask<N extends QueryName>(
  metadata: MetadataPort,
  shard: number,
  name: N,
  query: QueryOf<N>,
): Promise<ResultOf<N>> {
  const reply = await metadata.query({ shard }, name, query);
  if (reply.kind !== 'done') throw new AppError('ServiceUnavailable');
  return reply.value;
}
