// GetBucketLocation.
import { GetBucketLocationCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

test('it is us-east', async () => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?location` });
  expectStatus(answer, 200);
  expect(answer.body.toString()).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">us-east</LocationConstraint>',
  );
  const viaSdk = await api.s3.send(new GetBucketLocationCommand({ Bucket: bucket }));
  expect(viaSdk.LocationConstraint).toBe('us-east');
});

test('only the owner may read, and only of an existing bucket', async () => {
  const path = `/${bucket}?location`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  const nowhere = await api.send({ method: 'GET', path: '/no-such-bucket-here?location' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});
