// x-amz-object-lock-* on what makes objects and what reads them, and deletions of locked versions: PutObject, CopyObject,
// multipart uploads, forms, compositions, appends, GET, HEAD, DELETE, DeleteObjects. The operations on the lock of a version
// have files of their own; who may do it: src/gateway/s3/lock-rights.test.ts.
import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { postForm, signForm } from '../support/servers/forms.ts';
import {
  BYPASS,
  deleteVersion,
  getRetention,
  inDays,
  legalHoldXml,
  makeLockBucket,
  putVersion,
  retentionXml,
  sendLegalHold,
  sendRetention,
} from '../support/servers/locks.ts';
import { beginUpload, putPart, sendComplete } from '../support/servers/multipart.ts';
import { pathOf, type RawAnswer } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await makeLockBucket(api);
});

const MODE = 'x-amz-object-lock-mode';
const UNTIL = 'x-amz-object-lock-retain-until-date';
const HOLD = 'x-amz-object-lock-legal-hold';
const UNTIL_DATE = inDays(2);
const LOCK = { [MODE]: 'GOVERNANCE', [UNTIL]: UNTIL_DATE, [HOLD]: 'ON' };
const SHOWN = { ...LOCK, [UNTIL]: UNTIL_DATE.replace('Z', '.000Z') };
const PROTECTED = {
  status: 403,
  code: 'AccessDenied',
  Message: 'Access Denied because object protected by object lock.',
} as const;

const lockOf = ({ headers }: RawAnswer) =>
  Object.fromEntries([MODE, UNTIL, HOLD].flatMap((name) => (name in headers ? [[name, headers[name]]] : [])));
const read = (method: 'GET' | 'HEAD', key: string, headers: Record<string, string> = {}, query = '') =>
  api.send({ method, path: `${pathOf(bucket, key)}${query}`, headers });
const send = (
  method: string,
  target: string,
  { headers = {}, body }: { headers?: Record<string, string>; body?: string } = {},
) =>
  api.send({
    method,
    path: `/${bucket}/${target}`,
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });

/** Everything that makes an object with a lock of its own, by the headers that it gets. */
const MAKERS: Record<string, (key: string, headers: Record<string, string>) => Promise<RawAnswer>> = {
  PutObject: (key, headers) => send('PUT', key, { headers, body: 'bytes' }),
  async CopyObject(key, headers) {
    await putVersion(api, { bucket, key: 'source' });
    return send('PUT', key, { headers: { ...headers, 'x-amz-copy-source': `/${bucket}/source` } });
  },
  async 'CopyObject onto itself'(key, headers) {
    await putVersion(api, { bucket, key });
    const replaces = { 'x-amz-copy-source': `/${bucket}/${key}`, 'x-amz-metadata-directive': 'REPLACE' };
    return send('PUT', key, { headers: { ...headers, ...replaces } });
  },
  async 'a multipart upload'(key, headers) {
    const begun = await send('POST', `${key}?uploads`, { headers });
    if (begun.status !== 200) return begun;
    const upload = { bucket, key, uploadId: textOf(xmlOf(begun), 'UploadId') ?? '' };
    const etag = await putPart(api, upload, { partNumber: 1, body: Buffer.from('part') });
    return sendComplete(api, upload, [{ partNumber: 1, etag }]);
  },
  async PostObject(key, headers) {
    const fields = signForm(api.server, bucket, [['key', key], ...Object.entries(headers)]);
    return postForm(api.server, bucket, { fields });
  },
  async ComposeObject(key, headers) {
    await putVersion(api, { bucket, key: 'component' });
    const body = '<ComposeRequest><Component><Key>component</Key></Component></ComposeRequest>';
    return send('PUT', `${key}?compose`, { headers, body });
  },
};

