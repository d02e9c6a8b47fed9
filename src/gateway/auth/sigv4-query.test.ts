import { describe, expect, test } from 'vitest';
import {
  DAY_MS,
  HOST,
  openSigningWorld,
  presigned,
  type Sent,
  signed,
} from '../../../tests/support/objects/signing-world.ts';

const { outcome } = await openSigningWorld();

describe('presigned URLs', () => {
  test.each([
    [1, 'account'],
    [604_800, 'account'],
    [0, '403 AccessDenied'],
    [-1, '403 AccessDenied'],
    ['+1', 'account'],
    ['9'.repeat(15), '403 AccessDenied'],
    ['-9'.padEnd(15, '9'), '403 AccessDenied'],
    [604_801, '403 AccessDenied'],
    ['soon', '400 AuthorizationQueryParametersError'],
    ['', '400 AuthorizationQueryParametersError'],
  ])('s3-behaviour 12: good for %j seconds', async (seconds, expected) => {
    expect(await outcome(presigned(seconds))).toBe(expected);
  });

  test('s3-behaviour 12: expired, and not yet valid', async () => {
    expect(await outcome(presigned(60, { nowMs: DAY_MS - 60_000 }))).toBe('account');
    expect(await outcome(presigned(60, { nowMs: DAY_MS - 61_000 }))).toBe('403 AccessDenied');
    expect(await outcome(presigned(60, { nowMs: DAY_MS + 14 * 60_000 }))).toBe('account');
    expect(await outcome(presigned(60, { nowMs: DAY_MS + 16 * 60_000 }))).toBe('403 AccessDenied');
  });

  test('accepts headers and parameters of its own', async () => {
    const headers = { host: HOST, 'content-type': 'text/plain', 'x-amz-meta-a': 'b' };
    expect(await outcome(presigned(60, { method: 'PUT', headers, uri: '/k?partNumber=1&uploadId=u' }))).toBe(
      'account',
    );
    const sent = presigned(60, { method: 'PUT', headers });
    const changed = sent.headers.map(([name, value]): [string, string] => [
      name,
      name === 'x-amz-meta-a' ? 'c' : value,
    ]);
    expect(await outcome({ ...sent, headers: changed })).toBe('403 SignatureDoesNotMatch');
    expect(await outcome({ ...sent, headers: [...sent.headers, ['x-amz-acl', 'private']] })).toBe(
      '403 AccessDenied',
    );
    expect(await outcome({ ...sent, uri: `${sent.uri}&extra=1` })).toBe('403 SignatureDoesNotMatch');
    expect(await outcome({ ...sent, method: 'GET' })).toBe('403 SignatureDoesNotMatch');
  });

  test.each([
    [
      'X-Amz-Algorithm=AWS4-HMAC-SHA256',
      'X-Amz-Algorithm=AWS4-HMAC-SHA1',
      '400 AuthorizationQueryParametersError',
    ],
    [/X-Amz-Credential=[^&]*&/, '', '400 AuthorizationQueryParametersError'],
    [/X-Amz-Credential=[^&]*/, 'X-Amz-Credential=key', '400 AuthorizationQueryParametersError'],
    [/X-Amz-Date=[^&]*/, 'X-Amz-Date=yesterday', '400 AuthorizationQueryParametersError'],
    [/X-Amz-Date=[^&]*/, 'X-Amz-Date=20130525T000000Z', '400 AuthorizationQueryParametersError'],
    [/X-Amz-SignedHeaders=[^&]*/, 'X-Amz-SignedHeaders=', '403 AccessDenied'],
    [/X-Amz-Signature=.*/, 'X-Amz-Signature=0', '403 SignatureDoesNotMatch'],
    [/X-Amz-Signature=.*/, 'X-Amz-Security-Token=t&X-Amz-Signature=0', '400 InvalidToken'],
    [/X-Amz-Algorithm=.*/, 'AWSAccessKeyId=k&Expires=1&Signature=s', '403 AccessDenied'],
  ])('changed: %s to %s', async (pattern, replacement, expected) => {
    const sent = presigned(60);
    expect(await outcome({ ...sent, uri: sent.uri?.replace(pattern, replacement) ?? '' })).toBe(expected);
  });
});

describe('accepts a path with %2F that was signed decoded, as aws4 and aws4fetch do', () => {
  const asSent = (sent: Sent, uri: string): Sent => ({
    ...sent,
    uri: (sent.uri ?? '').replace(/^[^?]*/, uri),
  });

  test.each([
    ['/dir%2Ffile', '/dir/file'],
    ['/dir%2ffile%20a', '/dir/file%20a'],
    ['/%2F%2Fa%2f', '///a/'],
  ])('%s as %s', async (wire, written) => {
    for (const sent of [presigned(60, { uri: written }), signed({ uri: written })]) {
      expect(await outcome(asSent(sent, wire))).toBe('account');
    }
    for (const sent of [presigned(60, { uri: wire }), signed({ uri: wire })]) {
      expect(await outcome(sent)).toBe('account');
      expect(await outcome(asSent(sent, '/dir%252Ffile'))).toBe('403 SignatureDoesNotMatch');
    }
  });

  test('tries a bounded number of spellings', async () => {
    const otherHosts = Array.from({ length: 1000 }, (_, at) => `h${at}.example`);
    const at = async (host: string) =>
      outcome({
        ...presigned(60, { uri: '/a/b', headers: { host } }),
        headers: [['host', HOST]],
        otherHosts,
      });
    expect(await at('h5.example')).toBe('account');
    expect(await at('h999.example')).toBe('403 SignatureDoesNotMatch');
  });
});
