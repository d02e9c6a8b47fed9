// Comparing a signature with the one it should be, and what a client is told when they differ: all that it needs to
// find its mistake, and nothing of the signature that would have been right.
import { timingSafeEqual } from 'node:crypto';
import { bytesToText } from '../../../lib/uri.ts';
import { AppError } from '../../../model/errors.ts';
import { withoutCustomerKeys } from '../customer-key.ts';

/** In time that does not depend on where they differ. */
export function isSameText(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected, 'latin1'), Buffer.from(given, 'latin1')];
  return a.length === b.length && timingSafeEqual(a, b);
}

/**
 * SignatureDoesNotMatch with the fields that AWS adds, but for keys of customers: programs write errors into their logs.
 * Texts of bytes, one character each. SigV2 has no canonical request.
 */
export function signatureMismatch(
  claim: { accessKey: string; signature: string },
  texts: { stringToSign: string; canonicalRequest?: string },
): AppError {
  const stringToSign = withoutCustomerKeys(texts.stringToSign);
  const canonicalRequest = texts.canonicalRequest && withoutCustomerKeys(texts.canonicalRequest);
  return new AppError('SignatureDoesNotMatch', {
    fields: {
      AWSAccessKeyId: claim.accessKey,
      StringToSign: bytesToText(stringToSign) ?? stringToSign,
      SignatureProvided: claim.signature,
      StringToSignBytes: spacedHex(stringToSign),
      ...(canonicalRequest !== undefined && {
        CanonicalRequest: bytesToText(canonicalRequest) ?? canonicalRequest,
        CanonicalRequestBytes: spacedHex(canonicalRequest),
      }),
    },
  });
}

function spacedHex(text: string): string {
  return Buffer.from(text, 'latin1')
    .toString('hex')
    .replace(/..(?!$)/g, '$& ');
}
