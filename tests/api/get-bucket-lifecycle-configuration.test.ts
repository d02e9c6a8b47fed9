// GetBucketLifecycleConfiguration, where there are no rules, and for strangers. What it gives back is in
// put-bucket-lifecycle-configuration.test.ts.
import { expect, test } from 'vitest';
import { ENABLED, EXPIRES, FILTER, putRules } from '../support/objects/lifecycle-documents.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();

test('a bucket without rules', async () => {
  const bucket = await api.makeBucket();
  const request = { method: 'GET', path: `/${bucket}?lifecycle` };
  const none = { status: 404, code: 'NoSuchLifecycleConfiguration', BucketName: bucket } as const;
  expectError(await api.send(request), none);
  expectStatus(await api.send(putRules(bucket, ENABLED + FILTER + EXPIRES)), 200);
  const found = await api.send(request);
  expectStatus(found, 200);
  expect(found.headers['content-type']).toBe('application/xml');
});

test('only the owner may, and only of an existing bucket', async () => {
  const bucket = await api.makeBucket();
  const stranger = await api.makeAccount();
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const request = { method: 'GET', path: `/${bucket}?lifecycle` };
  expectError(await api.send(request, stranger), denied);
  expectError(await api.sendAnonymous(request), denied);
  const nowhere = await api.send({ ...request, path: '/no-such-bucket-here?lifecycle' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});

test('the rules follow the bucket to another name', async () => {
  const bucket = await api.makeBucket();
  expectStatus(await api.send(putRules(bucket, `<ID>moves</ID>${ENABLED}${FILTER}${EXPIRES}`)), 200);
  const headers = { destination: `/${bucket}-moved` };
  expectStatus(await api.send({ method: 'MOVE', path: `/${bucket}`, headers }), 200);
  const found = await api.send({ method: 'GET', path: `/${bucket}-moved?lifecycle` });
  expect(found.body.toString()).toContain('<ID>moves</ID>');
});
