// PUT ?compose over HTTP (service 2.7, 4.2, compose rules 1 to 5; service 8; extensions 2.3): what is composed reads as its
// components one after another, and every refusal leaves the target as it was. Not here: compose rule 6 (composed.test.ts),
// compose rule 7 and the largest object (large-objects.test.ts).
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { toBase64 } from '../../src/base/bytes/bytes.ts';
import { crcOf } from '../../src/base/crypto/crc.ts';
import type { ErrorCode } from '../../src/types/errors.ts';
import { keyHeaders } from '../support/servers/customer-keys.ts';
import { completeUpload } from '../support/servers/multipart.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket } from '../support/servers/versions.ts';

const MiB = 1024 * 1024;
const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'one', 'first ', {
    'content-type': 'text/plain',
    'x-amz-meta-colour': 'red',
    'x-amz-tagging': 'a=b',
  });
  await api.put(bucket, 'two', 'second');
});

type Part = string | { key: string; versionId?: string; element?: string; more?: string };

function documentOf(parts: readonly Part[]): string {
  const components = parts.map((part) => {
    const {
      key,
      versionId,
      element = 'VersionId',
      more = '',
    } = typeof part === 'string' ? { key: part } : part;
    const version = versionId === undefined ? '' : `<${element}>${versionId}</${element}>`;
    return `<Component><Key>${key}</Key>${version}${more}</Component>`;
  });
  return `<ComposeRequest>${components.join('')}</ComposeRequest>`;
}

const send = (key: string, body: string, headers: Record<string, string> = {}, into = bucket) =>
  api.send({
    method: 'PUT',
    path: `${pathOf(into, key)}?compose`,
    headers: { 'content-type': 'text/xml', ...headers },
    body: Buffer.from(body),
  });
const compose = (key: string, parts: readonly Part[], headers?: Record<string, string>, into?: string) =>
  send(key, documentOf(parts), headers, into);
const get = (key: string, query = '', from = bucket) =>
  api.send({ method: 'GET', path: pathOf(from, key) + query, headers: { 'x-amz-checksum-mode': 'ENABLED' } });
const textOf = async (key: string) => (await get(key)).body.toString();
const md5 = (text: string | Buffer) => createHash('md5').update(text).digest();
const etagOf = (md5s: readonly Buffer[]) => `"${md5(Buffer.concat(md5s)).toString('hex')}-${md5s.length}"`;
const composite = (...texts: (string | Buffer)[]) => etagOf(texts.map(md5));

