// ListObjectVersions.
import { ListObjectVersionsCommand } from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';
import {
  listVersions,
  makeVersionedBucket,
  setVersioning,
  versionOf,
  versionsIn,
} from '../support/servers/versions.ts';

const api = useApi();

async function put(bucket: string, key: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await api.send({
    method: 'PUT',
    path: pathOf(bucket, key),
    body: Buffer.from(key),
    headers,
  });
  expectStatus(answer, 200);
  return versionOf(answer);
}

async function mark(bucket: string, key: string): Promise<string> {
  const answer = await api.send({ method: 'DELETE', path: pathOf(bucket, key) });
  expectStatus(answer, 204);
  return versionOf(answer);
}

const list = async (bucket: string, query = '') => versionsIn(await listVersions(api, bucket, query));
/** `key version` of each, shortened to what a test needs. */
const shown = (versions: Awaited<ReturnType<typeof list>>) =>
  versions.map(({ key, versionId }) => [key, versionId]);

test('versions and markers in one order, with all of their fields', async () => {
  const bucket = await makeVersionedBucket(api);
  const first = await put(bucket, 'a', {
    'x-amz-checksum-algorithm': 'CRC32',
    'x-amz-checksum-crc32': '6Le+Qw==',
  });
  const marker = await mark(bucket, 'a');
  const second = await put(bucket, 'a');
  const never = await mark(bucket, 'b');
  const answer = await listVersions(api, bucket);
  expect(xmlOf(answer).name).toBe('ListVersionsResult');
  expect(fieldsOf(answer)).toEqual({
    Name: bucket,
    Prefix: '',
    KeyMarker: '',
    VersionIdMarker: '',
    MaxKeys: '1000',
    IsTruncated: 'false',
  });
  expect(versionsIn(answer)).toEqual([
    { kind: 'Version', key: 'a', versionId: second, isLatest: true },
    { kind: 'DeleteMarker', key: 'a', versionId: marker, isLatest: false },
    { kind: 'Version', key: 'a', versionId: first, isLatest: false },
    { kind: 'DeleteMarker', key: 'b', versionId: never, isLatest: true },
  ]);
  const namesOf = (name: string, at: number) =>
    childrenOf(xmlOf(answer), name)[at]?.children.map((child) => child.name);
  const common = ['Key', 'VersionId', 'IsLatest', 'LastModified'];
  const checksum = ['ChecksumAlgorithm', 'ChecksumType'];
  expect(namesOf('Version', 1)).toEqual([...common, 'ETag', ...checksum, 'Size', 'Owner', 'StorageClass']);
  expect(namesOf('DeleteMarker', 0)).toEqual([...common, 'Owner']);
  const oldest = childrenOf(xmlOf(answer), 'Version')[1];
  const of = (name: string) => oldest && textOf(oldest, name);
  expect([of('ETag'), of('Size'), of('ChecksumAlgorithm')]).toEqual([
    '"0cc175b9c0f1b6a831c399e269772661"',
    '1',
    'CRC32',
  ]);
});

test('a bucket without versions lists null ones', async () => {
  const bucket = await api.makeBucket();
  await put(bucket, 'a');
  expect(await list(bucket)).toEqual([{ kind: 'Version', key: 'a', versionId: 'null', isLatest: true }]);
  await setVersioning(api, bucket, 'Enabled');
  const second = await put(bucket, 'a');
  expect(shown(await list(bucket))).toEqual([
    ['a', second],
    ['a', 'null'],
  ]);
});