describe.each(Object.entries(MAKERS))('%s', (name, make) => {
  const key = name.replaceAll(' ', '-');

  test('takes retention and a legal hold, which GET and HEAD show', async () => {
    const made = await make(key, LOCK);
    expect(made.status, String(made.body)).toBeLessThan(300);
    for (const method of ['GET', 'HEAD'] as const) {
      expect(lockOf(await read(method, key))).toEqual(SHOWN);
      expect(lockOf(await read(method, key, {}, `?versionId=${versionOf(made)}`))).toEqual(SHOWN);
    }
    expect(lockOf(await read('GET', key, { range: 'bytes=0-0' }))).toEqual(SHOWN);
    expect(lockOf(await read('HEAD', key, {}, '?partNumber=1'))).toEqual(SHOWN);
    const object = { bucket, key, versionId: versionOf(made) };
    expectError(await deleteVersion(api, object), PROTECTED);
    expectError(await deleteVersion(api, object, { headers: BYPASS }), PROTECTED);
    expectStatus(await sendLegalHold(api, object, legalHoldXml('OFF')), 200);
    expect(lockOf(await read('HEAD', key))).toEqual({ ...SHOWN, [HOLD]: 'OFF' });
    expectError(await deleteVersion(api, object), PROTECTED);
    expectStatus(await deleteVersion(api, object, { headers: BYPASS }), 204);
  });

  test('takes one of the two', async () => {
    await make(`${key}-1`, { [MODE]: 'COMPLIANCE', [UNTIL]: UNTIL_DATE });
    expect(lockOf(await read('HEAD', `${key}-1`))).toEqual({ [MODE]: 'COMPLIANCE', [UNTIL]: SHOWN[UNTIL] });
    await make(`${key}-2`, { [HOLD]: 'ON' });
    expect(lockOf(await read('HEAD', `${key}-2`))).toEqual({ [HOLD]: 'ON' });
    await make(`${key}-3`, { [HOLD]: 'OFF' });
    expect(lockOf(await read('HEAD', `${key}-3`))).toEqual({ [HOLD]: 'OFF' });
    await make(`${key}-4`, {});
    expect(lockOf(await read('HEAD', `${key}-4`))).toEqual({});
  });

  const both = `${UNTIL} and ${MODE} must both be supplied`;
  test.each<[Record<string, string>, string, string]>([
    [{ [MODE]: 'GOVERNANCE' }, UNTIL, both],
    [{ [UNTIL]: UNTIL_DATE }, MODE, both],
    [{ [MODE]: 'governance', [UNTIL]: UNTIL_DATE }, MODE, 'Unknown wormMode directive.'],
    [
      { [MODE]: 'GOVERNANCE', [UNTIL]: 'tomorrow' },
      UNTIL,
      'The retain until date must be provided in ISO 8601 format',
    ],
    [
      { [MODE]: 'GOVERNANCE', [UNTIL]: '2020-01-01T00:00:00Z' },
      UNTIL,
      'The retain until date must be in the future!',
    ],
    [
      { [MODE]: 'GOVERNANCE', [UNTIL]: '9999-12-31T00:00:00Z' },
      UNTIL,
      'The retain until date must be at most 100 years from now',
    ],
    [{ [HOLD]: 'on' }, HOLD, 'Legal Hold must be either of &apos;ON&apos; or &apos;OFF&apos;'],
  ])('refuses %j', async (headers, ArgumentName, message) => {
    const answer = await make(`${key}-refused`, headers);
    expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName });
    expect(String(answer.body).replaceAll("'", '&apos;')).toContain(`<Message>${message}</Message>`);
    if (name !== 'CopyObject onto itself') expectStatus(await read('HEAD', `${key}-refused`), 404);
  });
});

test.each<Record<string, string>>([
  { [MODE]: 'GOVERNANCE', [UNTIL]: UNTIL_DATE },
  { [HOLD]: 'ON' },
  { [HOLD]: 'OFF' },
])('a bucket without a lock takes no %j, and nothing is stored', async (headers) => {
  const plain = await makeVersionedBucket(api);
  const refused = {
    status: 400,
    code: 'InvalidRequest',
    Message: 'Bucket is missing ObjectLockConfiguration',
  } as const;
  const path = `/${plain}/k`;
  expectError(await api.send({ method: 'PUT', path, headers, body: Buffer.from('x') }), refused);
  expectError(await api.send({ method: 'POST', path: `${path}?uploads`, headers }), refused);
  const copies = { ...headers, 'x-amz-copy-source': `/${plain}/k` };
  expectError(await api.send({ method: 'PUT', path, headers: copies }), refused);
  expect(await api.keysOf(plain)).toEqual([]);
});

