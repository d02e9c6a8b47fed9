// PutObjectCompliance: what may be changed of one object, of which version, and all that is refused.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  complianceOfObject,
  compliancePath,
  enableCompliance,
  objectComplianceXml,
  sendBucketCompliance,
  sendObjectCompliance,
} from '../support/servers/compliance.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
const DAY = 24 * 3600 * 1000;
const inDays = (days: number) => new Date(Date.now() + days * DAY).toISOString();
let bucket: string;
let address: { bucket: string; key: string };
beforeEach(async () => {
  bucket = await api.makeBucket();
  await enableCompliance(api, bucket);
  await api.put(bucket, 'k', 'bytes');
  address = { bucket, key: 'k' };
});

const put = (its: Parameters<typeof sendObjectCompliance>[2]) => sendObjectCompliance(api, address, its);
const shown = () => complianceOfObject(api, address);

describe('RetentionTime', () => {
  test('is extended, and never put before the one in effect', async () => {
    const RetentionTime = inDays(3);
    const answer = await put({ RetentionTime });
    expectStatus(answer, 200);
    expect(answer.body).toHaveLength(0);
    expect(answer.headers).not.toHaveProperty('x-amz-version-id');
    expect(await shown()).toMatchObject({ RetentionTime });
    expectStatus(await put({ RetentionTime }), 200);
    for (const earlier of [inDays(2), inDays(0.5), '1999-01-01T00:00:00Z']) {
      const refused = await put({ RetentionTime: earlier });
      expectError(refused, { status: 403, code: 'AccessDenied' });
      expect(refused.body.toString()).toContain('compliance');
    }
    expect(await shown()).toMatchObject({ RetentionTime });
  });

  test('before the days of the bucket is refused, and what it says besides is not done', async () => {
    expectStatus(await put({ RetentionTime: inDays(0.9), LegalHold: true }), 403);
    expect(await shown()).toMatchObject({ LegalHold: 'false' });
  });

  test('more days of the bucket count from the creation', async () => {
    const before = Date.parse((await shown()).RetentionTime ?? '');
    await enableCompliance(api, bucket, { RetentionDays: 10 });
    expect(Date.parse((await shown()).RetentionTime ?? '') - before).toBe(9 * DAY);
  });
});

test('a legal hold comes and goes', async () => {
  await enableCompliance(api, bucket, { RetentionDays: 0 });
  expectStatus(await put({ LegalHold: true }), 200);
  expect(await shown()).toMatchObject({ LegalHold: 'true' });
  const remove = () => api.send({ method: 'DELETE', path: `/${bucket}/k` });
  expectError(await remove(), {
    status: 403,
    code: 'AccessDenied',
    Message: 'Access Denied because the object is protected by compliance, and is under a legal hold.',
  });
  expectStatus(await put({ LegalHold: false }), 200);
  expectStatus(await remove(), 204);
});

