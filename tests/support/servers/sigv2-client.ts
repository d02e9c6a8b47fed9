// A signer of version 2 of our own, written from AWS's "Signing and authenticating REST requests" and not from the
// server's code. The caller says what its resource is, as a client that knows its bucket does. Not here: sending.
import { createHmac } from 'node:crypto';
import type { Credentials } from './s3-client.ts';

export interface SigV2Options {
  method: string;
  /** CanonicalizedResource: `/bucket/key?uploads`. */
  resource: string;
  /** Names in lower case. */
  headers?: Readonly<Record<string, string>>;
  credentials: Credentials;
}

/** `date`: the line of Date or Expires. */
export function sigV2Of(options: SigV2Options, date: string): string {
  const { method, resource, headers = {}, credentials } = options;
  const vendors = Object.keys(headers)
    .filter((name) => name.startsWith('x-amz-') || name.startsWith('x-std-'))
    .sort()
    .map((name) => `${name}:${headers[name]}\n`);
  const toSign = [method, headers['content-md5'] ?? '', headers['content-type'] ?? '', date];
  return createHmac('sha1', credentials.secretKey)
    .update(`${toSign.join('\n')}\n${vendors.join('')}${resource}`, 'latin1')
    .digest('base64');
}

/** The headers with Authorization; dated by x-amz-date or Date where they are there, else now, by Date. */
export function signHeadersV2(options: SigV2Options & { nowMs: number }): Record<string, string> {
  const dated = { date: new Date(options.nowMs).toUTCString(), ...options.headers };
  const headers: Record<string, string> = { ...dated };
  const line = headers['x-amz-date'] === undefined ? (headers.date ?? '') : '';
  const signature = sigV2Of({ ...options, headers }, line);
  return { ...headers, authorization: `AWS ${options.credentials.accessKey}:${signature}` };
}

/** What a presigned URL has in its query, besides its sub-resources. */
export function presignV2(options: SigV2Options & { expires: number | string }): string {
  const expires = String(options.expires);
  return new URLSearchParams({
    AWSAccessKeyId: options.credentials.accessKey,
    Expires: expires,
    Signature: sigV2Of(options, expires),
  }).toString();
}