test('what is in force beside a header: the default of the bucket, which another retention replaces', async () => {
  const name = await makeLockBucket(api);
  const body = `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>9</Days></DefaultRetention></Rule></ObjectLockConfiguration>`;
  expectStatus(await api.send({ method: 'PUT', path: `/${name}?object-lock`, body: Buffer.from(body) }), 200);
  const retentionOf = async (key: string) => fieldsOf(await getRetention(api, { bucket: name, key }));
  await putVersion(api, { bucket: name, key: 'held' }, { [HOLD]: 'ON' });
  expect(await retentionOf('held')).toMatchObject({ Mode: 'GOVERNANCE' });
  await putVersion(api, { bucket: name, key: 'own' }, { [MODE]: 'COMPLIANCE', [UNTIL]: UNTIL_DATE });
  expect(await retentionOf('own')).toEqual({ Mode: 'COMPLIANCE', RetainUntilDate: SHOWN[UNTIL] });
  const upload = await beginUpload(api, { bucket: name, key: 'parts' });
  const etag = await putPart(api, upload, { partNumber: 1, body: Buffer.from('part') });
  expectStatus(await sendComplete(api, upload, [{ partNumber: 1, etag }]), 200);
  expect(await retentionOf('parts')).toMatchObject({ Mode: 'GOVERNANCE' });
});

test('the default of the bucket holds for compositions and appends as well', async () => {
  const name = await makeLockBucket(api);
  await putVersion(api, { bucket: name, key: 'log' });
  const body = `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>9</Days></DefaultRetention></Rule></ObjectLockConfiguration>`;
  expectStatus(await api.send({ method: 'PUT', path: `/${name}?object-lock`, body: Buffer.from(body) }), 200);
  const modeOf = async (key: string) => fieldsOf(await getRetention(api, { bucket: name, key })).Mode;
  const request = '<ComposeRequest><Component><Key>log</Key></Component></ComposeRequest>';
  const put = (path: string, text: string) =>
    api.send({ method: 'PUT', path: `/${name}/${path}`, body: Buffer.from(text) });
  expectStatus(await put('composed?compose', request), 200);
  expectStatus(await put('log?append', 'more'), 200);
  expect([await modeOf('composed'), await modeOf('log')]).toEqual(['GOVERNANCE', 'GOVERNANCE']);
});

test('a copy does not take the lock of its source along', async () => {
  await putVersion(api, { bucket, key: 'locked-source' }, LOCK);
  expectStatus(
    await send('PUT', 'copied', { headers: { 'x-amz-copy-source': `/${bucket}/locked-source` } }),
    200,
  );
  expect(lockOf(await read('HEAD', 'copied'))).toEqual({});
});

test('an append makes a version without the lock of the one before, and takes no lock', async () => {
  const first = await putVersion(api, { bucket, key: 'log' }, LOCK);
  expectStatus(await send('PUT', 'log?append', { body: 'more' }), 200);
  expect(lockOf(await read('HEAD', 'log'))).toEqual({});
  expect(lockOf(await read('HEAD', 'log', {}, `?versionId=${first}`))).toEqual(SHOWN);
  const refused = { status: 501, code: 'NotImplemented' } as const;
  expectError(await send('PUT', 'log?append', { headers: LOCK, body: 'more' }), refused);
  for (const offset of ['0', '5']) {
    const headers = { ...LOCK, 'x-amz-write-offset-bytes': offset };
    expectError(await send('PUT', 'log', { headers, body: 'more' }), refused);
  }
});

test('an event hold is refused, and not passed over', async () => {
  const headers = { 'x-amz-object-lock-event-hold': 'ON' };
  expectError(await send('PUT', 'k', { headers, body: 'x' }), { status: 501, code: 'NotImplemented' });
});

