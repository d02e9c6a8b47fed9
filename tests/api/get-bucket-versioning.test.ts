// GetBucketVersioning of a bucket that never had versions; what was set is in put-bucket-versioning.test.ts.
import { GetBucketVersioningCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

test('an empty document', async () => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?versioning` });
  expectStatus(answer, 200);
  expect(xmlOf(answer)).toMatchObject({ name: 'VersioningConfiguration', children: [] });
  const viaSdk = await api.s3.send(new GetBucketVersioningCommand({ Bucket: bucket }));
  expect(viaSdk.Status).toBeUndefined();
});

test('only the owner may read', async () => {
  const path = `/${bucket}?versioning`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  const nowhere = await api.send({ method: 'GET', path: '/no-such-bucket-here?versioning' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});
