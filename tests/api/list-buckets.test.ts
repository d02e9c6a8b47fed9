// ListBuckets.
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { childOf, childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import {
  type Account,
  expectError,
  expectStatus,
  fieldsOf,
  freshWord,
  useApi,
  xmlOf,
} from '../support/servers/s3-api.ts';

const api = useApi();
const run = freshWord();
const NAMES = [`alpha-${run}`, `beta-${run}-1`, `beta-${run}-2`, `gamma-${run}`];
let account: Account;
beforeAll(async () => {
  account = await api.makeAccount();
  for (const name of NAMES.toReversed())
    expectStatus(await api.send({ method: 'PUT', path: `/${name}` }, account), 200);
  await api.makeBucket();
});

async function list(query = '') {
  const answer = await api.send({ method: 'GET', path: `/${query === '' ? '' : `?${query}`}` }, account);
  expectStatus(answer, 200);
  const root = xmlOf(answer);
  const buckets = childrenOf(must(childOf(root, 'Buckets'), 'Buckets'), 'Bucket');
  return { root, buckets, names: buckets.map((bucket) => textOf(bucket, 'Name')), fields: fieldsOf(answer) };
}

test("the account's own buckets by name, and no others", async () => {
  const { root, buckets, names } = await list();
  expect(root.name).toBe('ListAllMyBucketsResult');
  expect(names).toEqual(NAMES);
  const [first] = buckets;
  expect(first?.children.map((element) => element.name)).toEqual(['Name', 'CreationDate']);
  expect(first && textOf(first, 'CreationDate')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const owner = must(childOf(root, 'Owner'), 'Owner');
  expect(textOf(owner, 'ID')).toBe(account.canonicalId);
  expect(textOf(owner, 'DisplayName')).toBe(account.name);
});

test('an account without buckets', async () => {
  const answer = await api.send({ method: 'GET', path: '/' }, await api.makeAccount());
  expectStatus(answer, 200);
  expect(childOf(xmlOf(answer), 'Buckets')?.children).toEqual([]);
});

test.each(['prefix=a', 'max-buckets=1', 'continuation-token=', 'bucket-region=anywhere'])(
  'whoever asks with %s is told the region',
  async (query) => {
    const [first] = (await list(query)).buckets;
    expect(first && [textOf(first, 'Name'), textOf(first, 'BucketRegion')]).toEqual([NAMES[0], 'us-east']);
  },
);

test('prefix', async () => {
  const { names, fields } = await list('prefix=beta');
  expect(names).toEqual(NAMES.slice(1, 3));
  expect(fields.Prefix).toBe('beta');
});

test.each([1, 2, 3, 4])('s3-behaviour 37: pages of %i', async (max) => {
  const found: (string | undefined)[] = [];
  let token = '';
  do {
    const given = token === '' ? '' : `continuation-token=${encodeURIComponent(token)}&`;
    const { names, fields } = await list(`${given}max-buckets=${max}`);
    expect(names.length).toBeLessThanOrEqual(max);
    found.push(...names);
    token = fields.ContinuationToken ?? '';
  } while (token !== '');
  expect(found).toEqual(NAMES);
});

test('the SDK', async () => {
  const answer = await account.s3.send(new ListBucketsCommand({}));
  expect(answer.Buckets?.map(({ Name }) => Name)).toEqual(NAMES);
  expect(answer.Owner?.ID).toBe(account.canonicalId);
});

test('s3-behaviour 37: an empty token is ignored', async () => {
  expect((await list('continuation-token=&prefix=beta')).names).toEqual(NAMES.slice(1, 3));
});

test('a prefix and a token together, beyond the last, and of no bucket', async () => {
  const { fields } = await list('max-buckets=1&prefix=beta');
  const token = encodeURIComponent(fields.ContinuationToken ?? '');
  const rest = await list(`prefix=beta&continuation-token=${token}`);
  expect([rest.names, rest.fields.ContinuationToken]).toEqual([[NAMES[2]], undefined]);
  expect((await list('prefix=none')).names).toEqual([]);
  expect((await list('prefix=')).names).toEqual(NAMES);
});

test('a deleted bucket is gone at once', async () => {
  const name = await api.makeBucket(account);
  expect((await list()).names).toContain(name);
  expectStatus(await api.send({ method: 'DELETE', path: `/${name}` }, account), 204);
  expect((await list()).names).toEqual(NAMES);
});

test.each([
  'max-buckets=x',
  'max-buckets=-1',
  'max-buckets=0',
  'max-buckets=10001',
  'max-buckets=',
  'continuation-token=nonsense',
  'continuation-token=1',
])('%s is refused', async (query) => {
  const answer = await api.send({ method: 'GET', path: `/?${query}` }, account);
  expectError(answer, { status: 400, code: 'InvalidArgument' });
});

test('anonymous callers have no buckets', async () => {
  expectError(await api.sendAnonymous({ method: 'GET', path: '/' }), { status: 403, code: 'AccessDenied' });
});
