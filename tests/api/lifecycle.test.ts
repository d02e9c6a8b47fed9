// Lifecycle in a running server whose lifecycle days are 2 s: rules let objects expire, older versions and uploads go, and leave
// what they do not name and what is locked. What each rule does when is tested beside src/metadata/lifecycle.
import { expect, test } from 'vitest';
import { lifecycleStatus } from '../../src/cli/lifecycle-command.ts';
import { ENABLED, FILTER, putRules } from '../support/objects/lifecycle-documents.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import {
  deleteVersion,
  inDays,
  makeLockBucket,
  putVersion,
  retentionXml,
  sendRetention,
} from '../support/servers/locks.ts';
import { beginUpload } from '../support/servers/multipart.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { versionsIn } from '../support/servers/versions.ts';

const DAY_MS = 2000;
const WITHIN = { timeout: 60_000, interval: 200 };
const api = useApi({ settings: { 'lifecycle.day': '2s', 'lifecycle.scanInterval': '1s' } });
const { context, taken } = createPrintedTool();

const EXPIRES = '<Expiration><Days>1</Days></Expiration>';
const ABORTS =
  '<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>';
const NONCURRENT =
  '<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>';

/** Of the last pass that has come to its end. */
async function lastCounts(bucket: string): Promise<{ keptCount: number; byAction: Record<string, number> }> {
  await lifecycleStatus(context, bucket, { dataDir: api.server.dataDir, json: true });
  return JSON.parse(taken()).last?.counts;
}

test('an unversioned bucket: covered objects are gone when they said they would be, and uploads are aborted', async () => {
  const bucket = await api.makeBucket();
  const rule = `<ID>logs</ID>${ENABLED}<Filter><Prefix>logs/</Prefix></Filter>${EXPIRES}${ABORTS}`;
  expectStatus(await api.send(putRules(bucket, rule)), 200);
  const stored = await api.send({ method: 'PUT', path: pathOf(bucket, 'logs/a'), body: Buffer.from('a') });
  await api.put(bucket, 'other', 'stays');
  await beginUpload(api, { bucket, key: 'logs/upload' });
  await beginUpload(api, { bucket, key: 'upload' });
  const expiresAtMs = Date.parse(
    /expiry-date="(.*?)"/.exec(String(stored.headers['x-amz-expiration']))?.[1] ?? '',
  );
  expect(expiresAtMs % DAY_MS).toBe(0);
  const head = () => api.send({ method: 'HEAD', path: pathOf(bucket, 'logs/a') });
  const uploads = async () => {
    const listed = await api.send({ method: 'GET', path: `/${bucket}?uploads` });
    return xmlOf(listed).children.filter(({ name }) => name === 'Upload').length;
  };
  await expect.poll(async () => (await head()).status, WITHIN).toBe(404);
  expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs);
  await expect.poll(uploads, WITHIN).toBe(1);
  expect(await api.keysOf(bucket)).toEqual(['other']);
});

test('s3-behaviour 42: rules for noncurrent versions, expired delete markers and stale uploads act', async () => {
  const bucket = await makeLockBucket(api);
  const rule = (prefix: string, ...actions: string[]) =>
    `<ID>${prefix}</ID>${ENABLED}<Filter><Prefix>${prefix}/</Prefix></Filter>${actions.join('')}`;
  const newer = `<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration>`;
  const markers = '<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>';
  const ids: string[] = [];
  for (let count = 0; count < 5; count++) ids.push(await putVersion(api, { bucket, key: 'newer/a' }));
  for (let count = 0; count < 2; count++) await putVersion(api, { bucket, key: 'days/a' });
  await deleteVersion(api, { bucket, key: 'markers/a' });
  await beginUpload(api, { bucket, key: 'uploads/a' });
  const rules = [
    rule('newer', newer),
    rule('days', NONCURRENT),
    rule('markers', markers),
    rule('uploads', ABORTS),
  ];
  expectStatus(await api.send(putRules(bucket, ...rules)), 200);
  const left = async () => {
    const listed = await api.send({ method: 'GET', path: `/${bucket}?versions` });
    const uploads = await api.send({ method: 'GET', path: `/${bucket}?uploads` });
    return [
      ...versionsIn(listed).map(({ key, versionId }) => (key === 'newer/a' ? versionId : key)),
      ...xmlOf(uploads).children.filter(({ name }) => name === 'Upload'),
    ];
  };
  await expect.poll(left, WITHIN).toEqual(['days/a', ...ids.reverse().slice(0, 3)]);
});

test('a bucket with versions: what is locked stays, and is counted; the rest goes', async () => {
  const bucket = await makeLockBucket(api);
  const locked = await putVersion(api, { bucket, key: 'a' });
  const retention = retentionXml('COMPLIANCE', inDays(1));
  expectStatus(await sendRetention(api, { bucket, key: 'a', versionId: locked }, retention), 200);
  await putVersion(api, { bucket, key: 'a' });
  await putVersion(api, { bucket, key: 'b' });
  const rule = `<ID>all</ID>${ENABLED}${FILTER}${EXPIRES}${NONCURRENT}`;
  expectStatus(await api.send(putRules(bucket, rule)), 200);
  const versions = async () =>
    versionsIn(await api.send({ method: 'GET', path: `/${bucket}?versions` })).map(
      ({ kind, key, versionId }) => (kind === 'Version' ? `${key} ${versionId}` : `${key} marker`),
    );
  // The marker of b goes, too, once it is alone.
  await expect.poll(versions, WITHIN).toEqual(['a marker', `a ${locked}`]);
  await expect.poll(async () => (await lastCounts(bucket))?.keptCount, WITHIN).toBeGreaterThanOrEqual(1);
  const refused = await deleteVersion(api, { bucket, key: 'a', versionId: locked });
  expectError(refused, { status: 403, code: 'AccessDenied' });
  expect(await versions()).toEqual(['a marker', `a ${locked}`]);
});