describe('service 4.2, compose rule 4: the new object reads as its components one after another', () => {
  test('with their ETag, and no body in the answer', async () => {
    const answer = await compose('both', ['one', 'two']);
    expectStatus(answer, 200);
    expect(answer.headers.etag).toBe(composite('first ', 'second'));
    expect(answer.body.length).toBe(0);
    expect(answer.headers).not.toHaveProperty('x-amz-version-id');
    expect((await get('both')).headers.etag).toBe(composite('first ', 'second'));
    expect(await textOf('both')).toBe('first second');
  });

  test('the type text/xml is the request’s; headers are the first one’s, tags none; its user metadata and tags count', async () => {
    await compose('kept', ['one', 'two']);
    expect((await get('kept')).headers).toMatchObject({
      'content-type': 'text/plain',
      'x-amz-meta-colour': 'red',
    });
    expect((await get('kept')).headers).not.toHaveProperty('x-amz-tagging-count');
    const headers = { 'x-amz-meta-size': 'big', 'x-amz-tagging': 'x=y' };
    expectStatus(await compose('own', ['one', 'two'], headers), 200);
    expect((await get('own')).headers).toMatchObject({
      'content-type': 'text/plain',
      'x-amz-meta-size': 'big',
      'x-amz-tagging-count': '1',
    });
    expect((await get('own')).headers).not.toHaveProperty('x-amz-meta-colour');
  });

  test('components may be deleted and created again', async () => {
    await api.put(bucket, 'goes', 'what was there');
    await compose('lasts', ['goes', 'two']);
    await api.put(bucket, 'goes', 'something else');
    expect(await textOf('lasts')).toBe('what was theresecond');
    expectStatus(await api.send({ method: 'DELETE', path: pathOf(bucket, 'goes') }), 204);
    expect(await textOf('lasts')).toBe('what was theresecond');
  });

  test('compose rule 3: one twice, the target itself, and what is composed already', async () => {
    await api.put(bucket, 'self', 'x');
    expectStatus(await compose('self', ['self', 'self', 'one']), 200);
    expect(await textOf('self')).toBe('xxfirst ');
    expect((await compose('nested', ['self', 'self'])).headers.etag).toBe(
      composite('x', 'x', 'first ', 'x', 'x', 'first '),
    );
  });

  test('large ones, and a multipart object, which counts as one, by the MD5 in its own ETag', async () => {
    const parts = [randomBytes(5 * MiB), randomBytes(10)];
    const { etag } = await completeUpload(api, { bucket, key: 'multi', parts });
    const large = randomBytes(3 * MiB);
    await api.put(bucket, 'large', large);
    const answer = await compose('all', ['multi', 'large', 'one']);
    const ofMulti = Buffer.from(etag.slice(0, 32), 'hex');
    expect(answer.headers.etag).toBe(etagOf([ofMulti, md5(large), md5('first ')]));
    const expected = Buffer.concat([...parts, large, Buffer.from('first ')]);
    expect((await get('all')).body.equals(expected)).toBe(true);
    const first = await get('all', '?partNumber=1');
    expect(first.body.length, 'it has no parts').toBe(expected.length);
    expect(first.headers['x-amz-mp-parts-count']).toBe('1');
  });

  test('CRCs are combined', async () => {
    for (const key of ['a', 'b']) {
      const value = toBase64(crcOf('CRC32', Buffer.from(key)));
      await api.put(bucket, `crc ${key}`, key, { 'x-amz-checksum-crc32': value });
    }
    const value = toBase64(crcOf('CRC32', Buffer.from('ab')));
    const expected = { 'x-amz-checksum-crc32': value, 'x-amz-checksum-type': 'FULL_OBJECT' };
    expect((await compose('crc', ['crc a', 'crc b'])).headers).toMatchObject(expected);
    expect((await get('crc')).headers).toMatchObject(expected);
    expect((await compose('none', ['crc a', 'one'])).headers).not.toHaveProperty('x-amz-checksum-crc32');
  });
});

describe('service 2.7, the ComposeRequest', () => {
  test('a Component’s Key; its version ID, in either spelling, else the latest version; the answer names the new one', async () => {
    const versioned = await makeVersionedBucket(api);
    const put = (text: string) =>
      api.send({ method: 'PUT', path: pathOf(versioned, 'k'), body: Buffer.from(text) });
    const versionId = String((await put('old')).headers['x-amz-version-id']);
    await put('new');
    const parts = [{ key: 'k', versionId }, 'k', { key: 'k', versionId, element: 'VersionID' }];
    const answer = await compose('k', parts, {}, versioned);
    expectStatus(answer, 200);
    expect(answer.headers['x-amz-version-id']).toMatch(/^[\w-]{32}$/);
    expect((await get('k', '', versioned)).body.toString()).toBe('oldnewold');
    expect((await get('k', `?versionId=${versionId}`, versioned)).body.toString()).toBe('old');
    const marker = await api.send({ method: 'DELETE', path: pathOf(versioned, 'k') });
    expectError(await compose('x', ['k'], {}, versioned), { status: 404, code: 'NoSuchKey' });
    const markerId = String(marker.headers['x-amz-version-id']);
    expectError(await compose('x', [{ key: 'k', versionId: markerId }], {}, versioned), {
      status: 400,
      code: 'InvalidRequest',
    });
    const unknown = { key: 'k', versionId: 'A'.repeat(32) };
    expectError(await compose('x', [unknown], {}, versioned), { status: 404, code: 'NoSuchVersion' });
  });
});

