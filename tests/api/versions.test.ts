// What reads and deletes say of versions and markers: s3-behaviour 38 and 40, which others get wrong.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import {
  listVersions,
  makeVersionedBucket,
  setVersioning,
  versionOf,
  versionsIn,
} from '../support/servers/versions.ts';

const api = useApi();

function deleteObjects(bucket: string, objects: string) {
  const body = Buffer.from(`<Delete>${objects}</Delete>`);
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
  return api.send({ method: 'POST', path: `/${bucket}?delete`, headers, body });
}

test('s3-behaviour 38: 404 distinguishes a delete marker from a missing key, also in a suspended bucket', async () => {
  const bucket = await makeVersionedBucket(api);
  await api.put(bucket, 'k', 'one');
  const marked = async (key: string, isMarked: string) => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await api.send({ method, path: `/${bucket}/${key}` });
      expectStatus(answer, 404);
      expect(answer.headers['x-amz-delete-marker']).toBe(isMarked);
    }
  };
  for (const status of ['Enabled', 'Suspended'] as const) {
    await setVersioning(api, bucket, status);
    const deleted = await api.send({ method: 'DELETE', path: `/${bucket}/k` });
    expect(deleted.headers['x-amz-delete-marker']).toBe('true');
    await marked('k', 'true');
    await marked('never', 'false');
    const path = `/${bucket}/k?versionId=${versionOf(deleted)}`;
    const byId = await api.send({ method: 'GET', path });
    expectError(byId, { status: 405, code: 'MethodNotAllowed' });
    expect(byId.headers).toMatchObject({ allow: 'DELETE', 'x-amz-delete-marker': 'true' });
  }
});

test('s3-behaviour 38: DeleteObjects of a key that never existed creates the marker that it returns', async () => {
  const bucket = await makeVersionedBucket(api);
  const answer = await deleteObjects(bucket, '<Object><Key>never</Key></Object>');
  const [deleted] = childrenOf(xmlOf(answer), 'Deleted');
  const versionId = deleted && textOf(deleted, 'DeleteMarkerVersionId');
  expect(versionsIn(await listVersions(api, bucket))).toEqual([
    { kind: 'DeleteMarker', key: 'never', versionId, isLatest: true },
  ]);
});

test('s3-behaviour 40: concurrent DeleteObjects of the same versions all succeed', async () => {
  const bucket = await makeVersionedBucket(api);
  for (let index = 0; index < 20; index++) await api.put(bucket, `k${index % 5}`, 'x');
  const objects = versionsIn(await listVersions(api, bucket)).map(
    ({ key, versionId }) => `<Object><Key>${key}</Key><VersionId>${versionId}</VersionId></Object>`,
  );
  const answers = await Promise.all([1, 2, 3, 4].map(() => deleteObjects(bucket, objects.join(''))));
  for (const answer of answers) {
    expectStatus(answer, 200);
    expect(childrenOf(xmlOf(answer), 'Deleted')).toHaveLength(20);
    expect(childrenOf(xmlOf(answer), 'Error')).toEqual([]);
  }
  expect(versionsIn(await listVersions(api, bucket))).toEqual([]);
});
