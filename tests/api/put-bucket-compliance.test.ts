// PutBucketCompliance: what is kept of a document, what locks it, and all that is refused.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  bucketComplianceXml,
  complianceOfBucket,
  enableCompliance,
  sendBucketCompliance,
} from '../support/servers/compliance.ts';
import { makeLockBucket } from '../support/servers/locks.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { setVersioning } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

const DAY = 24 * 3600 * 1000;
const ENABLED = { Status: 'enabled', RetentionDays: 1 };
const put = (its: Parameters<typeof sendBucketCompliance>[2]) => sendBucketCompliance(api, bucket, its);
const send = (text: string) =>
  api.send({ method: 'PUT', path: `/${bucket}?compliance`, body: Buffer.from(text) });
const shown = () => complianceOfBucket(api, bucket);
const locked = (setting: string) => ({
  status: 403,
  code: 'AccessDenied' as const,
  Message: `Access Denied because the compliance settings of the bucket are locked: ${setting}.`,
  BucketName: bucket,
});

describe('without a lock', () => {
  test('settings are kept as they are put, the rest by its defaults', async () => {
    const answer = await put(ENABLED);
    expectStatus(answer, 200);
    expect(answer.body).toHaveLength(0);
    const plain = { ConditionalHold: 'false', DeleteAfterRetention: 'false' };
    expect(await shown()).toEqual({
      Status: 'enabled',
      LockTime: 'off',
      IsLocked: 'false',
      RetentionDays: '1',
      ...plain,
    });
    const all = { RetentionDays: 36_500, ConditionalHold: true, DeleteAfterRetention: true };
    expectStatus(await put({ ...ENABLED, ...all, LockTime: 'off' }), 200);
    const texts = { RetentionDays: '36500', ConditionalHold: 'true', DeleteAfterRetention: 'true' };
    expect(await shown()).toMatchObject(texts);
    // What is absent of another document is not carried over.
    expectStatus(await put({ ...ENABLED, RetentionDays: 0 }), 200);
    expect(await shown()).toMatchObject({ RetentionDays: '0', ...plain });
  });

  test('a document that was read can be put again, with its namespace and IsLocked', async () => {
    await enableCompliance(api, bucket, { LockTime: '2099-01-02T03:04:05Z' });
    const before = await api.send({ method: 'GET', path: `/${bucket}?compliance` });
    expectStatus(await send(before.body.toString()), 200);
    expect((await api.send({ method: 'GET', path: `/${bucket}?compliance` })).body).toEqual(before.body);
  });

  test('disabled needs nothing but its Status, and takes all away', async () => {
    expectStatus(await put({ Status: 'disabled' }), 200);
    expect(await shown()).toEqual({ Status: 'disabled' });
    await enableCompliance(api, bucket);
    await api.put(bucket, 'k', 'bytes');
    expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}/k` }), 403);
    expectStatus(await put({ Status: 'disabled', RetentionDays: 5, LockTime: 'now' }), 200);
    expect(await shown()).toEqual({ Status: 'disabled' });
    expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}/k` }), 204);
  });

  test('objects that are there already are protected at once', async () => {
    await api.put(bucket, 'before', 'bytes');
    await enableCompliance(api, bucket);
    expectError(await api.send({ method: 'DELETE', path: `/${bucket}/before` }), {
      status: 403,
      code: 'AccessDenied',
      Message:
        'Access Denied because the object is protected by compliance, and its retention has not ended.',
    });
  });

  test('a LockTime to come may still be changed, and everything else', async () => {
    const soon = new Date(Date.now() + DAY).toISOString();
    await enableCompliance(api, bucket, { RetentionDays: 5, LockTime: soon });
    expect(await shown()).toMatchObject({ LockTime: soon, IsLocked: 'false' });
    await enableCompliance(api, bucket, { RetentionDays: 4, LockTime: '2099-05-06T07:08:09.12+02:00' });
    expect(await shown()).toMatchObject({ LockTime: '2099-05-06T05:08:09.120Z', RetentionDays: '4' });
    // Which is not named is off.
    await enableCompliance(api, bucket);
    expect(await shown()).toMatchObject({ LockTime: 'off' });
    expectStatus(await put({ Status: 'disabled' }), 200);
  });
});

