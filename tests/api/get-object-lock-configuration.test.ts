// GetObjectLockConfiguration: with and without a lock. What was put or cleared is read in put-object-lock-configuration.test.ts.
import { GetObjectLockConfigurationCommand } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { makeLockBucket } from '../support/servers/locks.ts';
import { expectError, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket } from '../support/servers/versions.ts';

const api = useApi();

test('of a bucket that was created with one, through the SDK', async () => {
  const Bucket = await makeLockBucket(api);
  const { ObjectLockConfiguration } = await api.s3.send(new GetObjectLockConfigurationCommand({ Bucket }));
  expect(ObjectLockConfiguration).toEqual({ ObjectLockEnabled: 'Enabled' });
});

test('versions are no lock', async () => {
  const bucket = await makeVersionedBucket(api);
  const none = {
    status: 404,
    code: 'ObjectLockConfigurationNotFoundError',
    BucketName: bucket,
    Message: 'Object Lock configuration does not exist for this bucket.',
  } as const;
  expectError(await api.send({ method: 'GET', path: `/${bucket}?object-lock` }), none);
});
