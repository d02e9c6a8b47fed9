// X-Svc-Idempotency-Token: the name under which an answer is kept for a day, so that the request may be sent again
// (extensions 2.1; AWS RenameObject has x-amz-client-token for the same).
import { createHash } from 'node:crypto';
import type { IdempotencyToken } from '../../../ports/metadata/jobs.ts';
import { LIMITS } from '../../../types/limits.ts';
import { invalidArgument } from './arguments.ts';

export const TOKEN_HEADER = 'x-svc-idempotency-token';

const PRINTABLE = /^[\x20-\x7e]+$/;

/** The token of the request, or undefined. InvalidArgument when it is empty, too long, or not of printable ASCII. */
export function parseTokenHeader(headers: Readonly<Record<string, string>>): string | undefined {
  const value = headers[TOKEN_HEADER];
  if (value === undefined) return undefined;
  if (PRINTABLE.test(value) && value.length <= LIMITS.idempotencyTokenCharactersMax) return value;
  const message = `An idempotency token has 1 to ${LIMITS.idempotencyTokenCharactersMax} printable characters.`;
  throw invalidArgument({ name: TOKEN_HEADER, value, message });
}

/** `asked`: the operation's name, and everything that distinguishes this request from others. */
export function idempotencyToken(
  token: string | undefined,
  asked: readonly unknown[],
): IdempotencyToken | undefined {
  if (token === undefined) return undefined;
  return { token, digest: createHash('sha256').update(JSON.stringify(asked)).digest('hex') };
}
