// SigV4 in the Authorization header: reading what it claims, with AWS's refusals. Checking it is verify-sigv4.ts.
import { AppError } from '../../types/errors.ts';
import { invalidArgument } from '../s3/request/arguments.ts';
import { requireRequestTime } from './signing-dates.ts';
import { parseCredential, parseSignedHeaders, requireScopeDate, type SigV4Fields } from './sigv4-fields.ts';

const ALGORITHM = 'AWS4-HMAC-SHA256';

/** Throws InvalidArgument, InvalidRequest, AuthorizationHeaderMalformed, AccessDenied (no valid date). */
export function readHeaderFields(headers: Readonly<Record<string, string>>, service: string): SigV4Fields {
  const header = headers.authorization ?? '';
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
  const time = requireRequestTime(headers);
  requireScopeDate(scope, time.timestamp, malformed);
  return {
    version: 'SigV4',
    authType: 'AuthHeader',
    accessKey,
    scope,
    signedHeaders: parseSignedHeaders(signedHeaders),
    signature,
    ...time,
  };
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
