// PutObjectRetention and GetObjectRetention: what may be changed by whom, what it keeps, and every refusal.
import { createHash } from 'node:crypto';
import { GetObjectRetentionCommand, PutObjectRetentionCommand } from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  BYPASS,
  deleteVersion,
  getRetention,
  inDays,
  makeLockBucket,
  putVersion,
  retentionXml,
  sendRetention,
} from '../support/servers/locks.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await makeLockBucket(api);
});

const PROTECTED = {
  status: 403,
  code: 'AccessDenied',
  Message: 'Access Denied because object protected by object lock.',
} as const;
const NONE = { status: 404, code: 'NoSuchObjectLockConfiguration' } as const;
const NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';
let keyCount = 0;
/** A new object. */
async function makeObject(headers: Record<string, string> = {}) {
  const key = `k-${++keyCount}`;
  return { bucket, key, versionId: await putVersion(api, { bucket, key }, headers) };
}
const shown = (mode: string, until: string) => ({ Mode: mode, RetainUntilDate: until.replace('Z', '.000Z') });

test('is set and shown, of the current version or of one by its id', async () => {
  const object = await makeObject();
  const newer = await putVersion(api, object);
  expectError(await getRetention(api, object), NONE);
  const answer = await sendRetention(api, object, retentionXml('GOVERNANCE', inDays(1)));
  expectStatus(answer, 200);
  expect(answer.body).toHaveLength(0);
  const { bucket, key } = object;
  expectError(await getRetention(api, { bucket, key }), NONE);
  expectStatus(await sendRetention(api, { bucket, key }, retentionXml('COMPLIANCE', inDays(2))), 200);
  const read = await getRetention(api, object);
  expect(fieldsOf(read)).toEqual(shown('GOVERNANCE', inDays(1)));
  expect(String(read.body)).toContain(`<Retention ${NAMESPACE}><Mode>`);
  expect(fieldsOf(await getRetention(api, { bucket, key }))).toMatchObject({ Mode: 'COMPLIANCE' });
  expect(fieldsOf(await getRetention(api, { ...object, versionId: newer }))).toMatchObject({
    Mode: 'COMPLIANCE',
  });
});

test.each([
  [`<Retention ${NAMESPACE}>`, '</Retention>'],
  [`<?xml version="1.0"?>\n<a:Retention xmlns:a="urn:a">`, '</a:Retention>'],
])('a document that begins with %s is taken', async (start, end) => {
  const object = await makeObject();
  const prefix = start.includes('a:') ? 'a:' : '';
  const element = (name: string, text: string) => `<${prefix}${name}>${text}</${prefix}${name}>`;
  const body = start + element('Mode', 'GOVERNANCE') + element('RetainUntilDate', inDays(1)) + end;
  expectStatus(await sendRetention(api, object, body), 200);
  expect(fieldsOf(await getRetention(api, object))).toMatchObject({ Mode: 'GOVERNANCE' });
});

describe('changes', () => {
  test.each(['GOVERNANCE', 'COMPLIANCE'])(
    's3-behaviour 41: %s is extended, and not shortened without bypass',
    async (mode) => {
      const object = await makeObject();
      for (const days of [1, 2, 2, 400])
        expectStatus(await sendRetention(api, object, retentionXml(mode, inDays(days))), 200);
      expect(fieldsOf(await getRetention(api, object))).toEqual(shown(mode, inDays(400)));
      expectError(await deleteVersion(api, object), PROTECTED);
      expectError(await sendRetention(api, object, retentionXml(mode, inDays(399))), PROTECTED);
      expectError(await sendRetention(api, object, '<Retention/>'), PROTECTED);
      expect(fieldsOf(await getRetention(api, object))).toEqual(shown(mode, inDays(400)));
    },
  );

  test('GOVERNANCE changes in all ways by a bypass', async () => {
    const object = await makeObject();
    const set = (mode: string, days: number, headers: Record<string, string> = {}) =>
      sendRetention(api, object, retentionXml(mode, inDays(days)), { headers });
    expectStatus(await set('GOVERNANCE', 10), 200);
    expectError(await set('COMPLIANCE', 20), PROTECTED);
    expectStatus(await set('GOVERNANCE', 5, BYPASS), 200);
    expectStatus(await sendRetention(api, object, '<Retention/>', { headers: BYPASS }), 200);
    expectError(await getRetention(api, object), NONE);
    expectStatus(await set('GOVERNANCE', 10), 200);
    const empty = '<Retention><Mode></Mode><RetainUntilDate></RetainUntilDate></Retention>';
    expectStatus(await sendRetention(api, object, empty, { headers: BYPASS }), 200);
    expectError(await getRetention(api, object), NONE);
    expectStatus(await set('GOVERNANCE', 10), 200);
    expectStatus(await set('COMPLIANCE', 1, BYPASS), 200);
    expect(fieldsOf(await getRetention(api, object))).toMatchObject({ Mode: 'COMPLIANCE' });
  });

  test('COMPLIANCE is neither shortened nor removed nor changed, by nobody', async () => {
    const object = await makeObject();
    expectStatus(await sendRetention(api, object, retentionXml('COMPLIANCE', inDays(10))), 200);
    for (const body of [
      retentionXml('COMPLIANCE', inDays(9)),
      retentionXml('GOVERNANCE', inDays(20)),
      '<Retention/>',
    ]) {
      for (const headers of [{}, BYPASS])
        expectError(await sendRetention(api, object, body, { headers }), PROTECTED);
    }
    expectError(await deleteVersion(api, object, { headers: BYPASS }), PROTECTED);
    expect(fieldsOf(await getRetention(api, object))).toEqual(shown('COMPLIANCE', inDays(10)));
  });

  test('what is removed where there is none stays so', async () => {
    const object = await makeObject();
    expectStatus(await sendRetention(api, object, '<Retention/>'), 200);
    expectError(await getRetention(api, object), NONE);
    expectStatus(await deleteVersion(api, object), 204);
  });
});