test('s3-behaviour 41: a version under retention or a hold is not deleted; a simple delete writes a marker', async () => {
  const object = { bucket, key: 'kept', versionId: await putVersion(api, { bucket, key: 'kept' }, LOCK) };
  const marked = await deleteVersion(api, { bucket, key: 'kept' });
  expect([marked.status, marked.headers['x-amz-delete-marker']]).toEqual([204, 'true']);
  expectStatus(await deleteVersion(api, { bucket, key: 'kept', versionId: versionOf(marked) }), 204);
  await putVersion(api, object);
  expect(lockOf(await read('HEAD', 'kept', {}, `?versionId=${object.versionId}`))).toEqual(SHOWN);
  expectError(await deleteVersion(api, object), PROTECTED);
});

describe('DeleteObjects', () => {
  const deleteMany = (
    objects: readonly { key: string; versionId?: string }[],
    headers: Record<string, string> = {},
  ) => {
    const entries = objects.map(({ key, versionId }) => {
      const version = versionId === undefined ? '' : `<VersionId>${versionId}</VersionId>`;
      return `<Object><Key>${key}</Key>${version}</Object>`;
    });
    const body = Buffer.from(`<Delete>${entries.join('')}</Delete>`);
    const digest = { 'content-md5': createHash('md5').update(body).digest('base64') };
    const path = `/${bucket}?delete`;
    return api.send({ method: 'POST', path, headers: { ...headers, ...digest }, body });
  };

  test('s3-behaviour 41: in DeleteObjects, too, what is locked is AccessDenied, and the rest is deleted', async () => {
    const make = async (key: string, headers: Record<string, string>) => ({
      key,
      versionId: await putVersion(api, { bucket, key }, headers),
    });
    const governed = await make('d-1', { [MODE]: 'GOVERNANCE', [UNTIL]: UNTIL_DATE });
    const held = await make('d-2', { [HOLD]: 'ON' });
    const complied = await make('d-3', { [MODE]: 'COMPLIANCE', [UNTIL]: UNTIL_DATE });
    const free = await make('d-4', {});
    const answer = await deleteMany([governed, held, complied, free]);
    expectStatus(answer, 200);
    const refusedIn = (of: RawAnswer) =>
      childrenOf(xmlOf(of), 'Error').map((error) =>
        ['Key', 'Code', 'Message'].map((name) => textOf(error, name)),
      );
    const refused = (key: string) => [key, PROTECTED.code, PROTECTED.Message];
    expect(refusedIn(answer)).toEqual([refused('d-1'), refused('d-2'), refused('d-3')]);
    expect(childrenOf(xmlOf(answer), 'Deleted').map((each) => textOf(each, 'Key'))).toEqual(['d-4']);
    const bypassed = await deleteMany([governed, held, complied, { key: 'd-5' }], BYPASS);
    expect(refusedIn(bypassed)).toEqual([refused('d-2'), refused('d-3')]);
  });

  test('the bypass is taken where nothing is locked', async () => {
    const plain = await makeVersionedBucket(api);
    await api.put(plain, 'k', 'x');
    const head = await api.send({ method: 'HEAD', path: `/${plain}/k` });
    const address = { bucket: plain, key: 'k', versionId: versionOf(head) };
    for (const value of ['true', 'false', 'True']) {
      const headers = { 'x-amz-bypass-governance-retention': value };
      expectStatus(await deleteVersion(api, address, { headers }), 204);
      expectStatus(await deleteVersion(api, { bucket: plain, key: 'k' }, { headers }), 204);
    }
    const headers = { 'x-amz-bypass-governance-retention': 'maybe' };
    const refused = { status: 400, code: 'InvalidArgument' } as const;
    expectError(await deleteVersion(api, address, { headers }), refused);
    expectError(await deleteMany([{ key: 'k' }], headers), refused);
  });
});

test('retention that was put later is shown as that of headers', async () => {
  await putVersion(api, { bucket, key: 'later' });
  expectStatus(
    await sendRetention(api, { bucket, key: 'later' }, retentionXml('GOVERNANCE', UNTIL_DATE)),
    200,
  );
  expect(lockOf(await read('GET', 'later'))).toEqual({ [MODE]: 'GOVERNANCE', [UNTIL]: SHOWN[UNTIL] });
});
