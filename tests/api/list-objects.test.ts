// ListObjects, version 1.
import { beforeAll, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { completeUpload } from '../support/servers/multipart.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
/** In byte order. */
const KEYS = ['A', 'a', 'a b+c', 'a/', 'a/1', 'a/2', 'a/b/3', 'b/4', 'b/5', 'é', '日', '😀'];
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await Promise.all(KEYS.map((key) => api.put(bucket, key, key)));
});

async function list(query = '', where = bucket) {
  const answer = await api.send({ method: 'GET', path: `/${where}${query === '' ? '' : `?${query}`}` });
  expectStatus(answer, 200);
  const root = xmlOf(answer);
  return {
    root,
    keys: childrenOf(root, 'Contents').map((entry) => textOf(entry, 'Key')),
    prefixes: childrenOf(root, 'CommonPrefixes').map((entry) => textOf(entry, 'Prefix')),
    fields: fieldsOf(answer),
  };
}

test('all keys in byte order, with all of their fields', async () => {
  const { root, keys, fields } = await list();
  expect(root.name).toBe('ListBucketResult');
  expect(keys).toEqual(KEYS);
  expect(fields).toEqual({ Name: bucket, Prefix: '', Marker: '', MaxKeys: '1000', IsTruncated: 'false' });
  const [entry] = childrenOf(root, 'Contents');
  expect(entry?.children.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['Key', 'LastModified', 'ETag', 'Size', 'Owner', 'StorageClass']),
  );
  const of = (name: string) => entry && textOf(entry, name);
  expect(of('ETag')).toBe('"7fc56270e7a70fa81a5935b72eacbe29"');
  expect(of('Size')).toBe('1');
  expect(of('StorageClass')).toBe('STANDARD');
  expect(of('LastModified')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
  const owner = entry && childrenOf(entry, 'Owner')[0];
  expect(owner && textOf(owner, 'ID')).toMatch(/^[0-9a-f]{64}$/);
  expect(owner && textOf(owner, 'DisplayName')).toBe('root');
});

test('an empty bucket', async () => {
  expect(await list('', await api.makeBucket())).toMatchObject({
    keys: [],
    fields: { IsTruncated: 'false' },
  });
});

test.each([
  ['prefix=a', ['a', 'a b+c', 'a/', 'a/1', 'a/2', 'a/b/3'], []],
  ['prefix=a%2F', ['a/', 'a/1', 'a/2', 'a/b/3'], []],
  ['prefix=%F0%9F%98%80', ['😀'], []],
  ['prefix=none', [], []],
  ['delimiter=%2F', ['A', 'a', 'a b+c', 'é', '日', '😀'], ['a/', 'b/']],
  ['delimiter=%2F&prefix=a%2F', ['a/', 'a/1', 'a/2'], ['a/b/']],
  ['delimiter=%2F&prefix=a', ['a', 'a b+c'], ['a/']],
  ['delimiter=%2F1&prefix=a', ['a', 'a b+c', 'a/', 'a/2', 'a/b/3'], ['a/1']],
  ['delimiter=', KEYS, []],
  ['marker=a%2F1', KEYS.slice(5), []],
  ['marker=zzz', ['é', '日', '😀'], []],
  ['marker=%F0%9F%98%80', [], []],
  ['marker=a%2F&delimiter=%2F', ['é', '日', '😀'], ['b/']],
  ['marker=a&prefix=b', ['b/4', 'b/5'], []],
  ['prefix=', KEYS, []],
  ['marker=a%2F1&delimiter=%2F', ['é', '日', '😀'], ['b/']],
  ['marker=a&delimiter=%2F', ['a b+c', 'é', '日', '😀'], ['a/', 'b/']],
  ['marker=a%2Fb%2F&prefix=a%2F&delimiter=%2F', [], []],
  ['marker=zzz&prefix=a', [], []],
  ['continuation-token=x&start-after=b', KEYS, []],
  ['list-typo=2', KEYS, []],
])('%s', async (query, keys, prefixes) => {
  expect(await list(query)).toMatchObject({ keys, prefixes });
});

test.each([1, 2, 3, 5, 12])('pages of %i, the last key being the marker', async (max) => {
  const found: (string | undefined)[] = [];
  for (let isTruncated = true; isTruncated; ) {
    const marker = encodeURIComponent(found.at(-1) ?? '');
    const { keys, fields } = await list(`max-keys=${max}&marker=${marker}`);
    expect(keys.length).toBeLessThanOrEqual(max);
    expect(fields).not.toHaveProperty('NextMarker');
    found.push(...keys);
    isTruncated = fields.IsTruncated === 'true';
  }
  expect(found).toEqual(KEYS);
});

