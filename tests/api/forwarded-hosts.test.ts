// What the client has addressed, told by a proxy that is believed: buckets named by hosts, and public names.
import { beforeAll, expect } from 'vitest';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import {
  pathOf,
  type RawAnswer,
  type RawRequest,
  sendBare,
  signedHeaders,
} from '../support/servers/raw-s3.ts';
import { expectError, useApi } from '../support/servers/s3-api.ts';
import { signHeadersV2 } from '../support/servers/sigv2-client.ts';

const api = useApi({
  settings: {
    domain: 's3.test,other.example',
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

const signedV2 = (wanted: Wanted, resource: string): Promise<RawAnswer> => {
  const headers = signHeadersV2({ ...wanted, resource, credentials: api.server, nowMs: Date.now() });
  return sendBare(api.server, { ...wanted, headers });
};
const bodyOf = (answer: RawAnswer) => [answer.status, answer.body.toString()];

test('the addressed host is in X-Forwarded-Host, and signed', async () => {
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
  expect(bodyOf(await signedV2({ method: 'GET', path, headers }, `/${bucket}/key`))).toEqual([200, 'found']);
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
  expect(bodyOf(await take(`${bucket}.s3.test`, '/key', `${bucket}.other.example`))).toEqual([200, 'found']);
});

test('a public name is signed, though the proxy does not report it', async () => {
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
