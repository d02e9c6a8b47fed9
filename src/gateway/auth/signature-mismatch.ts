// Compares a signature with the expected one, and makes the error when they differ: everything that a client needs to find
// its mistake, and nothing of the right signature.
import { timingSafeEqual } from 'node:crypto';
import { bytesToText } from '../../base/text/uri.ts';
import { AppError } from '../../types/errors.ts';
import { redact } from '../http/redact.ts';

/** In time that does not depend on where they differ. */
export function isSameText(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected, 'latin1'), Buffer.from(given, 'latin1')];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Above this many characters of both texts the client is spared their bytes, which take three times as many. */
const SPELT_OUT_MAX = 1024;

/**
 * SignatureDoesNotMatch with the fields that AWS adds, as far as they may be repeated (redact.ts); the bytes of texts that
 * hold no secret and are short. Texts of bytes, one character each. SigV2 has no canonical request.
 */
export function signatureMismatch(
  signedFields: { accessKey: string; signature: string },
  texts: { stringToSign: string; canonicalRequest?: string },
): AppError {
  const { stringToSign, canonicalRequest } = texts;
  const shown = [stringToSign, ...(canonicalRequest === undefined ? [] : [canonicalRequest])];
  const isShort = shown.reduce((sum, { length }) => sum + length, 0) <= SPELT_OUT_MAX;
  const isSpeltOut = isShort && shown.every((text) => redact(text) === text);
  return new AppError('SignatureDoesNotMatch', {
    fields: {
      AWSAccessKeyId: signedFields.accessKey,
      StringToSign: bytesToText(stringToSign) ?? stringToSign,
      SignatureProvided: signedFields.signature,
      ...(isSpeltOut && { StringToSignBytes: spacedHex(stringToSign) }),
      ...(canonicalRequest !== undefined && {
        CanonicalRequest: bytesToText(canonicalRequest) ?? canonicalRequest,
        ...(isSpeltOut && { CanonicalRequestBytes: spacedHex(canonicalRequest) }),
      }),
    },
  });
}

function spacedHex(text: string): string {
  return Buffer.from(text, 'latin1')
    .toString('hex')
    .replace(/..(?!$)/g, '$& ');
}
