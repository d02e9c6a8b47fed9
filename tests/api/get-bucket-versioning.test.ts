// GetBucketVersioning: of buckets that never had versions; setting it is not there yet.
import { GetBucketVersioningCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { expectError, expectStatus, useApi, xmlOf } from '../support/s3-api.ts';

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

test('it cannot be set yet', async () => {
  const body = Buffer.from('<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>');
  const answer = await api.send({ method: 'PUT', path: `/${bucket}?versioning`, body });
  expectError(answer, { status: 501, code: 'NotImplemented' });
});

test('only the owner asks', async () => {
  const path = `/${bucket}?versioning`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  const nowhere = await api.send({ method: 'GET', path: '/no-such-bucket-here?versioning' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});