describe('pages', () => {
  let bucket: string;
  let all: string[][];
  beforeAll(async () => {
    bucket = await makeVersionedBucket(api);
    for (const key of ['a', 'd/1', 'd/1', 'd/2', 'é+ b', 'z', 'z', 'z']) await put(bucket, key);
    await mark(bucket, 'd/2');
    all = shown(await list(bucket));
    expect(all).toHaveLength(9);
  });

  test.each([1, 2, 3, 8, 9])('of %d, one after the other', async (max) => {
    const seen: string[][] = [];
    for (let markers = ''; ; ) {
      const answer = await listVersions(api, bucket, `max-keys=${max}${markers}`);
      const page = shown(versionsIn(answer));
      seen.push(...page);
      const { IsTruncated, NextKeyMarker = '', NextVersionIdMarker = '' } = fieldsOf(answer);
      if (IsTruncated === 'false') break;
      expect([NextKeyMarker, NextVersionIdMarker]).toEqual(page.at(-1));
      markers = `&key-marker=${encodeURIComponent(NextKeyMarker)}&version-id-marker=${NextVersionIdMarker}`;
    }
    expect(seen).toEqual(all);
  });

  test('behind a key without a version, and with no version at all', async () => {
    expect(shown(await list(bucket, 'key-marker=d%2F2'))).toEqual(all.filter(([key = '']) => key > 'd/2'));
    const empty = await listVersions(api, bucket, 'max-keys=0');
    expect(fieldsOf(empty)).toMatchObject({ MaxKeys: '0', IsTruncated: 'false' });
    expect(versionsIn(empty)).toEqual([]);
  });

  test('a prefix, and a delimiter whose groups count as one', async () => {
    expect(shown(await list(bucket, 'prefix=d%2F'))).toEqual(all.filter(([key]) => key?.startsWith('d/')));
    const answer = await listVersions(api, bucket, 'delimiter=%2F&max-keys=2');
    expect(versionsIn(answer).map(({ key }) => key)).toEqual(['a']);
    expect(childrenOf(xmlOf(answer), 'CommonPrefixes').map((group) => textOf(group, 'Prefix'))).toEqual([
      'd/',
    ]);
    const fields = fieldsOf(answer);
    expect(fields).toMatchObject({ Delimiter: '/', IsTruncated: 'true', NextKeyMarker: 'd/' });
    expect(fields).not.toHaveProperty('NextVersionIdMarker');
    const rest = await list(bucket, 'delimiter=%2F&key-marker=d%2F');
    expect(rest.map(({ key }) => key)).toEqual(['z', 'z', 'z', 'é+ b']);
  });

  test('s3-behaviour 36: names are percent-encoded on request', async () => {
    const query = 'encoding-type=url&prefix=%C3%A9%2B&delimiter=%20&key-marker=%C3%A9';
    const answer = await listVersions(api, bucket, query);
    expect(fieldsOf(answer)).toMatchObject({
      EncodingType: 'url',
      Prefix: '%C3%A9%2B',
      Delimiter: '%20',
      KeyMarker: '%C3%A9',
    });
    const [group] = childrenOf(xmlOf(answer), 'CommonPrefixes');
    expect(group && textOf(group, 'Prefix')).toBe('%C3%A9%2B%20');
    expect((await list(bucket, 'encoding-type=url&prefix=%C3%A9')).map(({ key }) => key)).toEqual([
      '%C3%A9%2B%20b',
    ]);
  });

  test('through the SDK', async () => {
    const answer = await api.s3.send(new ListObjectVersionsCommand({ Bucket: bucket, Prefix: 'd/2' }));
    expect(answer.Versions?.map(({ Key, IsLatest }) => [Key, IsLatest])).toEqual([['d/2', false]]);
    expect(answer.DeleteMarkers?.map(({ Key, IsLatest }) => [Key, IsLatest])).toEqual([['d/2', true]]);
  });

  test.each([
    ['version-id-marker=null', 'version-id-marker'],
    ['key-marker=a&version-id-marker=x', 'version-id-marker'],
    ['max-keys=-1', 'max-keys'],
    ['encoding-type=base64', 'encoding-type'],
    ['encoding-type=', 'encoding-type'],
  ])('%s is refused', async (query, name) => {
    const answer = await api.send({ method: 'GET', path: `/${bucket}?versions&${query}` });
    expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName: name });
  });

  test('only the owner may list', async () => {
    const path = `/${bucket}?versions`;
    const denied = { status: 403, code: 'AccessDenied' } as const;
    expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
    expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  });
});
