import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  beginUpload,
  etagOf,
  type MetadataShards,
  OWNER,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { Grant } from '../../types/acl.ts';
import type { AccountId, ObjectKey, VersionId } from '../../types/names.ts';
import type { VersionRecord } from '../../types/version.ts';

const key = 'k' as ObjectKey;
const OTHER = '000000000002' as AccountId;
const ONE: Grant[] = [
  { grantee: 'AllUsers', permission: 'READ' },
  { grantee: OWNER, permission: 'FULL_CONTROL' },
];

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

const setAcl = (grants: Grant[] | null, more: Partial<CommandOf<'set-acl'>> = {}) =>
  world.execute('set-acl', { bucketId: BUCKET, key, owner: OWNER, grants, ...more });

async function read(versionId?: VersionId): Promise<VersionRecord> {
  const id = versionId === undefined ? {} : { versionId };
  const found = await world.query('get-version', { bucketId: BUCKET, key, includeBody: false, ...id });
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

async function put(version: Partial<VersionRecord> = {}): Promise<VersionId> {
  const outcome = await world.put(key, { version });
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome.versionId;
}

test('nothing of a version changes but its list', async () => {
  await world.createBucket();
  await put();
  const before = await read();
  world.clock.advance(60_000);
  expect(await setAcl(ONE)).toEqual({ kind: 'set', versionId: 'null', versioning: 'unversioned' });
  expect(await read()).toEqual({ ...before, acl: ONE });
  expect(await setAcl([])).toMatchObject({ kind: 'set' });
  expect(await read()).toEqual({ ...before, acl: [] });
  expect(await setAcl(null)).toMatchObject({ kind: 'set' });
  expect(await read()).toEqual(before);
});

test('each version has its own, and a new one has none (s3-behaviour 8)', async () => {
  await world.createBucket('enabled');
  const first = await put({ acl: ONE });
  const second = await put();
  expect([(await read(first)).acl, (await read(second)).acl]).toEqual([ONE, undefined]);
  await setAcl([], { versionId: first });
  expect([(await read(first)).acl, (await read()).acl]).toEqual([[], undefined]);
});

test('tags and appends leave it, and Complete takes it from the upload', async () => {
  await world.createBucket();
  await put({ acl: ONE });
  await world.execute('set-tags', { bucketId: BUCKET, key, tags: [{ key: 'a', value: '' }] });
  expect((await read()).acl).toEqual(ONE);
  const { kek } = await read();
  if (kek === undefined) throw new Error('an object has a key');
  const piece = { sizeBytes: 0, md5: etagOf(''), births: [], crcs: {} };
  const appended = { piece, kek: { found: kek, renewed: kek }, linkId: world.newLinkId() };
  await world.execute('append-version', { bucketId: BUCKET, key, ...appended });
  expect(await read()).toMatchObject({ acl: ONE, appendCount: 1 });

  const uploadId = await beginUpload(world, key, undefined, undefined, { acl: ONE.slice(0, 1) });
  await putPart(world, { key, uploadId }, { partNumber: 1 });
  const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
  await world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts });
  expect((await read()).acl).toEqual(ONE.slice(0, 1));
});

test('a missing key or version, a marker, and a version of another owner', async () => {
  await world.createBucket('enabled');
  expect(await setAcl(ONE)).toEqual({ kind: 'no-such-key' });
  await put();
  expect(await setAcl(ONE, { versionId: 'none' as VersionId })).toEqual({ kind: 'no-such-version' });
  expect(await setAcl(ONE, { owner: OTHER })).toEqual({ kind: 'other-owner' });
  await world.remove(key);
  expect(await setAcl(ONE)).toMatchObject({ kind: 'delete-marker' });
});

test('other tags than those that were judged are as another list', async () => {
  await world.createBucket();
  await put({ tags: [{ key: 'a', value: '1' }] });
  expect(await setAcl(ONE, { tagsBefore: [] })).toEqual({ kind: 'other-owner' });
  expect(await setAcl(ONE, { tagsBefore: [{ key: 'a', value: '1' }] })).toMatchObject({ kind: 'set' });
  expect((await read()).tags).toEqual([{ key: 'a', value: '1' }]);
  await put();
  expect(await setAcl(ONE, { tagsBefore: [] })).toMatchObject({ kind: 'set' });
});

test('versions and uploads of other accounts are admitted first, and gateways learn of it', async () => {
  await world.createBucket();
  await expect(put({ owner: OTHER })).rejects.toThrow('admitted');
  await expect(beginUpload(world, key, undefined, undefined, { owner: OTHER })).rejects.toThrow('admitted');
  const admit = () => world.execute('admit-foreign-objects', { bucketId: BUCKET });
  const admitted = { kind: 'admitted', bucket: { mayHaveForeignObjects: true, cfgVersion: 2 } };
  expect(await admit()).toMatchObject(admitted);
  expect(await admit()).toMatchObject(admitted);
  await put({ owner: OTHER });
  expect((await read()).owner).toBe(OTHER);
  await beginUpload(world, key, undefined, undefined, { owner: OTHER });
  await world.execute('abort-upload', {
    bucketId: BUCKET,
    key,
    uploadId: await beginUpload(world, key),
  });
  const none = { bucketId: 'b0000000000000ff' as typeof BUCKET };
  expect(await world.execute('admit-foreign-objects', none)).toEqual({ kind: 'no-such-bucket' });
});
