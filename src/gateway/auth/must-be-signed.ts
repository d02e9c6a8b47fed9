// Which headers a signature must cover, in one rule for every form of authentication. Whatever it leaves out, the holder
// of a presigned URL may choose freely, so in a query string more headers count than in an Authorization header, which
// nobody but the signer sends.
import { AppError } from '../../types/errors.ts';
import { READ_METHODS } from '../s3/operation.ts';
import { TOKEN_HEADER } from '../s3/request/idempotency-token.ts';
import { canonicalHeaderName, isVendorHeader } from '../s3/request/vendor.ts';
import type { SignedParts } from './canonical-request.ts';
import type { SigV2Fields } from './sigv2-fields.ts';
import type { SigV4Fields } from './sigv4-fields.ts';

/** What the head says: all that is signed but the digest of the body. */
type HeadParts = Omit<SignedParts, 'payloadHash'>;

/** Headers beside those of the vendor that say what is done and to what (extensions 2.1). */
const DECISIVE = new Set(['destination', 'overwrite']);
/** Extension headers; what answers carry (a shared cache would keep it under the URL of the maker). */
const DECISIVE_PREFIXES = ['x-svc-', 'response-'];

/** Headers whose values name keys, the tags that policies go by, or what is done once. */
const NAMING = new Set(['destination', 'x-amz-copy-source', 'x-amz-tagging', TOKEN_HEADER]);
/** SigV4 signs them as one blank each: the holder of a URL could name another one. Encoded, names are told apart. */
const ALIKE_BLANKS = /\t| {2}/;

const DIGEST = 'x-amz-content-sha256';
const SHA256_HEX = /^[0-9a-f]{64}$/i;

/** AccessDenied, with the names in HeadersNotSigned as AWS has it, unless all that must be signed is. */
export function requireSignedHeaders(request: HeadParts, signedFields: SigV4Fields | SigV2Fields): void {
  const unsigned = unsignedHeaders(request, signedFields);
  if (unsigned.length === 0) return;
  throw new AppError('AccessDenied', {
    message: 'There were headers present in the request which were not signed',
    fields: { HeadersNotSigned: unsigned.join(', ') },
  });
}

/** Names as they were sent, each once. */
function unsignedHeaders(request: HeadParts, signedFields: SigV4Fields | SigV2Fields): string[] {
  const { method, headers } = request;
  const isInQuery = signedFields.authType === 'QueryString';
  const isCovered = coverageOf(signedFields);
  const wanted = new Set(signedFields.version === 'SigV4' ? ['host'] : []);
  // Without one in the signature the holder could name any.
  if (isInQuery && method === 'MOVE') wanted.add('destination');
  for (const name of headers.sentNames) {
    if (isAlwaysSigned(name) || (isInQuery && isDecisive(name, method))) wanted.add(name);
  }
  const blurred = isInQuery && signedFields.version === 'SigV4' ? blurredNames(headers) : [];
  const unsigned = [...wanted].filter((name) => !isCovered(name) || blurred.includes(name));
  return isInQuery && leavesSourcesOpen(request, signedFields) ? [...unsigned, DIGEST] : unsigned;
}

function blurredNames({ sentNames, sentValues }: HeadParts['headers']): string[] {
  return sentNames.filter(
    (name, at) => NAMING.has(canonicalHeaderName(name)) && ALIKE_BLANKS.test(sentValues[at] ?? ''),
  );
}

/**
 * The document of a composition names what is joined: without its digest in the signature the holder could choose of all that the
 * maker may read.
 */
function leavesSourcesOpen(
  { method, target, headers }: HeadParts,
  { version }: SigV4Fields | SigV2Fields,
): boolean {
  if (method !== 'PUT' || !target.query.parameters.has('compose')) return false;
  const inQuery = version === 'SigV4' ? target.query.parameters.get('X-Amz-Content-Sha256') : undefined;
  return !SHA256_HEX.test(headers.values[DIGEST] ?? inQuery ?? '');
}

/** SigV2 signs what is of the vendor's and three lines of HTTP's, and cannot sign anything else. */
function coverageOf(signedFields: SigV4Fields | SigV2Fields): (name: string) => boolean {
  if (signedFields.version === 'SigV2') return (name) => isVendorHeader(name) || name === 'content-md5';
  const signed = new Set(signedFields.signedHeaders);
  return (name) => signed.has(name);
}

/** AWS "Create a canonical request"; the digest of the body is in every signature by itself. */
function isAlwaysSigned(name: string): boolean {
  if (name === DIGEST) return false;
  return isVendorHeader(name) || name === 'content-md5';
}

function isDecisive(sentName: string, method: string): boolean {
  const name = canonicalHeaderName(sentName);
  if (DECISIVE.has(name) || DECISIVE_PREFIXES.some((prefix) => name.startsWith(prefix))) return true;
  // Conditions of reads only choose between the object and a short answer.
  return name.startsWith('if-') && !READ_METHODS.has(method);
}
