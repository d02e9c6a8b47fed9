// What a request signed by version 2 says of its signature, read but not yet checked, and the refusal where only
// version 4 is taken.
import { AppError } from '../../types/errors.ts';

export interface SigV2Fields {
  readonly version: 'SigV2';
  readonly authType: 'AuthHeader' | 'QueryString';
  readonly accessKey: string;
  /** base64 */
  readonly signature: string;
  /** The date in the string to sign: Date, or nothing beside x-amz-date, or Expires of a presigned URL; as sent. */
  readonly dateLine: string;
  /** When a header was signed, as sent and in ms since epoch; or until when a presigned URL is good. */
  readonly time: { readonly sentText: string; readonly timeMs: number } | { readonly expiresAtMs: number };
}

/** As AWS answers where it takes version 4 only. */
export function refuseSigV2(): AppError {
  const message =
    'The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.';
  return new AppError('InvalidRequest', { message });
}
