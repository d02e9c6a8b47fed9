// How a body is sent and what vouches for it: x-amz-content-sha256 (AWS "Authenticating requests: header").
import { AppError } from '../../types/errors.ts';
import type { QueryParameters } from '../s3/operation.ts';
import { invalidArgument } from '../s3/request/arguments.ts';

export type PayloadForm =
  | { kind: 'plain' /** hex, lower case */; sha256?: string }
  /** aws-chunked: in chunks that carry signatures or not, with a trailer or without. */
  | { kind: 'chunked'; isSigned: boolean; hasTrailer: boolean };

export interface Payload {
  /** What the canonical request ends in. */
  readonly hash: string;
  readonly form: PayloadForm;
}

const NAME = 'x-amz-content-sha256';
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';
const SHA256_HEX = /^[0-9a-fA-F]{64}$/;
const FORMS: ReadonlyMap<string, PayloadForm> = new Map([
  [UNSIGNED_PAYLOAD, { kind: 'plain' }],
  ['STREAMING-UNSIGNED-PAYLOAD-TRAILER', { kind: 'chunked', isSigned: false, hasTrailer: true }],
  ['STREAMING-AWS4-HMAC-SHA256-PAYLOAD', { kind: 'chunked', isSigned: true, hasTrailer: false }],
  ['STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER', { kind: 'chunked', isSigned: true, hasTrailer: true }],
]);

/** InvalidRequest when a signed header is missing; InvalidArgument for a malformed value; NotImplemented for SigV4A. */
export function readPayload(headers: Readonly<Record<string, string>>, query: QueryParameters): Payload {
  const value = headers[NAME] ?? query.get('X-Amz-Content-Sha256');
  if (value === undefined) {
    if (headers.authorization?.startsWith('AWS4-') === true) {
      throw new AppError('InvalidRequest', { message: `Missing required header for this request: ${NAME}` });
    }
    return { hash: UNSIGNED_PAYLOAD, form: { kind: 'plain' } };
  }
  const form = FORMS.get(value);
  if (form !== undefined) return { hash: value, form };
  if (SHA256_HEX.test(value)) return { hash: value, form: { kind: 'plain', sha256: value.toLowerCase() } };
  if (value.startsWith('STREAMING-AWS4-ECDSA-')) {
    throw new AppError('NotImplemented', { fields: { Header: NAME } });
  }
  const message = `${NAME} must be ${[...FORMS.keys()].join(', ')} or a valid sha256 value.`;
  throw invalidArgument({ name: NAME, value, message });
}
