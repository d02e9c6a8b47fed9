// SigV2 in the Authorization header, `AWS key:signature` (AWS "Signing and authenticating REST requests"): reading what
// it claims, with AWS's refusals. Checking it is verify-sigv2.ts.
import { invalidArgument } from '../s3/request/arguments.ts';
import { requireRequestTime } from './signing-dates.ts';
import type { SigV2Fields } from './sigv2-fields.ts';

const SCHEME = /^AWS(?:\s|$)/i;

export function isSigV2Header(header: string): boolean {
  return SCHEME.test(header);
}

/** Throws InvalidArgument, AccessDenied (no valid date). */
export function readSigV2Header(headers: Readonly<Record<string, string>>): SigV2Fields {
  const header = headers.authorization ?? '';
  const [accessKey = '', signature = '', ...rest] = header.slice('AWS '.length).split(':');
  if (accessKey === '' || signature === '' || rest.length > 0 || /\s/.test(accessKey)) {
    const message = 'AWS authorization header is invalid. Expected AwsAccessKeyId:signature';
    throw invalidArgument({ name: 'Authorization', value: header, message });
  }
  const { sentText, timeMs } = requireRequestTime(headers);
  return {
    version: 'SigV2',
    authType: 'AuthHeader',
    accessKey,
    signature,
    // x-amz-date is signed among the headers of its kind.
    dateLine: headers['x-amz-date'] === undefined ? sentText : '',
    time: { sentText, timeMs },
  };
}
