// One rule for what a signature must cover, judged over the four forms of authentication.
import { describe, expect, test } from 'vitest';
import {
  AWS,
  DAY_MS,
  HOST,
  openSigningWorld,
  presigned,
  type Sent,
  signed,
} from '../../../tests/support/objects/signing-world.ts';
import { presignV2, signHeadersV2 } from '../../../tests/support/servers/sigv2-client.ts';
import { AppError } from '../../types/errors.ts';

const { identify } = await openSigningWorld();

/** The names in the refusal; 'account' if there is no refusal. */
async function unsignedOf(sent: Sent): Promise<unknown> {
  try {
    return (await identify(sent)).caller.kind;
  } catch (error) {
    if (error instanceof AppError && error.code === 'AccessDenied') return error.fields.HeadersNotSigned;
    throw error;
  }
}

const adding = (sent: Sent, more: Readonly<Record<string, string>>): Sent => ({
  ...sent,
  headers: [...sent.headers, ...Object.entries(more)],
});

const MOVE = { method: 'MOVE', headers: { host: HOST, destination: 'b' } };

function presignedV2(method: string, headers: Readonly<Record<string, string>>): Sent {
  const query = presignV2({ method, resource: '/examplebucket/k', credentials: AWS, expires: DAY_MS / 1000 });
  return { method, uri: `/k?${query}`, headers: Object.entries({ host: HOST, ...headers }) };
}

describe('a presigned URL', () => {
  test('for a MOVE is valid for its signed Destination only', async () => {
    expect(await unsignedOf(presigned(60, MOVE))).toBe('account');
    const without = presigned(60, { method: 'MOVE' });
    expect(await unsignedOf(without)).toBe('destination');
    expect(await unsignedOf(adding(without, { Destination: 'stolen' }))).toBe('destination');
  });

  test.each([
    ['MOVE', { Overwrite: 'true' }, 'overwrite'],
    ['MOVE', { 'X-Svc-Prefix': 'true', 'X-Wasabi-Quiet': 'true' }, 'x-svc-prefix, x-wasabi-quiet'],
    ['MOVE', { 'X-Svc-Idempotency-Token': 't' }, 'x-svc-idempotency-token'],
    ['MOVE', { 'X-Svc-Destination-If-Match': '*', 'If-Match': '*' }, 'x-svc-destination-if-match, if-match'],
    ['PUT', { 'X-Svc-Idempotency-Token': 't' }, 'x-svc-idempotency-token'],
    ['PUT', { 'x-amz-write-offset-bytes': '0' }, 'x-amz-write-offset-bytes'],
    [
      'PUT',
      { 'x-amz-copy-source': '/b/k', 'x-amz-metadata-directive': 'REPLACE' },
      'x-amz-copy-source, x-amz-metadata-directive',
    ],
    ['PUT', { 'If-None-Match': '*' }, 'if-none-match'],
    [
      'PUT',
      { 'x-amz-acl': 'public-read', 'x-amz-tagging': 'a=b', 'x-amz-meta-a': 'b' },
      'x-amz-acl, x-amz-tagging, x-amz-meta-a',
    ],
    ['DELETE', { 'x-amz-bypass-governance-retention': 'true' }, 'x-amz-bypass-governance-retention'],
    ['DELETE', { 'If-Match': '*' }, 'if-match'],
    ['GET', { 'Response-Content-Type': 'text/html' }, 'response-content-type'],
  ])('%s with %j', async (method, more, names) => {
    const change = method === 'MOVE' ? MOVE : { method };
    expect(await unsignedOf(adding(presigned(60, change), more))).toBe(names);
    const headers = Object.fromEntries(
      Object.entries({ ...(change as typeof MOVE).headers, host: HOST, ...more }).map(([name, value]) => [
        name.toLowerCase(),
        value,
      ]),
    );
    expect(await unsignedOf(presigned(60, { method, headers }))).toBe('account');
  });

  test.each([
    ['x-amz-copy-source', '/b/a key'],
    ['x-amz-tagging', 'team=a key'],
    ['x-svc-idempotency-token', 'only once'],
    ['x-wasabi-idempotency-token', 'only once'],
  ])('takes no other blanks in %s than are signed', async (name, value) => {
    const headers = { host: HOST, [name]: value };
    const { uri = '', ...sent } = presigned(60, { method: 'PUT', headers });
    const using = (other: string): Sent => ({
      ...sent,
      uri,
      headers: Object.entries({ ...headers, [name]: other }),
    });
    expect(await unsignedOf(using(value))).toBe('account');
    for (const blanks of ['  ', '\t']) expect(await unsignedOf(using(value.replace(' ', blanks)))).toBe(name);
  });

  test('for a composition is valid for one document only', async () => {
    const compose = { method: 'PUT', uri: '/k?compose' };
    expect(await unsignedOf(presigned(60, compose))).toBe('x-amz-content-sha256');
    for (const digest of ['UNSIGNED-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER']) {
      const headers = { host: HOST, 'x-amz-content-sha256': digest };
      expect(await unsignedOf(presigned(60, { ...compose, headers })), digest).toBe('x-amz-content-sha256');
    }
    const headers = { host: HOST, 'x-amz-content-sha256': 'a'.repeat(64) };
    expect(await unsignedOf(presigned(60, { ...compose, headers, payloadHash: 'a'.repeat(64) }))).toBe(
      'account',
    );
  });

  test.each([
    ['PUT', { 'Content-Type': 'text/plain', 'Content-Length': '3', 'Cache-Control': 'no-store' }],
    ['GET', { Range: 'bytes=0-1', 'If-None-Match': '"a"', 'If-Modified-Since': 'x', 'If-Range': '"a"' }],
    ['GET', { 'User-Agent': 'x', Accept: '*/*', Origin: 'https://example.com', 'x-amzn-trace-id': 't' }],
    ['PUT', { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }],
  ])('%s takes unsigned what browsers and SDKs leave so: %j', async (method, more) => {
    expect(await unsignedOf(adding(presigned(60, { method }), more))).toBe('account');
  });
});

