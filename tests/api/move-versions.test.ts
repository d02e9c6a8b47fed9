// What goes along when a key is renamed (service 4.2; extensions 2.1, 2.4): versions and delete markers in every state
// of versioning, headers, tags, checksums and customers' keys; and uploads under way, which do not. That the count of appends
// goes along is in append-object.test.ts.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { toBase64 } from '../../src/base/bytes/bytes.ts';
import { crcOf } from '../../src/base/crypto/crc.ts';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { keyAnswer, keyHeaders } from '../support/servers/customer-keys.ts';
import { beginUpload, putPart, sendComplete } from '../support/servers/multipart.ts';
import { pathOf, type RawAnswer } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { tagsOf } from '../support/servers/tagging.ts';
import { listVersions, setVersioning, versionOf, versionsIn } from '../support/servers/versions.ts';

const MORE_THAN_A_SECOND_MS = 1100;

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

type Headers = Record<string, string>;

const move = (from: string, destination: string, headers: Headers = {}) =>
  api.send({ method: 'MOVE', path: pathOf(bucket, from), headers: { ...headers, destination } });
const read = (key: string, headers: Headers = {}, query = '') =>
  api.send({ method: 'GET', path: pathOf(bucket, key) + query, headers });

/** Of each entry its keys, and its version id or error, in one line; and MoveCount behind them. */
function linesOf(answer: RawAnswer): string[] {
  const root = xmlOf(answer);
  expect(root.name).toBe('MoveObjectResult');
  const entries = childrenOf(root, 'MoveObject').map((entry) => {
    const [error = entry] = childrenOf(entry, 'Error');
    const keys = [textOf(entry, 'SourceKey'), textOf(entry, 'DestinationKey')];
    return [...keys, textOf(entry, 'VersionId'), textOf(error, 'Code')]
      .filter((text) => text !== undefined)
      .join(' ');
  });
  return [...entries, textOf(root, 'MoveCount') ?? ''];
}

/** Each version in a line, as they are listed: "*" is the latest of its key, "-" a delete marker. */
async function versions(): Promise<string[]> {
  return versionsIn(await listVersions(api, bucket)).map(
    ({ kind, key, versionId, isLatest }) =>
      `${key} ${versionId}${isLatest ? '*' : ''}${kind === 'DeleteMarker' ? '-' : ''}`,
  );
}

/** The id of the new version. */
async function put(key: string, body = ''): Promise<string> {
  const answer = await api.send({ method: 'PUT', path: pathOf(bucket, key), body: Buffer.from(body) });
  expectStatus(answer, 200);
  return versionOf(answer);
}

/** The id of the delete marker. */
async function remove(key: string): Promise<string> {
  const answer = await api.send({ method: 'DELETE', path: pathOf(bucket, key) });
  expectStatus(answer, 204);
  return versionOf(answer);
}

async function bodyOf(key: string, versionId?: string): Promise<string> {
  const answer = await read(key, {}, versionId === undefined ? '' : `?versionId=${versionId}`);
  expectStatus(answer, 200);
  return answer.body.toString();
}

