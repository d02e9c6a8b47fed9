// Buckets named by hosts under several domains, in every spelling that a host has, signed by both versions. Through a proxy
// that is believed: forwarded-hosts.test.ts.
import { beforeAll, describe, expect, test } from 'vitest';
import { pathOf, type RawAnswer, type RawRequest, sendBare } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { signHeadersV2 } from '../support/servers/sigv2-client.ts';

const api = useApi({ settings: { domain: 's3.test,eu.s3.test,other.example' } });
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

test('a name with dots, created by its host', async () => {
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
