// Configurations that cannot be set: what backup software gets when it looks.
import {
  GetBucketLoggingCommand,
  GetBucketNotificationConfigurationCommand,
  ListBucketInventoryConfigurationsCommand,
} from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { UNSET_BUCKET_CONFIGURATIONS } from '../../src/gateway/s3/buckets/unset-configurations.ts';
import type { ErrorCode } from '../../src/types/errors.ts';
import { type Account, expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
let stranger: Account;
beforeAll(async () => {
  bucket = await api.makeBucket();
  stranger = await api.makeAccount();
});

const ERRORS: [query: string, code: ErrorCode][] = [
  ['website', 'NoSuchWebsiteConfiguration'],
  ['replication', 'ReplicationConfigurationNotFoundError'],
  ['inventory&id=1', 'NoSuchConfiguration'],
];

test.each(ERRORS)('?%s is 404 %s', async (query, code) => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?${query}` });
  expectError(answer, { status: 404, code, BucketName: bucket });
});

test.each([
  ['logging', 'BucketLoggingStatus', ''],
  ['notification', 'NotificationConfiguration', ''],
  ['inventory', 'ListInventoryConfigurationsResult', '<IsTruncated>false</IsTruncated>'],
])('?%s is an empty %s', async (query, root, inner) => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?${query}` });
  expectStatus(answer, 200);
  expect(answer.body.toString()).toBe(
    `<?xml version="1.0" encoding="UTF-8"?>\n<${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</${root}>`,
  );
});

test('a replication that was never set can be deleted', async () => {
  const answer = await api.send({ method: 'DELETE', path: `/${bucket}?replication` });
  expectStatus(answer, 204);
  expect(answer.body).toHaveLength(0);
});

test('the SDK reads them', async () => {
  const place = { Bucket: bucket };
  expect((await api.s3.send(new GetBucketLoggingCommand(place))).LoggingEnabled).toBeUndefined();
  const notification = await api.s3.send(new GetBucketNotificationConfigurationCommand(place));
  expect(notification.TopicConfigurations).toBeUndefined();
  const inventory = await api.s3.send(new ListBucketInventoryConfigurationsCommand(place));
  expect(inventory).toMatchObject({ IsTruncated: false });
});

const rows = UNSET_BUCKET_CONFIGURATIONS.map(({ name, match }) => {
  const { method, query = [] } = match;
  return [name, method, query.map((term) => (term === 'id' ? 'id=1' : term)).join('&')] as const;
});

test.each(rows)(
  '%s: only the owner may read, and only of an existing bucket',
  async (_name, method, query) => {
    const denied = { status: 403, code: 'AccessDenied' } as const;
    const path = `/${bucket}?${query}`;
    expectError(await api.send({ method, path }, stranger), denied);
    expectError(await api.sendAnonymous({ method, path }), denied);
    const headers = { 'x-amz-expected-bucket-owner': stranger.id };
    expectError(await api.send({ method, path, headers }), denied);
    const nowhere = await api.send({ method, path: `/no-such-bucket-here?${query}` });
    expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
  },
);

test('a deleted bucket has no settings, whatever a cache says', async () => {
  const gone = await api.makeBucket();
  const ask = () => api.send({ method: 'GET', path: `/${gone}?logging` });
  expect(xmlOf(await ask()).name).toBe('BucketLoggingStatus');
  expectStatus(await api.send({ method: 'DELETE', path: `/${gone}` }), 204);
  expectError(await ask(), { status: 404, code: 'NoSuchBucket' });
});
