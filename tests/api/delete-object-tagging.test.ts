// DeleteObjectTagging: the tags of one version go, and nothing else does.
import { DeleteObjectTaggingCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { type TaggedObject, taggingPath, tagsOf } from '../support/servers/tagging.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await makeVersionedBucket(api);
});

const put = async (key: string, tagging: string) =>
  versionOf(
    await api.send({
      method: 'PUT',
      path: pathOf(bucket, key),
      headers: { 'x-amz-tagging': tagging },
      body: Buffer.from('bytes'),
    }),
  );
const untag = (object: Omit<TaggedObject, 'bucket'>) =>
  api.send({ method: 'DELETE', path: taggingPath({ bucket, ...object }) });

test('the current version, or one by its id, has no tags left; a repetition is no error', async () => {
  const [first, second] = [await put('k', 'a=1'), await put('k', 'b=2')];
  const older = await untag({ key: 'k', versionId: first });
  expectStatus(older, 204);
  expect(versionOf(older)).toBe(first);
  expect(await tagsOf(api, { bucket, key: 'k', versionId: first })).toEqual([]);
  expect(await tagsOf(api, { bucket, key: 'k' })).toEqual([['b', '2']]);
  for (let round = 0; round < 2; round++) {
    const answer = await untag({ key: 'k' });
    expectStatus(answer, 204);
    expect([answer.body.length, versionOf(answer)]).toEqual([0, second]);
  }
  expect(await tagsOf(api, { bucket, key: 'k' })).toEqual([]);
  expect((await api.send({ method: 'GET', path: `/${bucket}/k` })).body.toString()).toBe('bytes');
});

test('of missing keys, and of markers', async () => {
  expectError(await untag({ key: 'none' }), { status: 404, code: 'NoSuchKey' });
  await put('gone', 'a=1');
  expectError(await untag({ key: 'gone', versionId: 'A'.repeat(32) }), {
    status: 404,
    code: 'NoSuchVersion',
  });
  expectError(await untag({ key: 'gone', versionId: '' }), { status: 400, code: 'InvalidArgument' });
  const marker = versionOf(await api.send({ method: 'DELETE', path: `/${bucket}/gone` }));
  expectError(await untag({ key: 'gone' }), { status: 404, code: 'NoSuchKey' });
  expectError(await untag({ key: 'gone', versionId: marker }), { status: 405, code: 'MethodNotAllowed' });
});

test('the SDK', async () => {
  const versionId = await put('sdk', 'a=1');
  const request = new DeleteObjectTaggingCommand({ Bucket: bucket, Key: 'sdk' });
  expect((await api.s3.send(request)).VersionId).toBe(versionId);
});

test('only the owner', async () => {
  await put('mine', 'a=1');
  const path = taggingPath({ bucket, key: 'mine' });
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'DELETE', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'DELETE', path }), denied);
  expect(await tagsOf(api, { bucket, key: 'mine' })).toEqual([['a', '1']]);
});
