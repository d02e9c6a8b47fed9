// OPTIONS and the CORS headers of every answer (service 4.4): fixed, for everyone, whether the bucket is there or not.
import { beforeAll, expect, test } from 'vitest';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const CORS = {
  'access-control-allow-headers': '*',
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE, MOVE, OPTIONS',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': '*',
  'access-control-max-age': '86400',
};
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'key', 'x');
});

const PATHS = [
  '/',
  '/no-such-bucket-here',
  '/no-such-bucket-here/key?uploads&X-Amz-Signature=0',
  '/no-such-bucket-here/key?AWSAccessKeyId=k&Expires=1&Signature=s',
];

test.each(PATHS)('OPTIONS %s', async (path) => {
  const headers = { origin: 'https://example.com', 'access-control-request-method': 'PUT' };
  const answer = await api.sendAnonymous({ method: 'OPTIONS', path, headers });
  expectStatus(answer, 200);
  expect(answer.headers).toMatchObject(CORS);
  expect(answer.body).toHaveLength(0);
});

test.each(PATHS)('s3-behaviour 13: OPTIONS %s without an Origin is 400', async (path) => {
  const answer = await api.sendAnonymous({ method: 'OPTIONS', path });
  expectError(answer, { status: 400, code: 'BadRequest' });
  expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
});

test('every answer to a request with an Origin has the headers, an error too', async () => {
  const headers = { origin: 'https://example.com' };
  const found = await api.send({ method: 'GET', path: `/${bucket}/key`, headers });
  expectStatus(found, 200);
  expect(found.headers).toMatchObject(CORS);
  const denied = await api.sendAnonymous({ method: 'GET', path: `/${bucket}/key`, headers });
  expectStatus(denied, 403);
  expect(denied.headers).toMatchObject(CORS);
  const plain = await api.send({ method: 'GET', path: `/${bucket}/key` });
  expect(plain.headers).not.toHaveProperty('access-control-allow-origin');
});
