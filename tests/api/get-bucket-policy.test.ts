// GetBucketPolicy and DeleteBucketPolicy, where there is none, and for strangers. What they give and take is in
// put-bucket-policy.test.ts.
import { beforeAll, test } from 'vitest';
import { type Account, expectError, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let stranger: Account;
let bucket: string;
beforeAll(async () => {
  stranger = await api.makeAccount();
  bucket = await api.makeBucket();
});

test('a bucket without a policy', async () => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?policy` });
  expectError(answer, { status: 404, code: 'NoSuchBucketPolicy', BucketName: bucket });
});

test.each(['GET', 'DELETE'])('%s: only the owner may, and only of an existing bucket', async (method) => {
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const path = `/${bucket}?policy`;
  expectError(await api.send({ method, path }, stranger), denied);
  expectError(await api.sendAnonymous({ method, path }), denied);
  const headers = { 'x-amz-expected-bucket-owner': stranger.canonicalId };
  expectError(await api.send({ method, path, headers }), denied);
  const nowhere = await api.send({ method, path: '/no-such-bucket-here?policy' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});
