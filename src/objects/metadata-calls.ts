// Metadata calls of one request: replies that are not `done` become an AppError; if the bucket has changed since the
// request was authorised, it is authorised again and the call repeated (R45). The port finds primaries.
import { must } from '../base/assert.ts';
import { ENDLESS, type Patience } from '../base/async/patience.ts';
import type { BelievedBucket, MetadataPort, Reply } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import type { RequestOrigin } from '../types/events.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import { NO_ANSWER } from '../types/require-done.ts';
import { accountOf, INTERNAL_TENANT, type Tenant } from '../types/tenant.ts';
import type { MetadataCalls } from './object-store.ts';

/** More often than this a bucket's row does not change during a request. */
const STALE_REPLIES_MAX = 3;

const unevaluated = new WeakSet<object>();

/** Whether this error of a call proves that no shard has evaluated its command, and none will. */
export function wasNotEvaluated(error: unknown): boolean {
  return error instanceof Error && unevaluated.has(error);
}

function notEvaluated(error: unknown): unknown {
  if (error instanceof Error) unevaluated.add(error);
  return error;
}

export function createMetadataCalls(deps: {
  metadata: MetadataPort;
  /** Default: the server itself. */
  tenant?: Tenant;
  /** The request that makes the calls: what its commands do is its doing. */
  origin?: RequestOrigin;
  /** Of the request that makes the calls. Default: each may take as long as a call does. */
  patience?: Patience;
  /** Asked before each command: throws where the request must not change anything any more. A promise: it had to look. */
  beforeCommand?(): Promise<void> | undefined;
  /**
   * Decides again whether the request may continue, by this row (null: the shard never had the bucket). Resolves with the
   * belief for the next call; throws AppError NoSuchBucket, AccessDenied and others.
   */
  reauthorise(believed: BelievedBucket, row: BucketRecord | null): Promise<BelievedBucket>;
}): MetadataCalls {
  const { metadata, tenant = INTERNAL_TENANT, patience = ENDLESS, origin, beforeCommand } = deps;

  const account = origin && accountOf(origin);

  async function ask<T>(
    target: { shard: number; bucket?: BelievedBucket },
    kind: 'command' | 'query',
    send: (envelope: { shard: number; bucket?: BelievedBucket; waitMaxMs?: number }) => Promise<Reply<T>>,
  ): Promise<{ value: T; timeMs: number }> {
    let envelope = target;
    for (let staleCount = 0; staleCount < STALE_REPLIES_MAX; staleCount++) {
      const answered = patience.begin();
      const waitMaxMs = patience.leftMs();
      const reply = await send(
        waitMaxMs === Number.POSITIVE_INFINITY ? envelope : { ...envelope, waitMaxMs },
      );
      if (reply.kind === 'done') {
        answered();
        return reply;
      }
      if (reply.kind !== 'stale-bucket') {
        const error = new AppError(NO_ANSWER[reply.kind]);
        throw reply.kind === 'unknown' ? error : notEvaluated(error);
      }
      const bucket = must(envelope.bucket, 'the question was about a bucket');
      // The bucket is being deleted by force, or opens again in a moment; reads are served meanwhile.
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
    patience,
    async execute(target, name, command) {
      try {
        const looking = beforeCommand?.();
        if (looking !== undefined) await looking;
      } catch (error) {
        throw notEvaluated(error);
      }
      return ask(target, 'command', (envelope) =>
        metadata.execute(origin === undefined ? envelope : { ...envelope, origin }, name, command),
      );
    },
    query: (target, name, query) =>
      ask(target, 'query', (envelope) =>
        metadata.query(account === undefined ? envelope : { ...envelope, account }, name, query),
      ),
  };
}