describe('service 4.2: a bucket that keeps versions', () => {
  beforeEach(() => setVersioning(api, bucket, 'Enabled'));

  test('MOVE rule 3: all versions of the very key, none of those that begin with it', async () => {
    const [first, second] = [await put('a'), await put('a')];
    const others = [`a/x ${await put('a/x')}*`, `ab ${await put('ab')}*`];
    const answer = await move('a', 'b', { 'x-svc-prefix': 'false', overwrite: 'false' });
    expectStatus(answer, 200);
    expect(linesOf(answer)).toEqual([`a b ${second}`, `a b ${first}`, '2']);
    expect(await versions()).toEqual([...others, `b ${second}*`, `b ${first}`]);
  });

  test('MOVE rule 4: the older versions stay below', async () => {
    const [older, newest, own] = [await put('a', '1'), await put('a', '2'), await put('b', '3')];
    const before = await versions();
    const refused = await move('a', 'b');
    expectStatus(refused, 409);
    expect(linesOf(refused)).toEqual(['a b ObjectAlreadyExists', '0']);
    expect(await versions()).toEqual(before);
    const answer = await move('a', 'b', { overwrite: 'true' });
    expectStatus(answer, 200);
    expect(linesOf(answer)).toEqual([`a b ${newest}`, `a b ${older}`, '2']);
    expect(await versions()).toEqual([`b ${newest}*`, `b ${older}`, `b ${own}`]);
    expect(await bodyOf('b')).toBe('2');
  });

  test('a key under a delete marker moves with it, and one under it is free', async () => {
    const first = await put('a', '1');
    const marker = await remove('a');
    expectStatus(await move('a', 'b'), 200);
    expect(await versions()).toEqual([`b ${marker}*-`, `b ${first}`]);
    const second = await put('c', '2');
    expectStatus(await move('c', 'b'), 200);
    expect(await versions()).toEqual([`b ${second}*`, `b ${marker}-`, `b ${first}`]);
    expect(await bodyOf('b')).toBe('2');
  });

  test('MOVE rule 5: of a prefix too, versions and delete markers have an entry each', async () => {
    const [older, newest, below] = [await put('a/1'), await put('a/1'), await put('a/2')];
    const marker = await remove('a/2');
    const before = await versions();
    const answer = await move('a/', 'b/', { 'x-svc-prefix': 'true' });
    expectStatus(answer, 200);
    expect(linesOf(answer)).toEqual([
      `a/1 b/1 ${newest}`,
      `a/1 b/1 ${older}`,
      `a/2 b/2 ${marker}`,
      `a/2 b/2 ${below}`,
      '4',
    ]);
    expect(await versions()).toEqual(before.map((line) => line.replace('a/', 'b/')));
  });

  test('MOVE rule 5: many versions under long keys, the same document, sent as it is made', async () => {
    const [from, to] = [`a/${'&'.repeat(1000)}`, `b/${'"'.repeat(1000)}`];
    const ids: string[] = [];
    for (let at = 0; at < 30; at++) ids.unshift(await put(from));
    const escaped = [from.replaceAll('&', '&amp;'), to.replaceAll('"', '&quot;')] as const;
    const document = ([source, destination]: readonly [string, string], prefixes = '') =>
      `<?xml version="1.0" encoding="UTF-8"?>\n<MoveObjectResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${prefixes}${ids
        .map(
          (id) =>
            `<MoveObject><SourceKey>${source}</SourceKey><DestinationKey>${destination}</DestinationKey><VersionId>${id}</VersionId></MoveObject>`,
        )
        .join('')}<MoveCount>30</MoveCount></MoveObjectResult>`;
    const token = { 'x-svc-idempotency-token': 'once' };
    for (const answer of [await move(from, to, token), await move(from, to, token)]) {
      expectStatus(answer, 200);
      expect(answer.headers).toMatchObject({
        'content-type': 'application/xml',
        'transfer-encoding': 'chunked',
      });
      expect(answer.body.toString()).toBe(document(escaped));
    }
    const quiet = await move(to, from, { 'x-svc-quiet': 'true' });
    expect(quiet.headers['content-length']).toBe(String(quiet.body.length));
    expect(linesOf(quiet)).toEqual(['30']);
    const prefixes = '<SourcePrefix>a/</SourcePrefix><DestinationPrefix>c/</DestinationPrefix>';
    const inPrefix = await move('a/', 'c/', { 'x-svc-prefix': 'true' });
    expect(inPrefix.body.toString()).toBe(document([escaped[0], escaped[0].replace('a/', 'c/')], prefixes));
  });
});

