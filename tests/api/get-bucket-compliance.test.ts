// GetBucketCompliance: the document, to the byte.
import { expect, test } from 'vitest';
import { complianceOfBucket, enableCompliance } from '../support/servers/compliance.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const get = (bucket: string) => api.send({ method: 'GET', path: `/${bucket}?compliance` });
const document = (inner: string) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<BucketComplianceConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</BucketComplianceConfiguration>`;

test('a bucket that never had any reads as disabled', async () => {
  const answer = await get(await api.makeBucket());
  expectStatus(answer, 200);
  expect(answer.headers['content-type']).toBe('application/xml');
  expect(answer.body.toString()).toBe(document('<Status>disabled</Status>'));
});

test('all settings, in the order of the contract', async () => {
  const bucket = await api.makeBucket();
  const LockTime = '2099-01-02T03:04:05Z';
  await enableCompliance(api, bucket, { DeleteAfterRetention: true, RetentionDays: 3, LockTime });
  expect((await get(bucket)).body.toString()).toBe(
    document(
      '<Status>enabled</Status><LockTime>2099-01-02T03:04:05.000Z</LockTime><IsLocked>false</IsLocked><RetentionDays>3</RetentionDays><ConditionalHold>false</ConditionalHold><DeleteAfterRetention>true</DeleteAfterRetention>',
    ),
  );
});

test('each bucket has its own', async () => {
  const [one, other] = [await api.makeBucket(), await api.makeBucket()];
  await enableCompliance(api, one);
  expect((await complianceOfBucket(api, one)).Status).toBe('enabled');
  expect(await complianceOfBucket(api, other)).toEqual({ Status: 'disabled' });
});

test('a bucket that is not there has none', async () => {
  expectError(await get('no-such-bucket-here'), { status: 404, code: 'NoSuchBucket' });
});
