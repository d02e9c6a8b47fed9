// ListObjectsV2: tokens, owners on request, counts. Prefixes, delimiters and encodings are version 1's as well.
import { ListObjectsV2Command, paginateListObjectsV2 } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
const KEYS = ['a b', 'dir/1', 'dir/2', 'dir/sub/3', 'x&y', 'ö'];
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await Promise.all(KEYS.map((key) => api.put(bucket, key, key)));
});

async function list(query = '') {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?${query}${query && '&'}list-type=2` });
  expectStatus(answer, 200);
  const root = xmlOf(answer);
  return {
    root,
    keys: childrenOf(root, 'Contents').map((entry) => textOf(entry, 'Key')),
    prefixes: childrenOf(root, 'CommonPrefixes').map((entry) => textOf(entry, 'Prefix')),
    fields: fieldsOf(answer),
  };
}

test('all keys, without owners', async () => {
  const { root, keys, fields } = await list();
  expect(root.name).toBe('ListBucketResult');
  expect(keys).toEqual(KEYS);
  expect(fields).toEqual({ Name: bucket, Prefix: '', KeyCount: '6', MaxKeys: '1000', IsTruncated: 'false' });
  expect(childrenOf(root, 'Contents').some((entry) => childrenOf(entry, 'Owner').length > 0)).toBe(false);
});

test('owners on request', async () => {
  const { root } = await list('fetch-owner=true');
  for (const entry of childrenOf(root, 'Contents')) {
    const [owner] = childrenOf(entry, 'Owner');
    expect(owner && textOf(owner, 'DisplayName')).toBe('root');
  }
});

test('common prefixes count as keys', async () => {
  const { keys, prefixes, fields } = await list('delimiter=%2F');
  expect(keys).toEqual(['a b', 'x&y', 'ö']);
  expect(prefixes).toEqual(['dir/']);
  expect(fields).toMatchObject({ KeyCount: '4', Delimiter: '/' });
});

test.each([1, 2, 4, 6])('pages of %i by token', async (max) => {
  const found: (string | undefined)[] = [];
  let token = '';
  for (;;) {
    const given = token === '' ? '' : `&continuation-token=${encodeURIComponent(token)}`;
    const { keys, fields } = await list(`max-keys=${max}${given}`);
    expect(fields.KeyCount).toBe(String(keys.length));
    if (token !== '') expect(fields.ContinuationToken).toBe(token);
    found.push(...keys);
    token = fields.NextContinuationToken ?? '';
    expect(fields.IsTruncated).toBe(String(token !== ''));
    if (token === '') break;
  }
  expect(found).toEqual(KEYS);
});

test('start-after, over which a token has precedence', async () => {
  const after = await list('start-after=dir%2F1');
  expect(after.keys).toEqual(KEYS.slice(2));
  expect(after.fields.StartAfter).toBe('dir/1');
  const page = await list('max-keys=5');
  const token = encodeURIComponent(page.fields.NextContinuationToken ?? '');
  expect((await list(`start-after=a&continuation-token=${token}`)).keys).toEqual(['ö']);
});

test('s3-behaviour 37: an empty token is accepted and returned', async () => {
  const { keys, fields } = await list('continuation-token=');
  expect(keys).toEqual(KEYS);
  expect(fields.ContinuationToken).toBe('');
  expect((await list('continuation-token=&prefix=dir%2F')).keys).toEqual(
    KEYS.filter((key) => key.startsWith('dir/')),
  );
});

test('s3-behaviour 36: encoding-type=url', async () => {
  const { keys, fields } = await list('encoding-type=url&start-after=a%20&prefix=a%20');
  expect(keys).toEqual(['a%20b']);
  expect(fields).toMatchObject({ EncodingType: 'url', StartAfter: 'a%20', Prefix: 'a%20' });
});

test('max-keys=0', async () => {
  expect(await list('max-keys=0')).toMatchObject({
    keys: [],
    fields: { KeyCount: '0', MaxKeys: '0', IsTruncated: 'false' },
  });
});

test('a token continues in another listing of the bucket, if that has keys behind it', async () => {
  const { fields } = await list('max-keys=2');
  const token = encodeURIComponent(fields.NextContinuationToken ?? '');
  expect((await list(`prefix=dir%2F&continuation-token=${token}`)).keys).toEqual(['dir/2', 'dir/sub/3']);
  expect((await list(`prefix=a&continuation-token=${token}`)).keys).toEqual([]);
  expect((await list(`delimiter=%2F&continuation-token=${token}`)).prefixes).toEqual([]);
});

test('elements in the order in which AWS gives them', async () => {
  const query = 'prefix=&delimiter=%2F&encoding-type=url&fetch-owner=true&start-after=A';
  const { fields } = await list(`${query}&max-keys=1`);
  const token = fields.NextContinuationToken ?? '';
  const { root } = await list(`${query}&max-keys=2&continuation-token=${token}`);
  expect(root.children.map(({ name }) => name)).toEqual([
    ...['Name', 'Prefix', 'ContinuationToken', 'NextContinuationToken', 'StartAfter', 'KeyCount', 'MaxKeys'],
    ...['Delimiter', 'EncodingType', 'IsTruncated', 'Contents', 'CommonPrefixes'],
  ]);
});

test('the SDK', async () => {
  const found: (string | undefined)[] = [];
  for await (const page of paginateListObjectsV2({ client: api.s3, pageSize: 2 }, { Bucket: bucket })) {
    found.push(...(page.Contents ?? []).map(({ Key }) => Key));
  }
  expect(found).toEqual(KEYS);
  const folders = await api.s3.send(
    new ListObjectsV2Command({ Bucket: bucket, Delimiter: '/', EncodingType: 'url' }),
  );
  expect(folders.CommonPrefixes).toEqual([{ Prefix: 'dir/' }]);
});

test('a thousand keys in a page, and the rest in the next', { timeout: 60_000 }, async () => {
  const other = await api.makeBucket();
  const keys = Array.from({ length: 1050 }, (_, index) => `k${String(index).padStart(4, '0')}`);
  for (let at = 0; at < keys.length; at += 50)
    await Promise.all(keys.slice(at, at + 50).map((key) => api.put(other, key, '')));
  const first = await api.s3.send(new ListObjectsV2Command({ Bucket: other }));
  expect(first).toMatchObject({ KeyCount: 1000, IsTruncated: true });
  const next = { Bucket: other, ContinuationToken: first.NextContinuationToken };
  const second = await api.s3.send(new ListObjectsV2Command(next));
  expect(second).toMatchObject({ KeyCount: 50, IsTruncated: false });
  expect([...(first.Contents ?? []), ...(second.Contents ?? [])].map(({ Key }) => Key)).toEqual(keys);
});

test.each([
  ['max-keys=x', 'max-keys', 'x'],
  ['max-keys=-5', 'max-keys', '-5'],
  ['encoding-type=gzip', 'encoding-type', 'gzip'],
  ['encoding-type=', 'encoding-type', ''],
  ['continuation-token=&start-after=a', 'continuation-token', ''],
  ['continuation-token=nonsense', 'continuation-token', 'nonsense'],
  ['continuation-token=1', 'continuation-token', '1'],
  ['continuation-token=1%2F%2B', 'continuation-token', '1/+'],
])('%s is refused', async (query, ArgumentName, ArgumentValue) => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?${query}&list-type=2` });
  expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName, ArgumentValue });
});

test('only the owner may list', async () => {
  const path = `/${bucket}?list-type=2`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
});
