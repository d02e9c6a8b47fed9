// PutObjectLegalHold and GetObjectLegalHold.
import { createHash } from 'node:crypto';
import { GetObjectLegalHoldCommand, PutObjectLegalHoldCommand } from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  BYPASS,
  deleteVersion,
  getLegalHold,
  legalHoldXml,
  makeLockBucket,
  putVersion,
  sendLegalHold,
} from '../support/servers/locks.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await makeLockBucket(api);
});

const NONE = { status: 404, code: 'NoSuchObjectLockConfiguration' } as const;
let keyCount = 0;
async function makeObject() {
  const key = `k-${++keyCount}`;
  return { bucket, key, versionId: await putVersion(api, { bucket, key }) };
}

test('ON keeps the version, whatever a bypass; OFF lets it go', async () => {
  const object = await makeObject();
  expectError(await getLegalHold(api, object), NONE);
  const answer = await sendLegalHold(api, object, legalHoldXml('ON'));
  expectStatus(answer, 200);
  expect(answer.body).toHaveLength(0);
  expect(fieldsOf(await getLegalHold(api, object))).toEqual({ Status: 'ON' });
  const kept = {
    status: 403,
    code: 'AccessDenied',
    Message: 'Access Denied because object protected by object lock.',
  } as const;
  expectError(await deleteVersion(api, object), kept);
  expectError(await deleteVersion(api, object, { headers: BYPASS }), kept);
  expectStatus(await sendLegalHold(api, object, legalHoldXml('OFF')), 200);
  expect(fieldsOf(await getLegalHold(api, object))).toEqual({ Status: 'OFF' });
  expectStatus(await deleteVersion(api, object), 204);
});

test('is of one version', async () => {
  const object = await makeObject();
  await putVersion(api, object);
  expectStatus(await sendLegalHold(api, object, legalHoldXml('ON')), 200);
  const { versionId: _, ...current } = object;
  expectError(await getLegalHold(api, current), NONE);
  expectStatus(await sendLegalHold(api, current, legalHoldXml('OFF')), 200);
  expect(fieldsOf(await getLegalHold(api, current))).toEqual({ Status: 'OFF' });
  expect(fieldsOf(await getLegalHold(api, object))).toEqual({ Status: 'ON' });
});

describe('refusals', () => {
  test.each([
    ['nothing', ''],
    ['no XML', '{}'],
    ['another root', '<Retention/>'],
    ['no status', '<LegalHold/>'],
    ['an unknown status', legalHoldXml('abc')],
    ['a status in small letters', legalHoldXml('on')],
  ])('%s is MalformedXML', async (_name, body) => {
    const object = await makeObject();
    expectError(await sendLegalHold(api, object, body), { status: 400, code: 'MalformedXML' });
    expectError(await getLegalHold(api, object), NONE);
  });

  test('what is not there, and markers', async () => {
    const object = await makeObject();
    const { versionId: _, ...current } = object;
    const marker = versionOf(await deleteVersion(api, current));
    const unknown = 'A'.repeat(32);
    for (const send of [
      (address: typeof current) => getLegalHold(api, address),
      (address: typeof current) => sendLegalHold(api, address, legalHoldXml('ON')),
    ]) {
      const isMarker = { status: 405, code: 'MethodNotAllowed', ResourceType: 'DeleteMarker' } as const;
      expectError(await send(current), isMarker);
      expectError(await send({ ...object, versionId: marker } as typeof current), isMarker);
      expectError(await send({ bucket, key: 'none' }), { status: 404, code: 'NoSuchKey', Key: 'none' });
      const gone = { ...object, versionId: unknown } as typeof current;
      expectError(await send(gone), { status: 404, code: 'NoSuchVersion', VersionId: unknown });
      const empty = { ...object, versionId: '' } as typeof current;
      expectError(await send(empty), { status: 400, code: 'InvalidArgument' });
    }
  });

  test('a bucket without a lock', async () => {
    const plain = await makeVersionedBucket(api);
    await api.put(plain, 'k', 'bytes');
    const refused = {
      status: 400,
      code: 'InvalidRequest',
      Message: 'Bucket is missing Object Lock Configuration',
    } as const;
    for (const key of ['k', 'none']) {
      expectError(await getLegalHold(api, { bucket: plain, key }), refused);
      expectError(await sendLegalHold(api, { bucket: plain, key }, legalHoldXml('ON')), refused);
    }
  });

  test('a digest is verified if it is sent', async () => {
    const object = await makeObject();
    const body = legalHoldXml('ON');
    const send = (of: string) =>
      sendLegalHold(api, object, body, { 'content-md5': createHash('md5').update(of).digest('base64') });
    expectError(await send('other'), { status: 400, code: 'BadDigest' });
    expectStatus(await send(body), 200);
  });
});

test('through the SDK', async () => {
  const object = await makeObject();
  const place = { Bucket: bucket, Key: object.key };
  await api.s3.send(new PutObjectLegalHoldCommand({ ...place, LegalHold: { Status: 'ON' } }));
  const { LegalHold } = await api.s3.send(new GetObjectLegalHoldCommand(place));
  expect(LegalHold).toEqual({ Status: 'ON' });
});
