// ListMultipartUploads.
import { beforeAll, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { beginUpload, uploadPath } from '../support/servers/multipart.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
const KEYS = ['a b', 'dir/1', 'dir/2', 'dir/2', 'z&'];
let bucket: string;
const ids: string[] = [];
beforeAll(async () => {
  bucket = await api.makeBucket();
  for (const key of KEYS) ids.push((await beginUpload(api, { bucket, key })).uploadId);
});

async function list(query = '') {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?${query}uploads` });
  expectStatus(answer, 200);
  const root = xmlOf(answer);
  return {
    root,
    uploads: childrenOf(root, 'Upload').map((upload) => [textOf(upload, 'Key'), textOf(upload, 'UploadId')]),
    prefixes: childrenOf(root, 'CommonPrefixes').map((prefix) => textOf(prefix, 'Prefix')),
    fields: fieldsOf(answer),
  };
}
const ALL = () => KEYS.map((key, index) => [key, ids[index]]);

test('s3-behaviour 33: all uploads by key and by the time of their beginning, with their initiators', async () => {
  const { root, uploads, fields } = await list();
  expect(root.name).toBe('ListMultipartUploadsResult');
  expect(uploads).toEqual(ALL());
  expect(fields).toMatchObject({
    Bucket: bucket,
    KeyMarker: '',
    UploadIdMarker: '',
    MaxUploads: '1000',
    IsTruncated: 'false',
  });
  const [first] = childrenOf(root, 'Upload');
  expect(first && textOf(first, 'StorageClass')).toBe('STANDARD');
  expect(first && textOf(first, 'Initiated')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
});

test('s3-behaviour 33: initiator and owner of each upload, with ID and DisplayName', async () => {
  const account = await api.makeAccount();
  const theirs = await api.makeBucket(account);
  expectStatus(await api.send({ method: 'POST', path: `/${theirs}/k?uploads` }, account), 200);
  const shown = [
    { answer: await api.send({ method: 'GET', path: `/${bucket}?uploads` }), name: 'root' },
    { answer: await api.send({ method: 'GET', path: `/${theirs}?uploads` }, account), name: account.name },
  ];
  for (const { answer, name } of shown) {
    const [first] = childrenOf(xmlOf(answer), 'Upload');
    for (const who of ['Initiator', 'Owner']) {
      const identity = first && childrenOf(first, who)[0];
      expect(identity?.children.map((element) => element.name)).toEqual(['ID', 'DisplayName']);
      expect(identity && textOf(identity, 'ID')).toMatch(/^[0-9a-f]{64}$/);
      expect(identity && textOf(identity, 'DisplayName')).toBe(name);
    }
  }
});

test.each([1, 2, 3, 4])('pages of %i, within a key too', async (max) => {
  const found: (string | undefined)[][] = [];
  let [keyMarker, uploadIdMarker] = ['', ''];
  for (let isTruncated = true; isTruncated; ) {
    const query = `max-uploads=${max}&key-marker=${encodeURIComponent(keyMarker)}&upload-id-marker=${uploadIdMarker}&`;
    const { uploads, fields } = await list(query);
    found.push(...uploads);
    keyMarker = fields.NextKeyMarker ?? '';
    uploadIdMarker = fields.NextUploadIdMarker ?? '';
    isTruncated = fields.IsTruncated === 'true';
  }
  expect(found).toEqual(ALL());
});

test('the upload of another key is no marker, an aborted one is', async () => {
  const address = { bucket: await api.makeBucket(), key: 'a' };
  const first = await beginUpload(api, address);
  const other = await beginUpload(api, { ...address, key: 'b' });
  const listFrom = (uploadId: string) =>
    api.send({
      method: 'GET',
      path: `/${address.bucket}?key-marker=a&upload-id-marker=${uploadId}&uploads=`,
    });
  expectError(await listFrom(other.uploadId), {
    status: 400,
    code: 'InvalidArgument',
    ArgumentName: 'upload-id-marker',
  });
  expectStatus(await api.send({ method: 'DELETE', path: uploadPath(first) }), 204);
  expectStatus(await listFrom(first.uploadId), 200);
});

test('a key marker alone is behind all uploads of its key; an id alone is ignored', async () => {
  expect((await list('key-marker=dir%2F2&')).uploads).toEqual([['z&', ids[4]]]);
  expect((await list('upload-id-marker=x&')).uploads).toEqual(ALL());
});

test('prefix and delimiter', async () => {
  expect((await list('prefix=dir%2F&')).uploads).toEqual(ALL().slice(1, 4));
  const grouped = await list('delimiter=%2F&');
  expect(grouped.uploads).toEqual([ALL()[0], ALL()[4]]);
  expect(grouped.prefixes).toEqual(['dir/']);
  expect(grouped.fields.Delimiter).toBe('/');
  expect((await list('prefix=none&')).uploads).toEqual([]);
  expect((await list('delimiter=&')).uploads).toEqual(ALL());
  expect(await list('delimiter=%2F&key-marker=dir%2F1&')).toMatchObject({
    uploads: [ALL()[4]],
    prefixes: [],
  });
});

test('s3-behaviour 36: encoding-type=url', async () => {
  const { uploads, fields } = await list('encoding-type=url&max-uploads=1&prefix=a%20&');
  expect(uploads.map(([key]) => key)).toEqual(['a%20b']);
  expect(fields).toMatchObject({ EncodingType: 'url', Prefix: 'a%20' });
  const grouped = await list('encoding-type=url&delimiter=%20&key-marker=A%2B&max-uploads=1&');
  expect(grouped.prefixes).toEqual(['a%20']);
  expect(grouped.fields).toMatchObject({ Delimiter: '%20', KeyMarker: 'A%2B', NextKeyMarker: 'a%20' });
});

test('max-uploads=0, and above the maximum', async () => {
  expect(await list('max-uploads=0&')).toMatchObject({ uploads: [], fields: { IsTruncated: 'false' } });
  expect((await list('max-uploads=9999&')).fields.MaxUploads).toBe('1000');
});

test('the checksum of an upload', async () => {
  const other = await api.makeBucket();
  await beginUpload(api, { bucket: other, key: 'a' }, { 'x-amz-checksum-algorithm': 'CRC64NVME' });
  const [upload] = childrenOf(xmlOf(await api.send({ method: 'GET', path: `/${other}?uploads` })), 'Upload');
  expect(upload && textOf(upload, 'ChecksumAlgorithm')).toBe('CRC64NVME');
  expect(upload && textOf(upload, 'ChecksumType')).toBe('FULL_OBJECT');
});

test.each([
  ['max-uploads=x&', 'max-uploads', 'x'],
  ['max-uploads=-1&', 'max-uploads', '-1'],
  ['encoding-type=base64&', 'encoding-type', 'base64'],
  ['encoding-type=&', 'encoding-type', ''],
  ['key-marker=a&upload-id-marker=x&', 'upload-id-marker', 'x'],
])('%s is refused', async (query, ArgumentName, ArgumentValue) => {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?${query}uploads` });
  expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName, ArgumentValue });
});

test('only the owner may list', async () => {
  const path = `/${bucket}?uploads`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
});
