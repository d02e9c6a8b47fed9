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
import type { ObjectKey, VersionId } from '../../types/names.ts';
import type { Tag } from '../../types/tags.ts';
import { dataLinkId, type VersionRecord } from '../../types/version.ts';

const key = 'k' as ObjectKey;
const ONE: Tag[] = [{ key: 'a', value: '1' }];
const TWO: Tag[] = [
  { key: 'b', value: '' },
  { key: 'a', value: '2' },
];

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

const setTags = (tags: Tag[], versionId?: string) =>
  world.execute('set-tags', {
    bucketId: BUCKET,
    key,
    ...(versionId !== undefined && { versionId: versionId as VersionId }),
    tags,
  });

async function read(versionId?: string): Promise<VersionRecord> {
  const id = versionId === undefined ? {} : { versionId: versionId as VersionId };
  const found = await world.query('get-version', { bucketId: BUCKET, key, includeBody: false, ...id });
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

async function put(tags?: Tag[]): Promise<string> {
  const outcome = await world.put(key, tags === undefined ? {} : { version: { tags } });
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome.versionId;
}

test('nothing of a version changes but its tags', async () => {
  await world.createBucket();
  await put();
  const before = await read();
  const usage = await world.query('count-usage', { bucketId: BUCKET });
  world.clock.advance(60_000);
  expect(await setTags(ONE)).toEqual({ kind: 'tagged', versionId: 'null', versioning: 'unversioned' });
  expect(await read()).toEqual({ ...before, tags: ONE });
  expect(await setTags(TWO)).toMatchObject({ kind: 'tagged' });
  expect(await read()).toEqual({ ...before, tags: TWO });
  expect(await setTags([])).toMatchObject({ kind: 'tagged' });
  expect(await read()).toEqual(before);
  expect(await world.query('count-usage', { bucketId: BUCKET })).toEqual(usage);
  await world.markUnlinked();
  const blobIds = before.manifest.kind === 'direct' ? before.manifest.uses.map(({ blobId }) => blobId) : [];
  expect(await world.stateOf(...blobIds)).toEqual(['live']);
});

test('each version has its own tags, and keeps its place', async () => {
  await world.createBucket();
  await put(ONE);
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  const second = await put();
  const third = await put(TWO);
  const listed = await world.versions();
  expect(await setTags(TWO, second)).toEqual({ kind: 'tagged', versionId: second, versioning: 'enabled' });
  expect(await setTags([], 'null')).toMatchObject({ kind: 'tagged', versionId: 'null' });
  expect(await setTags(ONE)).toMatchObject({ kind: 'tagged', versionId: third });
  expect([(await read('null')).tags, (await read(second)).tags, (await read(third)).tags]).toEqual([
    undefined,
    TWO,
    ONE,
  ]);
  expect(await world.versions()).toEqual(listed);
});

test('missing versions and markers have no tags', async () => {
  await world.createBucket('enabled');
  expect(await setTags(ONE)).toEqual({ kind: 'no-such-key' });
  const version = await put();
  expect(await setTags(ONE, 'A'.repeat(32))).toEqual({ kind: 'no-such-version' });
  const deleted = await world.remove(key);
  const marker = deleted.kind === 'deleted' ? deleted.versionId : undefined;
  expect(await setTags(ONE)).toMatchObject({ kind: 'delete-marker', versionId: marker });
  expect(await setTags(ONE, marker)).toMatchObject({ kind: 'delete-marker', versionId: marker });
  expect(await setTags(ONE, version)).toMatchObject({ kind: 'tagged', versionId: version });
});

test('a copy onto itself takes the present tags, unless it has others', async () => {
  await world.createBucket();
  await put(ONE);
  const recommit = async (version: VersionRecord, tags?: Tag[]) => {
    const { versionId, order, manifest } = version;
    const command: CommandOf<'recommit-version'> = {
      bucketId: BUCKET,
      key,
      expected: { versionId, order, dataLinkId: dataLinkId(manifest) },
      version: { owner: OWNER, kek: { by: 'master', keyId: 'k2', wrapped: Uint8Array.of(4) } },
      linkId: world.newLinkId(),
      ...(tags && { tags }),
    };
    expect(await world.execute('recommit-version', command)).toMatchObject({ kind: 'committed' });
  };
  const source = await read();
  await setTags(TWO);
  await recommit(source);
  expect((await read()).tags).toEqual(TWO);
  await recommit(await read(), ONE);
  expect((await read()).tags).toEqual(ONE);
  await recommit(await read(), []);
  expect(await read()).not.toHaveProperty('tags');
});

test('tags of an upload become those of its version', async () => {
  await world.createBucket();
  const uploadId = await beginUpload(world, key, undefined, ONE);
  await putPart(world, { key, uploadId }, { partNumber: 1 });
  const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
  const outcome = await world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts });
  expect(outcome.kind).toBe('committed');
  expect((await read()).tags).toEqual(ONE);
});