test('a conditional hold is released, for good', async () => {
  await enableCompliance(api, bucket, { RetentionDays: 0, ConditionalHold: true });
  await api.put(bucket, 'k', 'held');
  expect(await shown()).toMatchObject({ ConditionalHold: 'true' });
  expectError(await put({ ConditionalHold: true }), {
    status: 400,
    code: 'InvalidArgument',
    ArgumentName: 'ConditionalHold',
  });
  expectError(await api.send({ method: 'DELETE', path: `/${bucket}/k` }), {
    status: 403,
    code: 'AccessDenied',
    Message:
      'Access Denied because the object is protected by compliance, and its conditional hold has not been released.',
  });
  expectStatus(await put({ ConditionalHold: false }), 200);
  expectStatus(await put({ ConditionalHold: false }), 200);
  expect(await shown()).toMatchObject({ ConditionalHold: 'false' });
  expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}/k` }), 204);
});

test('of a version by its id, else of the current one', async () => {
  const versioned = await makeVersionedBucket(api);
  await enableCompliance(api, versioned);
  const make = async (body: string) =>
    versionOf(await api.send({ method: 'PUT', path: `/${versioned}/k`, body: Buffer.from(body) }));
  const [first, second] = [await make('one'), await make('two')];
  const older = await sendObjectCompliance(
    api,
    { bucket: versioned, key: 'k', versionId: first },
    { LegalHold: true },
  );
  expect([older.status, versionOf(older)]).toEqual([200, first]);
  const of = async (versionId?: string) =>
    (await complianceOfObject(api, { bucket: versioned, key: 'k', ...(versionId && { versionId }) }))
      .LegalHold;
  expect([await of(first), await of(second), await of()]).toEqual(['true', 'false', 'false']);
  const current = await sendObjectCompliance(api, { bucket: versioned, key: 'k' }, { LegalHold: true });
  expect([current.status, versionOf(current)]).toEqual([200, second]);
});

test('of missing keys and versions, and of markers', async () => {
  expectError(await sendObjectCompliance(api, { bucket, key: 'none' }, { LegalHold: true }), {
    status: 404,
    code: 'NoSuchKey',
    Key: 'none',
  });
  const unknown = 'A'.repeat(32);
  expectError(await sendObjectCompliance(api, { ...address, versionId: unknown }, { LegalHold: true }), {
    status: 404,
    code: 'NoSuchVersion',
    VersionId: unknown,
  });
  const versioned = await makeVersionedBucket(api);
  await enableCompliance(api, versioned);
  await api.put(versioned, 'k', 'bytes');
  const marker = versionOf(await api.send({ method: 'DELETE', path: `/${versioned}/k` }));
  const object = { bucket: versioned, key: 'k' };
  expectError(await sendObjectCompliance(api, object, { LegalHold: true }), {
    status: 404,
    code: 'NoSuchKey',
  });
  expectError(await sendObjectCompliance(api, { ...object, versionId: marker }, { LegalHold: true }), {
    status: 405,
    code: 'MethodNotAllowed',
  });
});

test('where the bucket has none, or has it no more', async () => {
  const none = { status: 404, code: 'NoSuchComplianceConfiguration' } as const;
  const plain = await api.makeBucket();
  await api.put(plain, 'k', 'bytes');
  const answer = await sendObjectCompliance(api, { bucket: plain, key: 'k' }, { LegalHold: true });
  expectError(answer, { ...none, BucketName: plain });
  expectStatus(await sendBucketCompliance(api, bucket, { Status: 'disabled' }), 200);
  expectError(await put({ LegalHold: true }), none);
});

test.each<[string, string, string]>([
  ['no body', '', 'MissingRequestBodyError'],
  ['no XML', 'true', 'MalformedXML'],
  ['another root', '<Compliance><LegalHold>true</LegalHold></Compliance>', 'MalformedXML'],
  ['nothing to change', objectComplianceXml({ SHA256: 'ab' }), 'MalformedXML'],
  ['a legal hold of ON', objectComplianceXml({ LegalHold: 'ON' }), 'MalformedXML'],
  ['a conditional hold of no', objectComplianceXml({ ConditionalHold: 'no' }), 'MalformedXML'],
  ['a RetentionTime in words', objectComplianceXml({ RetentionTime: 'later' }), 'InvalidArgument'],
  ['an empty RetentionTime', objectComplianceXml({ RetentionTime: '' }), 'InvalidArgument'],
  [
    'a RetentionTime of another age',
    objectComplianceXml({ RetentionTime: '9999-01-01T00:00:00Z' }),
    'InvalidArgument',
  ],
])('%s is refused', async (_case, text, code) => {
  const before = await shown();
  const body = Buffer.from(text);
  const answer = await api.send({ method: 'PUT', path: compliancePath(address), body });
  expectError(answer, { status: 400, code: code as 'MalformedXML' });
  expect(await shown()).toEqual(before);
});

test('an empty version id is refused', async () => {
  const answer = await sendObjectCompliance(api, { ...address, versionId: '' }, { LegalHold: true });
  expectError(answer, { status: 400, code: 'InvalidArgument' });
});
