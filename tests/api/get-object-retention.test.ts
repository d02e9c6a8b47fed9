// GetObjectRetention: what a version got when it was made. What was put later is read in put-object-retention.test.ts.
import { GetObjectRetentionCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { getRetention, makeLockBucket, putVersion } from '../support/servers/locks.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const DAY_MS = 24 * 3600 * 1000;
let bucket: string;
beforeAll(async () => {
  bucket = await makeLockBucket(api);
});

test('of a version without one there is none', async () => {
  await putVersion(api, { bucket, key: 'none' });
  expectError(await getRetention(api, { bucket, key: 'none' }), {
    status: 404,
    code: 'NoSuchObjectLockConfiguration',
    Message: 'The specified object does not have a ObjectLock configuration',
    Key: 'none',
  });
});

test('the default of the bucket, from the moment of the PUT, and not of what was there before', async () => {
  const before = await putVersion(api, { bucket, key: 'k' });
  const rule = '<Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>3</Days></DefaultRetention></Rule>';
  const body = `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>${rule}</ObjectLockConfiguration>`;
  const path = `/${bucket}?object-lock`;
  expectStatus(await api.send({ method: 'PUT', path, body: Buffer.from(body) }), 200);
  const earliestMs = Date.now();
  await putVersion(api, { bucket, key: 'k' });
  const { Retention } = await api.s3.send(new GetObjectRetentionCommand({ Bucket: bucket, Key: 'k' }));
  expect(Retention?.Mode).toBe('COMPLIANCE');
  const untilMs = Retention?.RetainUntilDate?.getTime() ?? 0;
  // The shard's time may be a little behind.
  expect(untilMs).toBeGreaterThan(earliestMs + 3 * DAY_MS - 60_000);
  expect(untilMs).toBeLessThanOrEqual(Date.now() + 3 * DAY_MS);
  expectError(await getRetention(api, { bucket, key: 'k', versionId: before }), {
    status: 404,
    code: 'NoSuchObjectLockConfiguration',
  });
});
