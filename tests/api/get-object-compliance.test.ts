// GetObjectCompliance: what is in effect, and the SHA-256 of what came in one piece.
import { createHash, randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  complianceOfObject,
  enableCompliance,
  getObjectCompliance,
  sendBucketCompliance,
  sendObjectCompliance,
} from '../support/servers/compliance.ts';
import { keyHeaders } from '../support/servers/customer-keys.ts';
import { completeUpload } from '../support/servers/multipart.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
const DAY = 24 * 3600 * 1000;
const sha256Of = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
  await enableCompliance(api, bucket, { RetentionDays: 0 });
});
const shown = (key: string) => complianceOfObject(api, { bucket, key });

test('the document, in the order of the contract', async () => {
  await enableCompliance(api, bucket, { RetentionDays: 2 });
  await api.put(bucket, 'k', 'bytes');
  const { LastModified } = await api
    .send({ method: 'GET', path: `/${bucket}` })
    .then((answer) => ({ LastModified: /<LastModified>(.*?)</.exec(answer.body.toString())?.[1] ?? '' }));
  const answer = await getObjectCompliance(api, { bucket, key: 'k' });
  expectStatus(answer, 200);
  const retentionTime = fieldsOf(answer).RetentionTime ?? '';
  expect(Date.parse(retentionTime) - Date.parse(LastModified)).toBeGreaterThanOrEqual(2 * DAY);
  expect(Date.parse(retentionTime) - Date.parse(LastModified)).toBeLessThan(2 * DAY + 1000);
  expect(answer.body.toString()).toBe(
    `<?xml version="1.0" encoding="UTF-8"?>\n<ObjectComplianceConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><RetentionTime>${retentionTime}</RetentionTime><ConditionalHold>false</ConditionalHold><LegalHold>false</LegalHold><SHA256>${sha256Of('bytes')}</SHA256></ObjectComplianceConfiguration>`,
  );
});

test('RetentionTime is the later one of the bucket’s and the object’s own', async () => {
  await api.put(bucket, 'k', 'bytes');
  const own = new Date(Date.now() + 2 * DAY).toISOString();
  expectStatus(await sendObjectCompliance(api, { bucket, key: 'k' }, { RetentionTime: own }), 200);
  expect((await shown('k')).RetentionTime).toBe(own);
  await enableCompliance(api, bucket, { RetentionDays: 3 });
  expect((await shown('k')).RetentionTime?.localeCompare(own)).toBe(1);
});

test('under a conditional hold there is none but the object’s own', async () => {
  await enableCompliance(api, bucket, { RetentionDays: 1, ConditionalHold: true });
  await api.put(bucket, 'k', 'bytes');
  expect(await shown('k')).toEqual({
    ConditionalHold: 'true',
    LegalHold: 'false',
    SHA256: sha256Of('bytes'),
  });
  const own = new Date(Date.now() + 2 * DAY).toISOString();
  expectStatus(await sendObjectCompliance(api, { bucket, key: 'k' }, { RetentionTime: own }), 200);
  expect(await shown('k')).toMatchObject({ RetentionTime: own, ConditionalHold: 'true' });
  expectStatus(await sendObjectCompliance(api, { bucket, key: 'k' }, { ConditionalHold: false }), 200);
  expect(await shown('k')).toMatchObject({ RetentionTime: own, ConditionalHold: 'false' });
});

