// GetObjectTagging: what a version has, as a document; and what is not there.
import { GetObjectTaggingCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { childOf } from '../../src/base/xml/parse-xml.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { makeVersionedBucket } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await makeVersionedBucket(api);
  await api.put(bucket, 'k', 'bytes');
});

test('the empty set, of the current version and of one by its id', async () => {
  const current = await api.s3.send(new GetObjectTaggingCommand({ Bucket: bucket, Key: 'k' }));
  expect(current.TagSet).toEqual([]);
  const versionId = String(current.VersionId);
  const path = `/${bucket}/k?tagging&versionId=${versionId}`;
  const byId = await api.send({ method: 'GET', path });
  expectStatus(byId, 200);
  expect(byId.headers['x-amz-version-id']).toBe(versionId);
});

test('the tags are sorted by key, in whatever order they were set', async () => {
  const tagging = 'b=2&a=1&c';
  await api.put(bucket, 'tagged', 'bytes', { 'x-amz-tagging': tagging });
  const answer = await api.s3.send(new GetObjectTaggingCommand({ Bucket: bucket, Key: 'tagged' }));
  expect(answer.TagSet).toEqual([
    { Key: 'a', Value: '1' },
    { Key: 'b', Value: '2' },
    { Key: 'c', Value: '' },
  ]);
  const raw = await api.send({ method: 'GET', path: `/${bucket}/tagged?tagging` });
  expect([xmlOf(raw).name, childOf(xmlOf(raw), 'TagSet')?.children.length]).toEqual(['Tagging', 3]);
});

test('of a missing key, a missing version, or a marker', async () => {
  const ask = (target: string) => api.send({ method: 'GET', path: `/${bucket}/${target}` });
  expectError(await ask('none?tagging'), { status: 404, code: 'NoSuchKey' });
  expectError(await ask('k?tagging&versionId='), { status: 400, code: 'InvalidArgument' });
  const gone = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
  expectError(await ask(`k?tagging&versionId=${gone}`), { status: 404, code: 'NoSuchVersion' });
  const deleted = await api.send({ method: 'DELETE', path: `/${bucket}/k` });
  const marker = String(deleted.headers['x-amz-version-id']);
  expectError(await ask(`k?tagging&versionId=${marker}`), { status: 405, code: 'MethodNotAllowed' });
});

test('only the owner may read', async () => {
  const path = `/${bucket}/k?tagging`;
  expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), {
    status: 403,
    code: 'AccessDenied',
  });
});
