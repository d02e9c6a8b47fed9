// Whether what a SigV2 claim says is so: its time, and its signature, which is HMAC-SHA1 by the secret key itself.
import { createHmac, type KeyObject } from 'node:crypto';
import { AppError } from '../../types/errors.ts';
import type { SignedParts } from './canonical-request.ts';
import type { Identity } from './identities.ts';
import { isSameText, signatureMismatch } from './signature-mismatch.ts';
import { requireNear } from './signing-dates.ts';
import type { SigV2Fields } from './sigv2-fields.ts';
import { sigV2StringsToSign } from './sigv2-string.ts';

/** A header is good for 15 minutes either way (RequestTimeTooSkewed), a presigned URL until it expires (AccessDenied). */
export function requireSigV2Time({ time }: SigV2Fields, nowMs: number): void {
  if ('timeMs' in time) {
    requireNear(time, nowMs);
    return;
  }
  if (nowMs <= time.expiresAtMs) return;
  const fields = { Expires: wholeSeconds(time.expiresAtMs), ServerTime: wholeSeconds(nowMs) };
  throw new AppError('AccessDenied', { message: 'Request has expired', fields });
}

/** Throws SignatureDoesNotMatch. */
export function requireSigV2Signature(
  parts: SignedParts,
  signedFields: SigV2Fields,
  identity: Identity,
): void {
  const strings = sigV2StringsToSign(parts, signedFields.dateLine);
  if (strings.some((text) => isSameText(signV2(identity.secret, text), signedFields.signature))) return;
  throw signatureMismatch(signedFields, { stringToSign: strings[0] });
}

/** base64, of a text of bytes. */
function signV2(secret: KeyObject, text: string): string {
  return createHmac('sha1', secret).update(text, 'latin1').digest('base64');
}

function wholeSeconds(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, -'.000Z'.length)}Z`;
}