describe('SHA256', () => {
  test.each([0, 10, 100_000, 3 * 1024 * 1024 + 1])(
    'of %i bytes, proved by the request or not',
    async (size) => {
      const body = randomBytes(size);
      await api.put(bucket, 'unsigned', body);
      await api.put(bucket, 'signed', body, { 'x-amz-content-sha256': sha256Of(body) });
      for (const key of ['unsigned', 'signed']) {
        expect((await shown(key)).SHA256).toBe(sha256Of(body));
        // The second time it is the one that was kept.
        expect((await shown(key)).SHA256).toBe(sha256Of(body));
      }
    },
  );

  test('of an object that was there before', async () => {
    const older = await api.makeBucket();
    await api.put(older, 'k', 'older');
    await enableCompliance(api, older);
    expect((await complianceOfObject(api, { bucket: older, key: 'k' })).SHA256).toBe(sha256Of('older'));
  });

  test('of a copy of such an object', async () => {
    await api.put(bucket, 'k', 'bytes');
    const headers = { 'x-amz-copy-source': `/${bucket}/k` };
    expectStatus(await api.send({ method: 'PUT', path: `/${bucket}/copy`, headers }), 200);
    expect((await shown('copy')).SHA256).toBe(sha256Of('bytes'));
  });

  test('is absent where the object came in several pieces', async () => {
    await completeUpload(api, { bucket, key: 'parts', parts: [Buffer.from('one part')] });
    await api.put(bucket, 'one', 'bytes');
    const compose = Buffer.from('<ComposeRequest><Component><Key>one</Key></Component></ComposeRequest>');
    expectStatus(await api.send({ method: 'PUT', path: `/${bucket}/composed?compose`, body: compose }), 200);
    await api.put(bucket, 'grown', 'bytes');
    expect(await shown('grown')).toHaveProperty('SHA256');
    const more = Buffer.from(' and more');
    expectStatus(await api.send({ method: 'PUT', path: `/${bucket}/grown?append`, body: more }), 200);
    for (const key of ['parts', 'composed', 'grown']) expect(await shown(key)).not.toHaveProperty('SHA256');
  });

  test('of an object under a customer’s key needs the key, also where it is kept', async () => {
    const [mine, other] = [randomBytes(32), randomBytes(32)];
    await api.put(bucket, 'k', 'secret', keyHeaders(mine));
    expect(await shown('k')).not.toHaveProperty('SHA256');
    const wrong = await getObjectCompliance(api, { bucket, key: 'k' }, keyHeaders(other));
    expectError(wrong, { status: 400, code: 'InvalidRequest' });
    const right = await getObjectCompliance(api, { bucket, key: 'k' }, keyHeaders(mine));
    expect(fieldsOf(right).SHA256).toBe(sha256Of('secret'));
    expect(await shown('k')).not.toHaveProperty('SHA256');
    await api.put(bucket, 'plain', 'bytes');
    const needless = await getObjectCompliance(api, { bucket, key: 'plain' }, keyHeaders(mine));
    expectError(needless, { status: 400, code: 'InvalidRequest' });
  });

  test('a customer’s key of another algorithm is refused', async () => {
    const headers = keyHeaders(randomBytes(32));
    const algorithm = 'x-amz-server-side-encryption-customer-algorithm';
    const answer = await getObjectCompliance(
      api,
      { bucket, key: 'k' },
      { ...headers, [algorithm]: 'AES128' },
    );
    expectError(answer, { status: 400, code: 'InvalidEncryptionAlgorithmError' });
  });
});

test('of a version by its id, else of the current one', async () => {
  const versioned = await makeVersionedBucket(api);
  await enableCompliance(api, versioned);
  const make = async (body: string) =>
    versionOf(await api.send({ method: 'PUT', path: `/${versioned}/k`, body: Buffer.from(body) }));
  const [first, second] = [await make('one'), await make('two')];
  const older = await getObjectCompliance(api, { bucket: versioned, key: 'k', versionId: first });
  expect([versionOf(older), fieldsOf(older).SHA256]).toEqual([first, sha256Of('one')]);
  const current = await getObjectCompliance(api, { bucket: versioned, key: 'k' });
  expect([versionOf(current), fieldsOf(current).SHA256]).toEqual([second, sha256Of('two')]);
});

test('of missing keys and versions, and of markers', async () => {
  expectError(await getObjectCompliance(api, { bucket, key: 'none' }), {
    status: 404,
    code: 'NoSuchKey',
    Key: 'none',
  });
  await api.put(bucket, 'k', 'bytes');
  const unknown = 'A'.repeat(32);
  expectError(await getObjectCompliance(api, { bucket, key: 'k', versionId: unknown }), {
    status: 404,
    code: 'NoSuchVersion',
    VersionId: unknown,
  });
  expectError(await getObjectCompliance(api, { bucket, key: 'k', versionId: '' }), {
    status: 400,
    code: 'InvalidArgument',
  });
  const versioned = await makeVersionedBucket(api);
  await enableCompliance(api, versioned);
  const marker = versionOf(await api.send({ method: 'DELETE', path: `/${versioned}/k` }));
  expectError(await getObjectCompliance(api, { bucket: versioned, key: 'k', versionId: marker }), {
    status: 405,
    code: 'MethodNotAllowed',
  });
});

test('where the bucket has none, or has it no more', async () => {
  const none = { status: 404, code: 'NoSuchComplianceConfiguration' } as const;
  await api.put(bucket, 'k', 'bytes');
  expectStatus(await sendBucketCompliance(api, bucket, { Status: 'disabled' }), 200);
  expectError(await getObjectCompliance(api, { bucket, key: 'k' }), { ...none, BucketName: bucket });
  expectError(await getObjectCompliance(api, { bucket, key: 'none' }), none);
  const plain = await api.makeBucket();
  expectError(await getObjectCompliance(api, { bucket: plain, key: 'k' }), none);
});
