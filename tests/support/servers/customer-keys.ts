// A customer's encryption key as requests carry it (SSE-C), for the API tests.
import { createHash } from 'node:crypto';

export const ENCRYPTION = 'x-amz-server-side-encryption';

/** Whose key it is: the object's, or that of the source of a copy. */
export type KeyRole = 'own' | 'source';

const PREFIXES: Record<KeyRole, string> = {
  own: `${ENCRYPTION}-customer`,
  source: 'x-amz-copy-source-server-side-encryption-customer',
};

export function md5Of(key: Buffer): string {
  return createHash('md5').update(key).digest('base64');
}

/** The three headers. */
export function keyHeaders(key: Buffer, role: KeyRole = 'own'): Record<string, string> {
  const prefix = PREFIXES[role];
  return {
    [`${prefix}-algorithm`]: 'AES256',
    [`${prefix}-key`]: key.toString('base64'),
    [`${prefix}-key-md5`]: md5Of(key),
  };
}

/** What an answer says of the key that was used. */
export function keyAnswer(key: Buffer): Record<string, string> {
  return { [`${PREFIXES.own}-algorithm`]: 'AES256', [`${PREFIXES.own}-key-md5`]: md5Of(key) };
}
