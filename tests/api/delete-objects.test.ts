// DeleteObjects: a result for each key, a digest of the list, and every refusal, which deletes nothing.
import { createHash } from 'node:crypto';
import { DeleteObjectsCommand } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import type { Access } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

const md5 = (body: string) => createHash('md5').update(body).digest('base64');
const list = (inner: string) => `<Delete>${inner}</Delete>`;
const object = (key: string, more = '') => `<Object><Key>${key}</Key>${more}</Object>`;

function remove(body: string, headers: Record<string, string> = { 'content-md5': md5(body) }, as?: Access) {
  return api.send({ method: 'POST', path: `/${bucket}?delete`, body: Buffer.from(body), headers }, as);
}

/** What the answer says of each key: [element, key, code or version]. */
function resultsOf(answer: Awaited<ReturnType<typeof remove>>): string[][] {
  expectStatus(answer, 200);
  const root = xmlOf(answer);
  expect(root.name).toBe('DeleteResult');
  return root.children.map((child) =>
    [child.name, textOf(child, 'Key'), textOf(child, 'Code')].filter((text) => text !== undefined),
  );
}

test('keys are deleted, missing ones too, in the requested order', async () => {
  for (const key of ['a', 'b c', 'ä&<>']) await api.put(bucket, key, 'x');
  const answer = await remove(list(object('b c') + object('never') + object('ä&amp;&lt;&gt;')));
  expect(resultsOf(answer)).toEqual([
    ['Deleted', 'b c'],
    ['Deleted', 'never'],
    ['Deleted', 'ä&<>'],
  ]);
  const [first] = childrenOf(xmlOf(answer), 'Deleted');
  expect(first?.children.map(({ name }) => name)).toEqual(['Key']);
  expect(await api.keysOf(bucket)).toEqual(['a']);
});

test('quiet: only errors', async () => {
  await api.put(bucket, 'a', 'x');
  const answer = await remove(
    list(`<Quiet>true</Quiet>${object('a')}${object('b', '<VersionId>no</VersionId>')}`),
  );
  expect(resultsOf(answer)).toEqual([['Error', 'b', 'NoSuchVersion']]);
  expect(await api.keysOf(bucket)).toEqual([]);
});

test('versions: null exists, an empty id and an unknown one do not', async () => {
  for (const key of ['a', 'b', 'c']) await api.put(bucket, key, 'x');
  const answer = await remove(
    list(
      object('a', '<VersionId>null</VersionId>') +
        object('b', '<VersionId></VersionId>') +
        object('c', `<VersionId>${'A'.repeat(32)}</VersionId>`),
    ),
  );
  expect(resultsOf(answer)).toEqual([
    ['Deleted', 'a'],
    ['Error', 'b', 'NoSuchVersion'],
    ['Deleted', 'c'],
  ]);
  expect(await api.keysOf(bucket)).toEqual(['b', 'c']);
});

test('a key that is too long is an error of its own', async () => {
  await api.put(bucket, 'a', 'x');
  const answer = await remove(list(object('k'.repeat(1025)) + object('a')));
  expect(resultsOf(answer)).toEqual([
    ['Error', 'k'.repeat(1025), 'KeyTooLongError'],
    ['Deleted', 'a'],
  ]);
});

test('one thousand keys', async () => {
  const keys = Array.from({ length: 1000 }, (_, index) => `many/${index}`);
  await Promise.all(keys.slice(0, 50).map((key) => api.put(bucket, key, 'x')));
  const answer = await remove(list(keys.map((key) => object(key)).join('')));
  expect(resultsOf(answer)).toHaveLength(1000);
  expect(await api.keysOf(bucket)).toEqual([]);
});

test('the SDK, whose digest is a checksum', async () => {
  await api.put(bucket, 'a', 'x');
  const answer = await api.s3.send(
    new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: [{ Key: 'a' }, { Key: 'b' }] } }),
  );
  expect(answer.Deleted).toEqual([{ Key: 'a' }, { Key: 'b' }]);
  expect(answer.Errors).toBeUndefined();
});

ownServerTest('one line of the log for each key', async () => {
  await api.put(bucket, 'a', 'x');
  expectStatus(await remove(list(object('a') + object('b'))), 200);
  const line = api.server.logs().findLast(({ operation }) => operation === 'DeleteObjects');
  expect(line).toMatchObject({ bucket, status: 200 });
});

const BODY = list(object('a'));

test.each<[string, string, Record<string, string> | undefined, Parameters<typeof expectError>[1]]>([
  ['no digest', BODY, {}, { status: 400, code: 'InvalidRequest' }],
  ['the digest of another list', BODY, { 'content-md5': md5('x') }, { status: 400, code: 'BadDigest' }],
  ['another checksum', BODY, { 'x-amz-checksum-crc32': 'AAAAAA==' }, { status: 400, code: 'BadDigest' }],
  ['no body', '', undefined, { status: 400, code: 'MissingRequestBodyError' }],
  ['no XML', 'a', undefined, { status: 400, code: 'MalformedXML' }],
  ['an open element', '<Delete><Object>', undefined, { status: 400, code: 'MalformedXML' }],
  ['another root', '<Remove/>', undefined, { status: 400, code: 'MalformedXML' }],
  [
    'a document type',
    `<!DOCTYPE d [<!ENTITY e "a">]>${list(object('&e;'))}`,
    undefined,
    { status: 400, code: 'MalformedXML' },
  ],
  ['no object', list(''), undefined, { status: 400, code: 'MalformedXML' }],
  ['1001 objects', list(object('a').repeat(1001)), undefined, { status: 400, code: 'MalformedXML' }],
  ['an empty key', list(object('') + object('a')), undefined, { status: 400, code: 'MalformedXML' }],
  ['an ETag that is none', list(object('a', '<ETag/>')), undefined, { status: 400, code: 'MalformedXML' }],
  ['a negative size', list(object('a', '<Size>-1</Size>')), undefined, { status: 400, code: 'MalformedXML' }],
])('%s is refused, and nothing goes', async (_name, body, headers, expected) => {
  await api.put(bucket, 'a', 'x');
  expectError(await remove(body, headers), expected);
  expect(await api.keysOf(bucket)).toEqual(['a']);
});

test('the error names the missing digest', async () => {
  const answer = await remove(BODY, {});
  expect(textOf(xmlOf(answer), 'Message')).toContain('Content-MD5');
});

test.each([
  ['a good list', BODY, { 'content-md5': md5(BODY) }],
  ['no digest', BODY, {}],
  ['no body', '', undefined],
  ['no XML', 'a', undefined],
])('%s of who may delete nothing here is refused unread', async (_name, body, headers) => {
  await api.put(bucket, 'a', 'x');
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await remove(body, headers, await api.makeAccount()), denied);
  expectError(
    await api.sendAnonymous({ method: 'POST', path: `/${bucket}?delete`, ...(headers && { headers }) }),
    denied,
  );
  expect(await api.keysOf(bucket)).toEqual(['a']);
});
