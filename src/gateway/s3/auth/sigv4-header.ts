// SigV4 in the Authorization header: reading what it claims, with AWS's refusals. Checking it is verify-signature.ts.
import { AppError } from '../../../model/errors.ts';
import { invalidArgument } from '../arguments.ts';
import { parseCredential, type SignatureClaim } from './signature-claim.ts';
import { readRequestTime } from './signing-dates.ts';

const ALGORITHM = 'AWS4-HMAC-SHA256';
const SIGV2 = /^AWS\s/;
const SIGV2_WELL_FORMED = /^AWS\s+[^:\s]+:\S+$/;

/** Throws InvalidArgument, InvalidRequest, AuthorizationHeaderMalformed, AccessDenied (no valid date). */
export function readHeaderClaim(headers: Readonly<Record<string, string>>, service: string): SignatureClaim {
  const header = headers.authorization ?? '';
  if (header.trim() === '') throw new AppError('AccessDenied');
  const space = header.search(/\s/);
  if (header.slice(0, space === -1 ? undefined : space) !== ALGORITHM) throw refuseScheme(header);
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
  const time = readRequestTime(headers);
  if (time === undefined) {
    const message = 'AWS authentication requires a valid Date or x-amz-date header';
    throw new AppError('AccessDenied', { message });
  }
  if (!time.timestamp.startsWith(scope.date)) {
    throw malformed(
      `Invalid credential date "${scope.date}". This date is not the same as X-Amz-Date: "${time.timestamp.slice(0, 8)}".`,
    );
  }
  return {
    authType: 'AuthHeader',
    accessKey,
    scope,
    signedHeaders: signedHeaders.toLowerCase().split(';'),
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

function refuseScheme(header: string): AppError {
  if (!SIGV2.test(header)) {
    return invalidArgument({
      name: 'Authorization',
      value: header,
      message: 'Unsupported Authorization Type',
    });
  }
  if (!SIGV2_WELL_FORMED.test(header)) {
    const message = 'AWS authorization header is invalid. Expected AwsAccessKeyId:signature';
    return invalidArgument({ name: 'Authorization', value: header, message });
  }
  return refuseSigV2();
}

/** Signature version 2 comes with a later issue. */
export function refuseSigV2(): AppError {
  const message = `The authorization mechanism you have provided is not supported. Please use ${ALGORITHM}.`;
  return new AppError('InvalidRequest', { message });
}

function malformed(problem: string): AppError {
  const message = `The authorization header is malformed; ${problem}`;
  return new AppError('AuthorizationHeaderMalformed', { message });
}
