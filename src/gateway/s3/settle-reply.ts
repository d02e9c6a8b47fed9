// Replies of metadata shards as values or as the error that ends the request.
import { BrokenInvariant } from '../../lib/assert.ts';
import { AppError } from '../../model/errors.ts';
import type { Reply } from '../../ports/metadata.ts';

const ERROR_OF = { busy: 'SlowDown', full: 'InsufficientStorage', unknown: 'ServiceUnavailable' } as const;

/** Of a question that was not about a bucket. Throws SlowDown, InsufficientStorage, ServiceUnavailable. */
export function settleReply<T>(reply: Reply<T>): T {
  if (reply.kind === 'done') return reply.value;
  if (reply.kind === 'stale-bucket') throw new BrokenInvariant('the question was not about a bucket');
  throw new AppError(ERROR_OF[reply.kind]);
}
