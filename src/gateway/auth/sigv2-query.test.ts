import { describe, expect, test } from 'vitest';
import {
  AWS,
  DAY_MS,
  HOST,
  openSigningWorld,
  type Sent,
} from '../../../tests/support/objects/signing-world.ts';
import { presignV2, type SigV2Options } from '../../../tests/support/servers/sigv2-client.ts';
import type { AppError } from '../../types/errors.ts';

const { outcome, identify } = await openSigningWorld();
const NOW = DAY_MS / 1000;

/** A GET of an object that is good until `expires`. */
function presigned(
  expires: number | string,
  change: Partial<SigV2Options & Omit<Sent, 'headers'>> = {},
): Sent {
  const { method = 'GET', uri = '/k', resource = '/examplebucket/k', headers = {}, ...rest } = change;
  const query = presignV2({ method, resource, headers, credentials: AWS, expires });
  return {
    ...rest,
    method,
    uri: `${uri}${uri.includes('?') ? '&' : '?'}${query}`,
    headers: Object.entries({ host: HOST, ...headers }),
  };
}

test("AWS's example", async () => {
  const world = await openSigningWorld(1_175_139_000_000);
  const uri = `/photos/puppy.jpg?AWSAccessKeyId=${AWS.accessKey}&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620`;
  const sent: Sent = { uri, hostBucket: 'johnsmith', headers: [['Host', 'johnsmith.s3.amazonaws.com']] };
  expect(await world.outcome(sent)).toBe('account');
  world.clock.advance(621_000);
  expect(await world.outcome(sent)).toBe('403 AccessDenied');
});

describe('its expiry', () => {
  test.each([
    [NOW, 'account'],
    [NOW + 1, 'account'],
    [`+${NOW}`, 'account'],
    [`000${NOW}`, 'account'],
    [2 ** 31 - 1, 'account'],
    [NOW - 1, '403 AccessDenied'],
    [0, '403 AccessDenied'],
    [-1, '403 AccessDenied'],
    ['-9999999999999999999', '403 AccessDenied'],
    [2 ** 31, '403 AccessDenied'],
    ['9'.repeat(400), '403 AccessDenied'],
    ['', '403 AccessDenied'],
    ['soon', '403 AccessDenied'],
    ['1e9', '403 AccessDenied'],
    ['Fri, 24 May 2013 00:00:00 GMT', '403 AccessDenied'],
  ])('s3-behaviour 12: Expires of %j', async (expires, expected) => {
    expect(await outcome(presigned(expires))).toBe(expected);
  });

  test('an expired one and one without a time are refused with the reason', async () => {
    const past = await identify(presigned(NOW - 10)).catch((caught: AppError) => caught);
    expect(past).toMatchObject({
      message: 'Request has expired',
      fields: { Expires: '2013-05-23T23:59:50Z', ServerTime: '2013-05-24T00:00:00Z' },
    });
    const none = await identify(presigned('soon')).catch((caught: AppError) => caught);
    expect(none).toMatchObject({ message: 'Invalid date (should be seconds since epoch): soon' });
  });
});

describe('what is signed', () => {
  test('signs headers and sub-resources, in the query as well', async () => {
    const headers = { 'content-type': 'text/plain', 'x-amz-meta-a': 'b' };
    expect(await outcome(presigned(NOW, { method: 'PUT', headers }))).toBe('account');
    // SDKs write them into the query, and the user of the URL sends none.
    const inQuery = presigned(NOW, { headers: { 'x-amz-acl': 'private' }, uri: '/k?X-Amz-Acl=private' });
    expect(await outcome({ ...inQuery, headers: [['host', HOST]] })).toBe('account');
    expect(
      await outcome({
        ...inQuery,
        headers: [
          ['host', HOST],
          ['x-amz-acl', 'public-read'],
        ],
      }),
    ).toBe('403 SignatureDoesNotMatch');
    const part = { uri: '/k?uploadId=u&partNumber=2', resource: '/examplebucket/k?partNumber=2&uploadId=u' };
    expect(await outcome(presigned(NOW, { method: 'PUT', ...part }))).toBe('account');
  });

  test('no meaningful parameter can be added to it', async () => {
    const { uri = '', ...sent } = presigned(NOW);
    for (const more of [
      'acl',
      'versionId=null',
      'x-amz-acl=public-read',
      'response-content-type=a',
      'partNumber=1',
    ]) {
      expect(await outcome({ ...sent, uri: `${uri}&${more}` })).toBe('403 SignatureDoesNotMatch');
      expect(await outcome({ ...sent, uri: uri.replace('?', `?${more}&`) })).toBe(
        '403 SignatureDoesNotMatch',
      );
    }
    expect(await outcome({ ...sent, uri: `${uri}&prefix=x` })).toBe('account');
  });
});

describe('a value that contains a parameter is refused', () => {
  const of = (uri: string, resource: string) =>
    outcome(presigned(NOW, { uri, resource: `/examplebucket${resource}` }));

  test.each([
    ['/k?response-content-type=x%26versionId%3DV', '/k?response-content-type=x&versionId=V'],
    ['/k?response-expires=x%26uploadId%3D', '/k?response-expires=x&uploadId='],
    ['/k?response-expires=x%26tagging', '/k?response-expires=x&tagging'],
    ['/k?response-expires=x%26tagging%26a', '/k?response-expires=x&tagging&a'],
    [
      '/k?partNumber=1%26response-expires%3Dy%26versionId%3DV',
      '/k?partNumber=1&response-expires=y&versionId=V',
    ],
  ])('%s', async (uri, resource) => {
    expect(await of(uri, resource)).toBe('400 InvalidArgument');
  });

  test.each([
    ['/k?response-content-type=x&versionId=V', '/k?response-content-type=x&versionId=V'],
    [
      '/k?response-content-disposition=attachment%3B%20filename%3D%22a%3Db%22',
      '/k?response-content-disposition=attachment; filename="a=b"',
    ],
    ['/k?response-content-type=a%26b%3Dc%26d', '/k?response-content-type=a&b=c&d'],
    ['/k?response-content-type=a%26acl%3Dc', '/k?response-content-type=a&acl=c'],
    ['/k?response-content-type=a%26versionId', '/k?response-content-type=a&versionId'],
  ])('and no other is: %s', async (uri, resource) => {
    expect(await of(uri, resource)).toBe('account');
  });
});

test.each([
  [/AWSAccessKeyId=[^&]*&/, '', '403 AccessDenied'],
  [/Expires=[^&]*&/, '', '403 AccessDenied'],
  [/&Signature=.*/, '', '403 AccessDenied'],
  [/AWSAccessKeyId=[^&]*/, 'AWSAccessKeyId=nobody', '403 InvalidAccessKeyId'],
  [/&Signature=.*/, '&Signature=', '403 SignatureDoesNotMatch'],
  [/&Signature=.*/, '&Signature=%FF', '400 InvalidURI'],
  [/&Signature/, '&X-Amz-Algorithm=AWS4-HMAC-SHA256&Signature', '400 InvalidArgument'],
  [/&Signature/, '&x-amz-security-token=t&Signature', '400 InvalidToken'],
])('changed: %s to %s', async (pattern, replacement, expected) => {
  const { uri = '', ...sent } = presigned(NOW);
  expect(await outcome({ ...sent, uri: uri.replace(pattern, replacement) })).toBe(expected);
});

test('is refused where version 2 is disabled', async () => {
  expect(await outcome({ ...presigned(NOW), takesSigV2: false })).toBe('400 InvalidRequest');
});
