// DeleteBucketLifecycle: the rules are gone, also where there were none.
import { expect, test } from 'vitest';
import { ENABLED, EXPIRES, FILTER, putRules } from '../support/objects/lifecycle-documents.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();

test('with rules and without', async () => {
  const bucket = await api.makeBucket();
  expectStatus(await api.send(putRules(bucket, ENABLED + FILTER + EXPIRES)), 200);
  for (let count = 0; count < 2; count++) {
    const answer = await api.send({ method: 'DELETE', path: `/${bucket}?lifecycle` });
    expectStatus(answer, 204);
    expect(answer.body).toHaveLength(0);
    const found = await api.send({ method: 'GET', path: `/${bucket}?lifecycle` });
    expectError(found, { status: 404, code: 'NoSuchLifecycleConfiguration' });
  }
});

test('only the owner may, and only of an existing bucket', async () => {
  const bucket = await api.makeBucket();
  const stranger = await api.makeAccount();
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const request = { method: 'DELETE', path: `/${bucket}?lifecycle` };
  expectError(await api.send(request, stranger), denied);
  expectError(await api.sendAnonymous(request), denied);
  const nowhere = await api.send({ ...request, path: '/no-such-bucket-here?lifecycle' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});
