// Replies of metadata shards (ports/metadata/port.ts) as values, or as the error that ends the request.
import { BrokenInvariant } from '../base/assert.ts';
import { AppError } from './errors.ts';

/** What a shard that does not answer makes of a request. */
export const NO_ANSWER = {
  busy: 'SlowDown',
  full: 'InsufficientStorage',
  unknown: 'ServiceUnavailable',
} as const;

/** Of a question that was not about a bucket. Throws SlowDown, InsufficientStorage, ServiceUnavailable. */
export function requireDone<T>(
  reply: { kind: 'done'; value: T } | { kind: 'stale-bucket' } | { kind: keyof typeof NO_ANSWER },
): T {
  if (reply.kind === 'done') return reply.value;
  if (reply.kind === 'stale-bucket') throw new BrokenInvariant('the question was not about a bucket');
  throw new AppError(NO_ANSWER[reply.kind]);
}