describe('service 4.2: null versions', () => {
  test('MOVE rule 4, suspended: where Overwrite says so null replaces null, and other versions stay', async () => {
    await setVersioning(api, bucket, 'Enabled');
    const kept = await put('b', 'kept');
    await setVersioning(api, bucket, 'Suspended');
    expect([await put('a', 'moved'), await put('b', 'replaced')]).toEqual(['null', 'null']);
    const refused = await move('a', 'b');
    expectStatus(refused, 409);
    expect(linesOf(refused)).toEqual(['a b ObjectAlreadyExists', '0']);
    expect(await versions()).toEqual(['a null*', 'b null*', `b ${kept}`]);
    const answer = await move('a', 'b', { overwrite: 'true' });
    expectStatus(answer, 200);
    expect(linesOf(answer)).toEqual(['a b null', '1']);
    expect(await versions()).toEqual(['b null*', `b ${kept}`]);
    expect([await bodyOf('b'), await bodyOf('b', kept)]).toEqual(['moved', 'kept']);
  });

  test('MOVE rule 4, from before versions were kept: one that is there stays, whatever Overwrite says', async () => {
    await put('a', 'moved');
    await put('b', 'replaced');
    await setVersioning(api, bucket, 'Enabled');
    const [newer, own] = [await put('a', 'newer'), await put('b', 'own')];
    expectStatus(await move('a', 'b'), 409);
    expect(await versions()).toEqual([`a ${newer}*`, 'a null', `b ${own}*`, 'b null']);
    const refused = await move('a', 'b', { overwrite: 'true' });
    expectStatus(refused, 409);
    expect(linesOf(refused)).toEqual(['a b ObjectAlreadyExists', '0']);
    expect(await bodyOf('b', 'null')).toBe('replaced');
    // Its deletion has a right of its own.
    expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}/b?versionId=null` }), 204);
    const answer = await move('a', 'b', { overwrite: 'true' });
    expectStatus(answer, 200);
    expect(linesOf(answer)).toEqual([`a b ${newer}`, 'a b null', '2']);
    expect(await versions()).toEqual([`b ${newer}*`, 'b null', `b ${own}`]);
    const bodies = [await bodyOf('b'), await bodyOf('b', 'null'), await bodyOf('b', own)];
    expect(bodies).toEqual(['newer', 'moved', 'own']);
  });

  test('one below a delete marker is not replaced', async () => {
    await put('a', 'moved');
    await put('b', 'replaced');
    await setVersioning(api, bucket, 'Enabled');
    const marker = await remove('b');
    expectStatus(await move('a', 'b'), 409);
    expect(await versions()).toEqual(['a null*', `b ${marker}*-`, 'b null']);
    expectStatus(await move('a', 'b', { overwrite: 'true' }), 409);
    await setVersioning(api, bucket, 'Suspended');
    expectStatus(await move('a', 'b'), 409);
    expectStatus(await move('a', 'b', { overwrite: 'true' }), 200);
    expect(await versions()).toEqual(['b null*', `b ${marker}-`]);
    expect(await bodyOf('b')).toBe('moved');
  });
});

test('extensions 2.1: metadata, tags, ETag, checksum and Last-Modified stay', async () => {
  const kept = {
    'content-type': 'text/x',
    'cache-control': 'no-store',
    'x-amz-meta-colour': 'blue',
    'x-amz-checksum-crc32': toBase64(crcOf('CRC32', Buffer.from('body'))),
  };
  const etag = await api.put(bucket, 'a', 'body', { ...kept, 'x-amz-tagging': 'colour=red&size=' });
  const headersOf = async (key: string) => {
    const answer = await read(key, { 'x-amz-checksum-mode': 'ENABLED' });
    expectStatus(answer, 200);
    const { date: _, 'x-amz-request-id': __, 'x-amz-id-2': ___, ...headers } = answer.headers;
    return headers;
  };
  const before = await headersOf('a');
  expect(before).toMatchObject({ ...kept, etag: `"${etag}"`, 'x-amz-tagging-count': '2' });
  expect(before).toHaveProperty('last-modified');
  await sleep(MORE_THAN_A_SECOND_MS);
  expectStatus(await move('a', 'b'), 200);
  expect(await headersOf('b')).toEqual(before);
  expect(await tagsOf(api, { bucket, key: 'b' })).toEqual([
    ['colour', 'red'],
    ['size', ''],
  ]);
});

test('an object under a customer’s key moves without it, and is read with it', async () => {
  const key = randomBytes(32);
  await api.put(bucket, 'a', 'secret', keyHeaders(key));
  expectStatus(await move('a', 'b'), 200);
  expect(await api.keysOf(bucket)).toEqual(['b']);
  const answer = await read('b', keyHeaders(key));
  expectStatus(answer, 200);
  expect(answer.headers).toMatchObject(keyAnswer(key));
  expect(answer.body.toString()).toBe('secret');
  for (const headers of [{}, keyHeaders(randomBytes(32))])
    expectError(await read('b', headers), { status: 400, code: 'InvalidRequest' });
});

test('an upload under way stays under its key', async () => {
  await put('a', 'moved');
  const upload = await beginUpload(api, { bucket, key: 'a' });
  const part = {
    partNumber: 1,
    etag: await putPart(api, upload, { partNumber: 1, body: Buffer.from('new') }),
  };
  expectStatus(await move('a', 'b'), 200);
  expectError(await sendComplete(api, { ...upload, key: 'b' }, [part]), {
    status: 404,
    code: 'NoSuchUpload',
  });
  expectStatus(await sendComplete(api, upload, [part]), 200);
  expect([await bodyOf('a'), await bodyOf('b')]).toEqual(['new', 'moved']);
});
