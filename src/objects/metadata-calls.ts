// Metadata calls as one request makes them: what is not `done` becomes an AppError, and a bucket that has changed since
// the request was authorised is authorised anew and asked again (R45). Finding primaries is the port's business.
import { must } from '../base/assert.ts';
import type { BucketClaim, MetadataPort, Reply } from '../ports/metadata.ts';
import { AppError } from '../types/errors.ts';
import type { RequestOrigin } from '../types/events.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import { NO_ANSWER } from '../types/settle-reply.ts';
import { INTERNAL_TENANT, type Tenant } from '../types/tenant.ts';
import type { MetadataCalls } from './object-store.ts';

/** A bucket whose row changes faster than a request can be authorised. */
const STALE_REPLIES_MAX = 3;

const unevaluated = new WeakSet<object>();

/** Whether this error of a call says for sure that no shard has evaluated its command, and none will. */
export function wasNotEvaluated(error: unknown): boolean {
  return error instanceof Error && unevaluated.has(error);
}

function notEvaluated(error: unknown): unknown {
  if (error instanceof Error) unevaluated.add(error);
  return error;
}

export function createMetadataCalls(deps: {
  metadata: MetadataPort;
  /** Default: the server's own. */
  tenant?: Tenant;
  /** The request that makes the calls: what its commands do is its doing. */
  origin?: RequestOrigin;
  /**
   * Decides anew whether the request may go on, by this row (null: the shard never had the bucket). Resolves with the
   * claim to ask with; throws AppError NoSuchBucket, AccessDenied and so on.
   */
  reauthorise(claim: BucketClaim, row: BucketRecord | null): Promise<BucketClaim>;
}): MetadataCalls {
  const { metadata, tenant = INTERNAL_TENANT, origin } = deps;

  async function ask<T>(
    target: { shard: number; bucket?: BucketClaim },
    kind: 'command' | 'query',
    send: (envelope: { shard: number; bucket?: BucketClaim }) => Promise<Reply<T>>,
  ): Promise<{ value: T; timeMs: number }> {
    let envelope = target;
    for (let staleCount = 0; staleCount < STALE_REPLIES_MAX; staleCount++) {
      const reply = await send(envelope);
      if (reply.kind === 'done') return reply;
      if (reply.kind !== 'stale-bucket') {
        const error = new AppError(NO_ANSWER[reply.kind]);
        throw reply.kind === 'unknown' ? error : notEvaluated(error);
      }
      const bucket = must(envelope.bucket, 'the question was about a bucket');
      // It is being deleted by force, or open again in a moment; reads are served meanwhile.
      const isClosing = reply.bucket?.state === 'closing' && reply.bucket.name === bucket.name;
      if (isClosing && kind === 'command') throw notEvaluated(new AppError('OperationAborted'));
      try {
        envelope = { ...envelope, bucket: await deps.reauthorise(bucket, reply.bucket) };
      } catch (error) {
        throw notEvaluated(error);
      }
    }
    throw notEvaluated(new AppError('OperationAborted'));
  }

  return {
    shardCount: metadata.shardCount,
    tenant,
    execute: (target, name, command) =>
      ask(target, 'command', (envelope) =>
        metadata.execute(origin === undefined ? envelope : { ...envelope, origin }, name, command),
      ),
    query: (target, name, query) => ask(target, 'query', (envelope) => metadata.query(envelope, name, query)),
  };
}