describe('a presigned URL of version 2, which signs no such header,', () => {
  test('is never valid for a MOVE', async () => {
    expect(await unsignedOf(presignedV2('MOVE', {}))).toBe('destination');
    expect(await unsignedOf(presignedV2('MOVE', { Destination: 'b' }))).toBe('destination');
  });

  test.each([
    ['PUT', { 'X-Svc-Idempotency-Token': 't' }, 'x-svc-idempotency-token'],
    ['PUT', { 'If-Match': '*' }, 'if-match'],
    ['PUT', { Overwrite: 'true', Destination: 'b' }, 'overwrite, destination'],
    ['GET', { 'Response-X': 'y' }, 'response-x'],
  ])('%s takes no %j', async (method, more, names) => {
    expect(await unsignedOf(presignedV2(method, more))).toBe(names);
  });

  test('accepts the headers that reads carry', async () => {
    expect(await unsignedOf(presignedV2('GET', { Range: 'bytes=0-1', 'If-Match': '"a"' }))).toBe('account');
  });
});

test('extensions 2.1: with the Authorization header they may be unsigned, in both versions', async () => {
  const more = { Destination: 'b', Overwrite: 'true', 'X-Svc-Prefix': 'true', 'If-Match': '*' };
  expect(await unsignedOf(adding(signed({ method: 'MOVE' }), more))).toBe('account');
  const resource = '/examplebucket/k';
  const headers = signHeadersV2({ method: 'MOVE', resource, credentials: AWS, nowMs: DAY_MS });
  const sent: Sent = { method: 'MOVE', uri: '/k', headers: Object.entries({ host: HOST, ...headers }) };
  expect(await unsignedOf(adding(sent, more))).toBe('account');
});