describe('once locked', () => {
  test.each(['now', '2020-01-02T03:04:05Z'])('by %s, nothing is reduced', async (LockTime) => {
    const beganMs = Math.floor(Date.now() / 1000) * 1000;
    await enableCompliance(api, bucket, { RetentionDays: 2, LockTime });
    const before = await shown();
    expect(before).toMatchObject({ IsLocked: 'true', RetentionDays: '2' });
    if (LockTime === 'now') expect(Date.parse(String(before.LockTime))).toBeGreaterThanOrEqual(beganMs);
    const LockedAt = { LockTime: String(before.LockTime) };
    expectError(await put({ Status: 'disabled' }), locked('Status cannot be changed to disabled'));
    expectError(await put({ ...ENABLED, ...LockedAt }), locked('RetentionDays cannot be reduced'));
    const same = { ...ENABLED, RetentionDays: 2 };
    expectError(await put({ ...same, LockTime: 'off' }), locked('LockTime cannot be changed'));
    const later = new Date(Date.now() + DAY).toISOString();
    expectError(await put({ ...same, LockTime: later }), locked('LockTime cannot be changed'));
    expect(await shown()).toEqual(before);
  });

  test('days may be added, and the hold and the deletion changed; the lock stays where it is not named', async () => {
    await enableCompliance(api, bucket, { LockTime: 'now', ConditionalHold: true });
    const { LockTime } = await shown();
    const changed = { ...ENABLED, RetentionDays: 2, ConditionalHold: false, DeleteAfterRetention: true };
    for (const lock of [{}, { LockTime: String(LockTime) }, { LockTime: 'now' }])
      expectStatus(await put({ ...changed, ...lock }), 200);
    expect(await shown()).toEqual({
      Status: 'enabled',
      LockTime,
      IsLocked: 'true',
      RetentionDays: '2',
      ConditionalHold: 'false',
      DeleteAfterRetention: 'true',
    });
  });

  test('a rename of the bucket keeps it so', async () => {
    await enableCompliance(api, bucket, { LockTime: 'now' });
    const before = await shown();
    const to = `${bucket}-new`;
    const headers = { destination: to };
    expectStatus(await api.send({ method: 'MOVE', path: `/${bucket}`, headers }), 200);
    expect(await complianceOfBucket(api, to)).toEqual(before);
    expectStatus(await sendBucketCompliance(api, to, { Status: 'disabled' }), 403);
  });
});

test.each<[string, string, string]>([
  ['no body', '', 'MissingRequestBodyError'],
  ['no XML', 'enabled', 'MalformedXML'],
  ['another root', '<Compliance><Status>disabled</Status></Compliance>', 'MalformedXML'],
  ['no Status', bucketComplianceXml({ RetentionDays: 1 }), 'MalformedXML'],
  ['no RetentionDays', bucketComplianceXml({ Status: 'enabled' }), 'MalformedXML'],
  ['an unknown Status', bucketComplianceXml({ Status: 'Enabled', RetentionDays: 1 }), 'MalformedXML'],
  ['RetentionDays in words', bucketComplianceXml({ ...ENABLED, RetentionDays: 'one' }), 'MalformedXML'],
  ['half a day', bucketComplianceXml({ ...ENABLED, RetentionDays: 0.5 }), 'MalformedXML'],
  ['an empty RetentionDays', bucketComplianceXml({ ...ENABLED, RetentionDays: '' }), 'MalformedXML'],
  ['a hold of yes', bucketComplianceXml({ ...ENABLED, ConditionalHold: 'yes' }), 'MalformedXML'],
  ['a deletion of 1', bucketComplianceXml({ ...ENABLED, DeleteAfterRetention: 1 }), 'MalformedXML'],
  [
    'RetentionDays twice',
    bucketComplianceXml(ENABLED).replace('<Status>', '<RetentionDays>2</RetentionDays><Status>'),
    'MalformedXML',
  ],
  ['negative RetentionDays', bucketComplianceXml({ ...ENABLED, RetentionDays: -1 }), 'InvalidArgument'],
  ['too many days', bucketComplianceXml({ ...ENABLED, RetentionDays: 36_501 }), 'InvalidArgument'],
  ['a LockTime in words', bucketComplianceXml({ ...ENABLED, LockTime: 'tomorrow' }), 'InvalidArgument'],
  ['an empty LockTime', bucketComplianceXml({ ...ENABLED, LockTime: '' }), 'InvalidArgument'],
  [
    'a LockTime without a time',
    bucketComplianceXml({ ...ENABLED, LockTime: '2030-01-01' }),
    'InvalidArgument',
  ],
  [
    'a day that is none',
    bucketComplianceXml({ ...ENABLED, LockTime: '2030-02-30T00:00:00Z' }),
    'InvalidArgument',
  ],
  [
    'a LockTime of another age',
    bucketComplianceXml({ ...ENABLED, LockTime: '9999-01-01T00:00:00Z' }),
    'InvalidArgument',
  ],
  [
    'a LockTime before 1970',
    bucketComplianceXml({ ...ENABLED, LockTime: '1969-12-31T23:59:59Z' }),
    'InvalidArgument',
  ],
])('%s is refused', async (_case, text, code) => {
  expectError(await send(text), { status: 400, code: code as 'MalformedXML' });
  expect(await shown()).toEqual({ Status: 'disabled' });
});

test('compliance and object lock exclude each other', async () => {
  const lockBucket = await makeLockBucket(api);
  expectError(await sendBucketCompliance(api, lockBucket, ENABLED), {
    status: 409,
    code: 'InvalidBucketState',
    BucketName: lockBucket,
  });
  expect(await complianceOfBucket(api, lockBucket)).toEqual({ Status: 'disabled' });
  await setVersioning(api, bucket, 'Enabled');
  await enableCompliance(api, bucket);
  const lock =
    '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>';
  const putLock = () => api.send({ method: 'PUT', path: `/${bucket}?object-lock`, body: Buffer.from(lock) });
  expectError(await putLock(), { status: 409, code: 'InvalidBucketState', BucketName: bucket });
  expectStatus(await put({ Status: 'disabled' }), 200);
  expectStatus(await putLock(), 200);
});

test('a bucket that is not there has none', async () => {
  const answer = await sendBucketCompliance(api, 'no-such-bucket-here', ENABLED);
  expectError(answer, { status: 404, code: 'NoSuchBucket' });
});
