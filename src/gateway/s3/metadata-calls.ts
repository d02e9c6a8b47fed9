// Metadata calls of one request: a bucket that turns out to have changed is read anew, the request authorised again by
// the new row, and the call repeated (R45). What is left to callers are values.
import { AppError } from '../../model/errors.ts';
import type { BucketId } from '../../model/names.ts';
import type { MetadataCalls } from '../../objects/object-store.ts';
import type { BucketClaim, MetadataPort, Reply } from '../../ports/metadata.ts';
import type { BucketCache } from './bucket-cache.ts';
import type { ResolvedBucket } from './context.ts';
import { refusedReply } from './settle-reply.ts';

/** A bucket's settings change rarely; more often than this within one call, somebody is hammering them. */
const ATTEMPTS_MAX = 5;

interface CallTarget {
  shard: number;
  bucket?: BucketClaim;
}

/**
 * `authoriseAnew` is asked with the bucket's new row before the call is repeated; it throws AccessDenied where the
 * request is no longer allowed.
 */
export function createMetadataCalls(deps: {
  metadata: MetadataPort;
  buckets: BucketCache;
  authoriseAnew(bucket: ResolvedBucket): void;
}): MetadataCalls {
  const { metadata, buckets, authoriseAnew } = deps;
  // Claims that this request has found to be out of date, and what holds instead.
  let newer: Map<BucketId, BucketClaim> | undefined;

  async function refresh(stale: BucketClaim): Promise<void> {
    const bucket = await buckets.read(stale.name);
    if (bucket === undefined) throw new AppError('NoSuchBucket', { fields: { BucketName: stale.name } });
    // Deleted and made again meanwhile: what the request has resolved so far is of the old one. Clients try again.
    if (bucket.record.bucketId !== stale.bucketId) throw new AppError('ServiceUnavailable');
    authoriseAnew(bucket);
    newer ??= new Map();
    newer.set(stale.bucketId, bucket.claim);
  }

  async function call<T>(
    target: CallTarget,
    send: (envelope: CallTarget) => Promise<Reply<T>>,
  ): Promise<{ value: T; timeMs: number }> {
    for (let attempt = 1; ; attempt++) {
      const claim = target.bucket && (newer?.get(target.bucket.bucketId) ?? target.bucket);
      const reply = await send(
        claim === undefined ? { shard: target.shard } : { shard: target.shard, bucket: claim },
      );
      if (reply.kind === 'done') return reply;
      if (reply.kind !== 'stale-bucket') throw refusedReply(reply);
      if (claim === undefined || attempt === ATTEMPTS_MAX) throw new AppError('ServiceUnavailable');
      await refresh(claim);
    }
  }

  return {
    execute: (target, name, command) => call(target, (envelope) => metadata.execute(envelope, name, command)),
    query: (target, name, query) => call(target, (envelope) => metadata.query(envelope, name, query)),
    shardCount: metadata.shardCount,
  };
}
