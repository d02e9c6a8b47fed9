// SigV4 in the Authorization header: reading what it claims, with AWS's refusals. Checking it is verify-sigv4.ts.
import { BoundedMap } from '../../base/bounded-map.ts';
import { AppError } from '../../types/errors.ts';
import { invalidArgument } from '../s3/request/arguments.ts';
import { requireRequestTime } from './signing-dates.ts';
import { parseCredential, parseSignedHeaders, requireScopeDate, type SigV4Fields } from './sigv4-fields.ts';

const ALGORITHM = 'AWS4-HMAC-SHA256';

/** What a client repeats in each request: all of its header but the signature. */
type Claim = Pick<SigV4Fields, 'accessKey' | 'scope' | 'signedHeaders'>;
type SignedClaim = Claim & { signature: string };

/** Understood claims by service and by the text before the signature: a client sends one for a day. */
const CLAIMS_MAX = 512;
const CLAIM_CHARACTERS_MAX = 1024;
const claims = new BoundedMap<string, Claim>(CLAIMS_MAX);

/** As nearly every client ends its header. */
const SIGNATURE_AT_END = 'Signature=';
const SIGNATURE = /^[0-9a-f]{64}$/;
/** Else it is the end of another field's name. */
const FIELD_BEGINS = /,[ \t]*$/;

/** Throws InvalidArgument, InvalidRequest, AuthorizationHeaderMalformed, AccessDenied (no valid date). */
export function readHeaderFields(headers: Readonly<Record<string, string>>, service: string): SigV4Fields {
  const header = headers.authorization ?? '';
  const signatureAt = header.lastIndexOf(SIGNATURE_AT_END);
  const before = signatureAt > CLAIM_CHARACTERS_MAX ? '' : `${service} ${header.slice(0, signatureAt)}`;
  const ending = header.slice(signatureAt + SIGNATURE_AT_END.length);
  const isAtEnd = SIGNATURE.test(ending);
  const known = isAtEnd ? claims.get(before) : undefined;
  const claim = known === undefined ? readClaim(header, service) : { ...known, signature: ending };
  const { accessKey, scope, signedHeaders, signature } = claim;
  const time = requireRequestTime(headers);
  requireScopeDate(scope, time.timestamp, malformed);
  // What is kept has pieces of the header, and with them all of it: no longer one than that.
  if (known === undefined && isAtEnd && signature === ending && FIELD_BEGINS.test(before))
    claims.set(before, { accessKey, scope, signedHeaders });
  const { timestamp, sentText, timeMs } = time;
  return {
    version: 'SigV4',
    authType: 'AuthHeader',
    accessKey,
    scope,
    signedHeaders,
    signature,
    timestamp,
    sentText,
    timeMs,
  };
}

function readClaim(header: string, service: string): SignedClaim {
  if (header.trim() === '') throw new AppError('AccessDenied');
  const space = header.search(/\s/);
  if (header.slice(0, space === -1 ? undefined : space) !== ALGORITHM) {
    const message = 'Unsupported Authorization Type';
    throw invalidArgument({ name: 'Authorization', value: header, message });
  }
  const fields = readFields(header.slice(ALGORITHM.length));
  const credential = fields.get('Credential');
  const signedHeaders = fields.get('SignedHeaders');
  const signature = fields.get('Signature');
  if (!credential || !signedHeaders || !signature) {
    throw malformed(
      'the authorization header requires three components: Credential, SignedHeaders, and Signature.',
    );
  }
  const { accessKey, scope } = parseCredential(credential, service, malformed);
  return { accessKey, scope, signedHeaders: parseSignedHeaders(signedHeaders), signature };
}

/** `Name=value` separated by commas, blanks around them or not. */
function readFields(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const field of text.split(',')) {
    const equals = field.indexOf('=');
    if (equals !== -1) fields.set(field.slice(0, equals).trim(), field.slice(equals + 1).trim());
  }
  return fields;
}

function malformed(problem: string): AppError {
  const message = `The authorization header is malformed; ${problem}`;
  return new AppError('AuthorizationHeaderMalformed', { message });
}