describe('refusals', () => {
  const until = inDays(1);
  test.each([
    ['nothing', ''],
    ['no XML', '{}'],
    ['another root', '<LegalHold/>'],
    ['a mode alone', '<Retention><Mode>GOVERNANCE</Mode></Retention>'],
    ['a date alone', `<Retention><RetainUntilDate>${until}</RetainUntilDate></Retention>`],
    ['an unknown mode', retentionXml('abc', until)],
    ['a mode in small letters', retentionXml('governance', until)],
    ['a date that is none', retentionXml('GOVERNANCE', 'tomorrow')],
    ['a day that no month has', retentionXml('GOVERNANCE', '2100-02-30T00:00:00Z')],
  ])('%s is MalformedXML', async (_name, body) => {
    const object = await makeObject();
    expectError(await sendRetention(api, object, body), { status: 400, code: 'MalformedXML' });
    expectError(await getRetention(api, object), NONE);
  });

  test('a date that has passed', async () => {
    const object = await makeObject();
    expectError(await sendRetention(api, object, retentionXml('GOVERNANCE', '2020-01-01T00:00:00Z')), {
      status: 400,
      code: 'InvalidArgument',
      Message: 'The retain until date must be in the future!',
      ArgumentName: 'RetainUntilDate',
      ArgumentValue: '2020-01-01T00:00:00.000Z',
    });
  });

  test('a bypass that is neither wanted nor not', async () => {
    const headers = { 'x-amz-bypass-governance-retention': 'perhaps' };
    const body = retentionXml('GOVERNANCE', until);
    expectError(await sendRetention(api, await makeObject(), body, { headers }), {
      status: 400,
      code: 'InvalidArgument',
      ArgumentName: 'x-amz-bypass-governance-retention',
    });
  });

  test('an event hold', async () => {
    const body = '<Retention><EventHold>ON</EventHold></Retention>';
    expectError(await sendRetention(api, await makeObject(), body), { status: 501, code: 'NotImplemented' });
  });

  test('what is not there, and markers', async () => {
    const object = await makeObject();
    const { versionId: _, ...current } = object;
    const marker = versionOf(await deleteVersion(api, current));
    const unknown = 'A'.repeat(32);
    for (const send of [
      (address: Parameters<typeof getRetention>[1]) => getRetention(api, address),
      (address: Parameters<typeof getRetention>[1]) =>
        sendRetention(api, address, retentionXml('GOVERNANCE', until)),
    ]) {
      const isMarker = { status: 405, code: 'MethodNotAllowed', ResourceType: 'DeleteMarker' } as const;
      expectError(await send(current), isMarker);
      expectError(await send({ ...object, versionId: marker }), isMarker);
      expectError(await send({ bucket, key: 'none' }), { status: 404, code: 'NoSuchKey', Key: 'none' });
      const noVersion = { status: 404, code: 'NoSuchVersion', VersionId: unknown } as const;
      expectError(await send({ ...object, versionId: unknown }), noVersion);
      expectError(await send({ ...object, versionId: '' }), { status: 400, code: 'InvalidArgument' });
    }
  });

  test('a bucket without a lock, whatever the object', async () => {
    const plain = await makeVersionedBucket(api);
    await api.put(plain, 'k', 'bytes');
    const refused = {
      status: 400,
      code: 'InvalidRequest',
      Message: 'Bucket is missing Object Lock Configuration',
    } as const;
    for (const key of ['k', 'none']) {
      expectError(await getRetention(api, { bucket: plain, key }), refused);
      const body = retentionXml('GOVERNANCE', until);
      expectError(await sendRetention(api, { bucket: plain, key }, body), refused);
    }
  });

  test('a digest is verified if it is sent', async () => {
    const object = await makeObject();
    const body = retentionXml('GOVERNANCE', until);
    const send = (of: string) => {
      const headers = { 'content-md5': createHash('md5').update(of).digest('base64') };
      return sendRetention(api, object, body, { headers });
    };
    expectError(await send('other'), { status: 400, code: 'BadDigest' });
    expectStatus(await send(body), 200);
  });

  test('strangers', async () => {
    const object = await makeObject();
    const as = await api.makeAccount();
    const denied = { status: 403, code: 'AccessDenied' } as const;
    expectError(await sendRetention(api, object, retentionXml('GOVERNANCE', until), { as }), denied);
    expectError(await getRetention(api, object, as), denied);
    const path = `${pathOf(bucket, object.key)}?retention`;
    expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  });
});

test('through the SDK', async () => {
  const object = await makeObject();
  const place = { Bucket: bucket, Key: object.key };
  const RetainUntilDate = new Date(inDays(3));
  await api.s3.send(
    new PutObjectRetentionCommand({ ...place, Retention: { Mode: 'GOVERNANCE', RetainUntilDate } }),
  );
  const { Retention } = await api.s3.send(new GetObjectRetentionCommand(place));
  expect(Retention).toEqual({ Mode: 'GOVERNANCE', RetainUntilDate });
  const shorter = { Mode: 'GOVERNANCE' as const, RetainUntilDate: new Date(inDays(1)) };
  await api.s3.send(
    new PutObjectRetentionCommand({ ...place, Retention: shorter, BypassGovernanceRetention: true }),
  );
});