describe('service 4.2, compose: refused, and the target stays as it was', () => {
  const refused = async (answer: ReturnType<typeof compose>, status: number, code: ErrorCode) => {
    const before = await textOf('two');
    expectError(await answer, { status, code });
    expect(await textOf('two')).toBe(before);
  };

  test.each([
    ['no XML', 'ComposeRequest'],
    ['an empty body', ''],
    ['another root', '<Compose><Component><Key>one</Key></Component></Compose>'],
    ['a component without key', '<ComposeRequest><Component/></ComposeRequest>'],
    ['an empty key', documentOf([''])],
    ['an unknown element', documentOf([{ key: 'one', more: '<Generation>1</Generation>' }])],
    ['something beside components', '<ComposeRequest><Part/></ComposeRequest>'],
    ['two version ids', documentOf([{ key: 'one', versionId: 'null', more: '<VersionID>null</VersionID>' }])],
    ['a condition that is none', documentOf([{ key: 'one', more: '<IfMatch></IfMatch>' }])],
  ])('%s: MalformedXML', (_name, body) => refused(send('two', body), 400, 'MalformedXML'));

  test('compose rule 1: a caller without s3:PutObject on the bucket, whatever the body says', async () => {
    const stranger = await api.makeAccount();
    const path = `${pathOf(bucket, 'two')}?compose`;
    for (const text of [documentOf(['one']), 'ComposeRequest', ''])
      await refused(
        api.send({ method: 'PUT', path, body: Buffer.from(text) }, stranger),
        403,
        'AccessDenied',
      );
    await refused(api.sendAnonymous({ method: 'PUT', path }), 403, 'AccessDenied');
  });

  test('compose rule 2: a component of another bucket, however it is named', async () => {
    const other = await api.makeBucket();
    await api.put(other, 'elsewhere', 'in another bucket');
    for (const key of ['elsewhere', `/${other}/elsewhere`, `${other}/elsewhere`])
      await refused(compose('two', ['one', key]), 404, 'NoSuchKey');
  });

  test('compose rule 3, service 8: more than 32 original data objects, however they come; or none', async () => {
    await refused(send('two', '<ComposeRequest/>'), 400, 'InvalidRequest');
    const most = Array.from({ length: 32 }, () => 'one');
    await refused(compose('two', [...most, 'one']), 400, 'InvalidRequest');
    expect((await compose('most', most)).headers.etag).toMatch(/-32"$/);
    await refused(compose('two', ['most', 'one']), 400, 'InvalidRequest');
  });

  test('a huge request', () =>
    refused(send('two', documentOf(['x'.repeat(300_000)])), 400, 'MaxMessageLengthExceeded'));

  test('a body that does not match its digest', () =>
    refused(
      send('two', documentOf(['one']), { 'content-md5': md5('other').toString('base64') }),
      400,
      'BadDigest',
    ));

  test('a missing component', async () => {
    await refused(compose('two', ['one', 'missing']), 404, 'NoSuchKey');
    await refused(compose('two', ['x'.repeat(1025)]), 400, 'KeyTooLongError');
    await refused(compose('two', [{ key: 'one', versionId: 'none' }]), 404, 'NoSuchVersion');
  });

  test('conditions on a component name it (extensions 2.3)', async () => {
    const wrong = { key: 'one', more: `<IfMatch>"${'0'.repeat(32)}"</IfMatch>` };
    const answer = await compose('two', ['two', wrong]);
    expectError(answer, { status: 412, code: 'PreconditionFailed' });
    expect(answer.body.toString()).toContain('<Key>one</Key>');
    await refused(
      compose('two', [{ key: 'one', more: '<IfNoneMatch>*</IfNoneMatch>' }]),
      412,
      'PreconditionFailed',
    );
    const right = { key: 'one', more: `<IfMatch>"${md5('first ').toString('hex')}"</IfMatch>` };
    expectStatus(await compose('right', [right]), 200);
  });

  test('conditions on the target', async () => {
    await refused(compose('two', ['one'], { 'if-none-match': '*' }), 412, 'PreconditionFailed');
    await refused(compose('two', ['one'], { 'if-match': '"0"' }), 412, 'PreconditionFailed');
    await refused(compose('nowhere', ['one'], { 'if-match': '*' }), 404, 'NoSuchKey');
  });

  test('compose rule 5: keys of customers, of the request or of any component', async () => {
    const headers = { 'x-amz-server-side-encryption-customer-algorithm': 'AES256' };
    await refused(compose('two', ['one'], headers), 400, 'EncryptionNotAllowed');
    const own = keyHeaders(randomBytes(32));
    await api.put(bucket, 'secret', 'x', own);
    await refused(compose('two', ['secret', 'one']), 400, 'EncryptionNotAllowed');
    await refused(compose('two', ['one', 'secret']), 400, 'EncryptionNotAllowed');
    await refused(compose('two', ['secret'], own), 400, 'EncryptionNotAllowed');
  });

  test('the source of a copy', () =>
    refused(compose('two', ['one'], { 'x-amz-copy-source': `${bucket}/one` }), 400, 'InvalidArgument'));

  test('headers that cannot be stored', async () => {
    await refused(compose('two', ['one'], { 'x-amz-meta-a': 'x'.repeat(2100) }), 400, 'MetadataTooLarge');
    await refused(compose('two', ['one'], { 'x-amz-tagging': 'aws:a=b' }), 400, 'InvalidTag');
    await refused(compose('two', ['one'], { 'if-match': ' , ' }), 400, 'InvalidArgument');
  });

  test('another method, or another sub-resource beside it', async () => {
    const path = `${pathOf(bucket, 'two')}?compose`;
    expectError(await api.send({ method: 'GET', path }), { status: 405, code: 'MethodNotAllowed' });
    expectError(await api.send({ method: 'PUT', path: `${path}&append` }), {
      status: 400,
      code: 'InvalidArgument',
    });
  });
});

test('a token identifies the request whatever the order of its headers', async () => {
  const first = { 'x-svc-idempotency-token': 'in any order', 'x-amz-meta-a': '1', 'x-amz-meta-b': '2' };
  const other = { 'x-amz-meta-b': '2', 'x-amz-meta-a': '1', 'x-svc-idempotency-token': 'in any order' };
  const answer = await compose('ordered', ['one', 'two'], first);
  const again = await compose('ordered', ['one', 'two'], other);
  expectStatus(again, 200);
  expect(again.body).toEqual(answer.body);
});

test('a token: a repeated request gets the same answer and changes nothing', async () => {
  const headers = { 'x-svc-idempotency-token': 'compose once' };
  const first = await compose('token', ['one', 'two'], headers);
  await api.put(bucket, 'token', 'written since');
  const again = await compose('token', ['one', 'two'], headers);
  expect([again.status, again.headers.etag]).toEqual([200, first.headers.etag]);
  expect(await textOf('token')).toBe('written since');
  expectError(await compose('token', ['two'], headers), {
    status: 400,
    code: 'IdempotencyParameterMismatch',
  });
  const long = { 'x-wasabi-idempotency-token': 'x'.repeat(65) };
  expectError(await compose('token', ['two'], long), { status: 400, code: 'InvalidArgument' });
});

describe('a token whose components have changed', () => {
  const again = async (key: string, parts: readonly Part[], change: () => Promise<unknown>) => {
    const headers = { 'x-svc-idempotency-token': `composed ${key}` };
    const first = await compose(key, parts, headers);
    expectStatus(first, 200);
    await change();
    const second = await compose(key, parts, headers);
    expect([second.status, second.headers.etag]).toEqual([200, first.headers.etag]);
  };

  test('one was deleted', async () => {
    await api.put(bucket, 'source', 'source');
    await again('moved over', ['source'], () =>
      api.send({ method: 'DELETE', path: pathOf(bucket, 'source') }),
    );
  });

  test('the target was one, and has the maximum of originals, or another ETag', async () => {
    await compose(
      'grown',
      Array.from({ length: 20 }, () => 'one'),
    );
    await again('grown', ['grown', ...Array.from({ length: 12 }, () => 'two')], async () => {});
    const etag = await api.put(bucket, 'changed', 'a');
    await again('changed', [{ key: 'changed', more: `<IfMatch>"${etag}"</IfMatch>` }, 'one'], async () => {});
    expect(await textOf('changed')).toBe('afirst ');
  });
});
