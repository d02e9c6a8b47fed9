// Buckets named by hosts under several domains, in every spelling that a host has, signed by both versions, straight and
// through a proxy that is believed.
import { beforeAll, describe, expect } from 'vitest';
import { ownServerTest as test } from '../support/own-server-test.ts';
import { pathOf, type RawAnswer, type RawRequest, sendBare, signedHeaders } from '../support/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/s3-api.ts';
import { signHeadersV2 } from '../support/sigv2-client.ts';

const api = useApi({
  settings: {
    domain: 's3.test,eu.s3.test,other.example',
    publicNames: 'https://files.example.net',
    trustedProxies: '127.0.0.1',
  },
});
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'key', 'found');
});

type Wanted = Pick<RawRequest, 'method' | 'path'> & { headers: Record<string, string> };

const signedV4 = (wanted: Wanted) => api.send(wanted);
const signedV2 = (wanted: Wanted, resource: string): Promise<RawAnswer> => {
  const headers = signHeadersV2({ ...wanted, resource, credentials: api.server, nowMs: Date.now() });
  return sendBare(api.server, { ...wanted, headers });
};
const bodyOf = (answer: RawAnswer) => [answer.status, answer.body.toString()];

describe.each([
  ['BUCKET.s3.test', 'a domain'],
  ['BUCKET.eu.s3.test', 'the longer one of two'],
  ['BUCKET.other.example', 'another domain'],
  ['BUCKET.other.example:8443', 'with a port'],
  ['BUCKET.s3.test.', 'with the dot of a whole name'],
  ['BUCKET.s3.test.:80', 'with both'],
  ['BUCKET.S3.Test', 'a domain in capitals'],
])('%s: %s', (pattern) => {
  const host = () => pattern.replace('BUCKET', bucket);

  test('the bucket is in the host, the whole path is the key', async () => {
    const wanted = { method: 'GET', path: '/key', headers: { host: host() } };
    expect(bodyOf(await signedV4(wanted))).toEqual([200, 'found']);
    expect(bodyOf(await signedV2(wanted, `/${bucket}/key`))).toEqual([200, 'found']);
    expect(
      bodyOf(await signedV4({ ...wanted, headers: { host: host().replace(bucket, bucket.toUpperCase()) } })),
    ).toEqual([200, 'found']);
    const wrong = { status: 403, code: 'SignatureDoesNotMatch' } as const;
    expectError(await signedV2(wanted, '/key'), wrong);
    expectError(await signedV2(wanted, '/another/key'), wrong);
  });

  test('the bucket itself', async () => {
    const wanted = { method: 'GET', path: '/?location', headers: { host: host() } };
    expectStatus(await signedV4(wanted), 200);
    expectStatus(await signedV2(wanted, `/${bucket}/?location`), 200);
  });
});

test.each([
  's3.test',
  'S3.TEST.',
  'eu.s3.test:9000',
  '127.0.0.1',
  '127.0.0.1:9000',
  '[::1]:9000',
  'xs3.test',
  'localhost',
])('path style under %s', async (host) => {
  const wanted = { method: 'GET', path: pathOf(bucket, 'key'), headers: { host } };
  expect(bodyOf(await signedV4(wanted))).toEqual([200, 'found']);
  expect(bodyOf(await signedV2(wanted, `/${bucket}/key`))).toEqual([200, 'found']);
  const service = await signedV2({ method: 'GET', path: '/', headers: { host } }, '/');
  expect(service.body.toString()).toContain(`<Name>${bucket}</Name>`);
});

test('a name with dots, made by its host', async () => {
  const headers = { host: 'dots.in.a.name.s3.test' };
  expectStatus(await signedV4({ method: 'PUT', path: '/', headers }), 200);
  expectStatus(await api.send({ method: 'HEAD', path: '/dots.in.a.name' }), 200);
  expectStatus(await signedV2({ method: 'DELETE', path: '/', headers }, '/dots.in.a.name/'), 204);
});

test.each([
  '.s3.test',
  '.eu.s3.test:9000',
  '..s3.test',
  'two..dots.s3.test',
  '1.2.3.4.s3.test',
  'a_b.s3.test',
])('%s names no bucket', async (host) => {
  for (const path of ['/', '/key', '/metrics', '/holdfast-admin/v1/accounts']) {
    const answer = await signedV4({ method: 'GET', path, headers: { host } });
    expectError(answer, { status: 400, code: 'InvalidBucketName' });
  }
});

describe('through a proxy', () => {
  test('what the client addressed is in X-Forwarded-Host, and signed', async () => {
    const host = `${bucket}.other.example`;
    const forwarded = { 'x-forwarded-host': host, 'x-forwarded-proto': 'https' };
    const path = '/key';
    const asClient = signedHeaders(api.server, { method: 'GET', path, headers: { host } });
    const through = await sendBare(api.server, {
      method: 'GET',
      path,
      headers: { ...asClient, host: 'inner:9000', ...forwarded },
    });
    expect(bodyOf(through)).toEqual([200, 'found']);
    const headers = { host: 'inner:9000', ...forwarded };
    expect(bodyOf(await signedV2({ method: 'GET', path, headers }, `/${bucket}/key`))).toEqual([
      200,
      'found',
    ]);
  });

  test('a signature for one bucket opens no other that X-Forwarded-Host names', async () => {
    const other = await api.makeBucket();
    await api.put(other, 'key', 'secret');
    await api.put(other, `${bucket}/key`, 'secret');
    const take = async (host: string, path: string, forwardedHost: string) => {
      const headers = signedHeaders(api.server, { method: 'GET', path, headers: { host } });
      const forwarded = { ...headers, 'x-forwarded-host': forwardedHost };
      return sendBare(api.server, { method: 'GET', path, headers: forwarded });
    };
    const wrong = { status: 403, code: 'SignatureDoesNotMatch' } as const;
    expectError(await take(`${bucket}.s3.test`, '/key', `${other}.s3.test`), wrong);
    expectError(await take('s3.test', pathOf(bucket, 'key'), `${other}.s3.test`), wrong);
    expectError(await take('inner:9000', pathOf(bucket, 'key'), `${other}.s3.test`), wrong);
    expectError(await take(`${bucket}.s3.test`, pathOf(other, 'key'), 's3.test'), wrong);
    // The same bucket under another name of the service is the same.
    expect(bodyOf(await take(`${bucket}.s3.test`, '/key', `${bucket}.other.example`))).toEqual([
      200,
      'found',
    ]);
  });

  test('a public name is signed, though the proxy tells nothing of it', async () => {
    const path = pathOf(bucket, 'key');
    const asClient = signedHeaders(api.server, {
      method: 'GET',
      path,
      headers: { host: 'files.example.net' },
    });
    const through = await sendBare(api.server, {
      method: 'GET',
      path,
      headers: { ...asClient, host: 'inner:9000' },
    });
    expect(bodyOf(through)).toEqual([200, 'found']);
  });
});
