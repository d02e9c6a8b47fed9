import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { LinkId, ObjectKey } from '../../types/names.ts';
import { dataLinkId, linksOf, type VersionRecord } from '../../types/version.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

const key = 'a' as ObjectKey;
const kek = { by: 'master' as const, keyId: 'k2', wrapped: Uint8Array.of(4) };
const blobOf = (data: { uses: { blobId: string }[] }) => data.uses[0]?.blobId as never;

async function current(): Promise<VersionRecord> {
  const found = await world.query('get-version', { bucketId: BUCKET, key, includeBody: false });
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

async function recommit(version: VersionRecord, linkId: LinkId = world.newLinkId()) {
  const { versionId, order, manifest } = version;
  const command: CommandOf<'recommit-version'> = {
    bucketId: BUCKET,
    key,
    expected: { versionId, order, dataLinkId: dataLinkId(manifest) },
    version: { owner: OWNER, kek, sealedHeaders: Uint8Array.of(5) },
    linkId,
  };
  return world.execute('recommit-version', command);
}

const setVersioning = (versioning: 'enabled' | 'suspended') =>
  world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: versioning },
  });

test('unversioned: the version is replaced and its data keeps its link', async () => {
  await world.createBucket();
  const data = world.newData();
  await world.put('a', { data });
  const before = await current();
  world.clock.advance(1000);
  expect(await recommit(before)).toMatchObject({ kind: 'committed', versionId: 'null' });
  const after = await current();
  expect(after).toMatchObject({ order: 2, etag: before.etag, kek: { keyId: 'k2' }, sizeBytes: 10 });
  expect(after.modifiedAtMs).toBe(before.modifiedAtMs + 1000);
  expect(linksOf(after.manifest)).toEqual(linksOf(before.manifest));
  await world.markUnlinked();
  expect(await world.stateOf(blobOf(data))).toEqual(['live']);
  await world.remove('a');
  await world.markUnlinked();
  expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
});

test('enabled: a new version with a link of its own beside the old one', async () => {
  await world.createBucket('enabled');
  const data = world.newData();
  const first = (await world.put('a', { data })) as { versionId: string };
  expect(await recommit(await current())).toMatchObject({ kind: 'committed' });
  expect(await world.versions()).toEqual(['a v2*', 'a v1']);
  await world.remove('a', first.versionId);
  await world.markUnlinked();
  expect(await world.stateOf(blobOf(data))).toEqual(['live']);
  await world.remove('a', (await current()).versionId);
  await world.markUnlinked();
  expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
});

test('suspended: the null version is replaced, another one is kept beside a new null version', async () => {
  await world.createBucket('enabled');
  const data = world.newData();
  await world.put('a', { data });
  await setVersioning('suspended');
  expect(await recommit(await current())).toMatchObject({ versionId: 'null' });
  expect(await world.versions()).toEqual(['a null*', 'a v1']);
  const before = await current();
  await recommit(before);
  expect(await world.versions()).toEqual(['a null*', 'a v1']);
  expect(linksOf((await current()).manifest)).toEqual(linksOf(before.manifest));
  await world.remove('a', 'null');
  await world.markUnlinked();
  expect(await world.stateOf(blobOf(data))).toEqual(['live']);
});

test('another current version, a marker, or none: changed', async () => {
  await world.createBucket('enabled');
  await world.put('a');
  const first = await current();
  await world.put('a');
  expect(await recommit(first)).toEqual({ kind: 'changed' });
  const second = await current();
  await world.remove('a');
  expect(await recommit(second)).toEqual({ kind: 'changed' });
});

test('a later object with the same order is not the one that was read', async () => {
  await world.createBucket();
  await world.put('a');
  const read = await current();
  await world.remove('a');
  await world.put('a');
  expect((await current()).order).toBe(read.order);
  expect(await recommit(read)).toEqual({ kind: 'changed' });
});
