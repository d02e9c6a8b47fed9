// What a request signed by version 4 says of its signature, read but not yet checked, and the credential scope in it.
import type { AppError } from '../../types/errors.ts';

export interface CredentialScope {
  /** yyyyMMdd */
  readonly date: string;
  readonly region: string;
  readonly service: string;
  /** `date/region/service/aws4_request` */
  readonly text: string;
}

export interface SigV4Fields {
  readonly version: 'SigV4';
  readonly authType: 'AuthHeader' | 'QueryString';
  readonly accessKey: string;
  readonly scope: CredentialScope;
  /** Lower case, sorted, each once: the only order that a signature fits. */
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  /** yyyyMMdd'T'HHmmss'Z' */
  readonly timestamp: string;
  /** The same, as sent. */
  readonly sentText: string;
  /** The same, ms since epoch. */
  readonly timeMs: number;
  /** Seconds that a presigned URL of S3 is good for. Absent: 15 minutes either way. */
  readonly expiresSeconds?: number;
}

/**
 * SignedHeaders of a header or a query. AWS sorts them itself: who has signed them in another order has signed another
 * request.
 */
export function parseSignedHeaders(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().split(';'))].sort();
}

const TERMINAL = 'aws4_request';
const DATE = /^\d{8}$/;
const REGION = /^[\w.-]{1,64}$/;

/**
 * Reads `key/yyyyMMdd/region/service/aws4_request`. Any well-formed region will do; `refuse` makes the error of the
 * form that the credential came in.
 */
export function parseCredential(
  text: string,
  service: string,
  refuse: (problem: string) => AppError,
): { accessKey: string; scope: CredentialScope } {
  const parts = text.split('/');
  // An access key may hold slashes, the other parts may not.
  const [date = '', region = '', givenService = '', terminal = ''] = parts.slice(-4);
  const accessKey = parts.slice(0, -4).join('/');
  if (parts.length < 5) {
    throw refuse(
      'the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".',
    );
  }
  if (accessKey === '') throw refuse('a non-empty Access Key (AKID) must be provided in the credential.');
  if (!DATE.test(date)) {
    throw refuse(
      `incorrect date format "${date}". This date in the credential must be in the format "yyyyMMdd".`,
    );
  }
  if (!REGION.test(region)) throw refuse(`the region '${region}' is not well-formed.`);
  if (givenService !== service) {
    throw refuse(`incorrect service "${givenService}". This endpoint belongs to "${service}".`);
  }
  if (terminal !== TERMINAL) {
    throw refuse(`incorrect terminal "${terminal}". This endpoint uses "${TERMINAL}".`);
  }
  return { accessKey, scope: { date, region, service, text: `${date}/${region}/${service}/${TERMINAL}` } };
}

/** A credential is of one day, that of the request. */
export function requireScopeDate(
  { date }: CredentialScope,
  timestamp: string,
  refuse: (problem: string) => AppError,
): void {
  if (timestamp.startsWith(date)) return;
  throw refuse(
    `Invalid credential date "${date}". This date is not the same as X-Amz-Date: "${timestamp.slice(0, 8)}".`,
  );
}