test.each([1, 2, 3])('pages of %i with a delimiter, by NextMarker', async (max) => {
  const found: (string | undefined)[] = [];
  let marker = '';
  for (let isTruncated = true; isTruncated; ) {
    const page = await list(`delimiter=%2F&max-keys=${max}&marker=${encodeURIComponent(marker)}`);
    expect(page.keys.length + page.prefixes.length).toBeLessThanOrEqual(max);
    found.push(...page.keys, ...page.prefixes);
    isTruncated = page.fields.IsTruncated === 'true';
    expect('NextMarker' in page.fields).toBe(isTruncated);
    marker = page.fields.NextMarker ?? '';
  }
  expect(found.sort()).toEqual(['A', 'a', 'a b+c', 'a/', 'b/', 'é', '日', '😀'].sort());
});

test('max-keys: zero, and a thousand at most', async () => {
  expect(await list('max-keys=0')).toMatchObject({
    keys: [],
    fields: { MaxKeys: '0', IsTruncated: 'false' },
  });
  expect((await list('max-keys=5000')).fields.MaxKeys).toBe('1000');
});

test('s3-behaviour 36: encoding-type=url encodes names and what the request gave', async () => {
  const { keys, fields } = await list('encoding-type=url&delimiter=%20&prefix=a%20b%2B&marker=a%20');
  expect(keys).toEqual(['a%20b%2Bc']);
  expect(fields).toMatchObject({
    EncodingType: 'url',
    Delimiter: '%20',
    Prefix: 'a%20b%2B',
    Marker: 'a%20',
  });
  const grouped = await list('encoding-type=url&delimiter=%2B&max-keys=3');
  expect(grouped.prefixes).toEqual(['a%20b%2B']);
  expect(grouped.fields.NextMarker).toBe('a%20b%2B');
});

test('s3-behaviour 36: keys that XML cannot hold unencoded', async () => {
  const other = await api.makeBucket();
  const keys = ['\u0001&<>"', 'a\rb\nc', 'tab\t'];
  for (const key of keys) await api.put(other, key, 'x');
  expect((await list('', other)).keys).toEqual(keys);
  expect((await list('encoding-type=url', other)).keys).toEqual(['%01%26%3C%3E%22', 'a%0Db%0Ac', 'tab%09']);
});

test('checksums and the ETag of parts', async () => {
  const other = await api.makeBucket();
  await api.put(other, 'a', '0123456789', { 'x-amz-checksum-crc32': 'poTHxg==' });
  await completeUpload(api, { bucket: other, key: 'b', parts: [Buffer.from('x')] });
  const [summed, parts] = childrenOf((await list('', other)).root, 'Contents');
  expect(summed && textOf(summed, 'ChecksumAlgorithm')).toBe('CRC32');
  expect(summed && textOf(summed, 'ChecksumType')).toBe('FULL_OBJECT');
  expect(parts && textOf(parts, 'ETag')).toMatch(/^"[0-9a-f]{32}-1"$/);
});

test('written objects are listed, deleted ones are not', async () => {
  const other = await api.makeBucket();
  for (let round = 0; round < 20; round++) {
    await api.put(other, `k${round}`, 'x');
    expect((await list('', other)).keys).toContain(`k${round}`);
    expectStatus(await api.send({ method: 'DELETE', path: `/${other}/k${round}` }), 204);
    expect((await list('', other)).keys).toEqual([]);
  }
});

test.each([
  ['max-keys=x', 'max-keys', 'x'],
  ['max-keys=-1', 'max-keys', '-1'],
  ['max-keys=2147483648', 'max-keys', '2147483648'],
  ['max-keys=%E2%91%A0', 'max-keys', '①'],
  ['encoding-type=base64', 'encoding-type', 'base64'],
  ['encoding-type=', 'encoding-type', ''],
  ['list-type=1', 'list-type', '1'],
  ['list-type=', 'list-type', ''],
])('%s is refused', async (query, ArgumentName, ArgumentValue) => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?${query}` });
  expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName, ArgumentValue });
});

test.each(['', '&list-type=2', '&versions'])(
  'optional attributes (%s): none that is not known',
  async (query) => {
    const ask = (attributes: string) =>
      api.send({
        method: 'GET',
        path: `/${bucket}?prefix=a${query}`,
        headers: { 'x-amz-optional-object-attributes': attributes },
      });
    const answer = await ask('RestoreStatus');
    expectStatus(answer, 200);
    expect(answer.body.toString()).not.toContain('RestoreStatus');
    expectError(await ask('RestoreStatus,Colour'), {
      status: 400,
      code: 'InvalidArgument',
      ArgumentName: 'x-amz-optional-object-attributes',
    });
  },
);

test('only the owner may list, and only an existing bucket', async () => {
  const path = `/${bucket}`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  const nowhere = await api.send({ method: 'GET', path: '/no-such-bucket-here' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket', BucketName: 'no-such-bucket-here' });
});
