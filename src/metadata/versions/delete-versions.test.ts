import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  etagOf,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { DeleteItem } from '../../ports/metadata/versions.ts';
import type { ObjectKey, VersionId } from '../../types/names.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

async function putVersion(key: string, data = world.newData()): Promise<VersionId> {
  const outcome = await world.put(key, { data });
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome.versionId;
}

async function removeAll(items: Omit<DeleteItem, 'key'>[], key = 'a') {
  const command = {
    bucketId: BUCKET,
    owner: OWNER,
    items: items.map((item) => ({ key: key as ObjectKey, ...item })),
  };
  return (await world.execute('delete-versions', command)).items;
}

const blobOf = (data: { uses: { blobId: string }[] }) => data.uses[0]?.blobId as never;
const setVersioning = (versioning: 'enabled' | 'suspended') =>
  world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: versioning },
  });
const kindOfCurrent = async () =>
  (await world.query('get-version', { bucketId: BUCKET, key: 'a' as ObjectKey, includeBody: false })).kind;

describe('a protected version', () => {
  const settings = { retentionDays: 1, conditionalHold: false, deleteAfterRetention: false };
  const lock = () =>
    world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'objectLock', document: {} });
  const enableCompliance = () =>
    world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'compliance',
      document: { isEnabled: true, ...settings },
    });

  test('is not deleted by its id while its hold is on', async () => {
    await world.createBucket('enabled');
    await lock();
    const held = { protection: { legalHold: true } } as const;
    const outcome = await world.put('a', { data: world.newData(), version: held });
    const versionId = outcome.kind === 'committed' ? outcome.versionId : undefined;
    const blocked = { kind: 'blocked', blocker: { by: 'legal-hold' } };
    expect(await removeAll([{ versionId: versionId as VersionId }])).toEqual([blocked]);
    // A marker hides it, and takes nothing away.
    expect(await world.remove('a')).toMatchObject({ kind: 'deleted', madeMarker: true });
    expect(await removeAll([{ versionId: versionId as VersionId }])).toEqual([blocked]);
  });

  test('is not overwritten as the null version, where there are no others', async () => {
    await world.createBucket();
    await putVersion('a');
    await enableCompliance();
    const blocked = { kind: 'blocked', blocker: { by: 'compliance' } };
    expect(await world.put('a', { data: world.newData() })).toEqual(blocked);
    expect(await world.remove('a')).toEqual(blocked);
    world.clock.advance(24 * 3600 * 1000);
    expect(await world.remove('a')).toMatchObject({ kind: 'deleted' });
  });

  test('is not made with a retention that shard time has passed', async () => {
    await world.createBucket('enabled');
    await lock();
    const untilMs = world.clock.wallMs();
    const version = { protection: { retention: { mode: 'COMPLIANCE', untilMs } } } as const;
    const blocked = { kind: 'blocked', blocker: { by: 'retention-passed' } };
    expect(await world.put('a', { data: world.newData(), version })).toEqual(blocked);
    await putVersion('a');
    const change = { kind: 'retention', retention: { mode: 'COMPLIANCE', untilMs } } as const;
    const command = { bucketId: BUCKET, key: 'a' as ObjectKey, change };
    expect(await world.execute('set-protection', command)).toEqual({ kind: 'retention-passed' });
  });

  test('can be deleted once its retention has ended by shard time', async () => {
    await world.createBucket('enabled');
    await lock();
    const untilMs = world.clock.wallMs() + 1000;
    const version = { protection: { retention: { mode: 'COMPLIANCE', untilMs } } } as const;
    const outcome = await world.put('a', { data: world.newData(), version });
    const versionId = (outcome.kind === 'committed' ? outcome.versionId : undefined) as VersionId;
    expect(await removeAll([{ versionId }])).toEqual([{ kind: 'blocked', blocker: { by: 'retention' } }]);
    world.clock.advance(1000);
    expect(await removeAll([{ versionId }])).toMatchObject([{ kind: 'deleted' }]);
  });
});

describe('the simple delete', () => {
  test('unversioned: removes the object, and nothing that is missing', async () => {
    await world.createBucket();
    const data = world.newData();
    await putVersion('a', data);
    const deleted = { kind: 'deleted', isDeleteMarker: false, madeMarker: false };
    expect(await world.remove('a')).toEqual({ ...deleted, removedBytes: 10 });
    expect(await world.remove('a')).toEqual(deleted);
    expect(await kindOfCurrent()).toBe('no-such-key');
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
  });

  test('enabled: writes a marker each time, even for a key that never existed (38)', async () => {
    await world.createBucket('enabled');
    await putVersion('a');
    const first = await world.remove('a');
    expect(first).toMatchObject({ kind: 'deleted', isDeleteMarker: true, madeMarker: true });
    await world.remove('a');
    const never = await world.remove('never');
    expect(await world.versions()).toEqual(['a v3*-', 'a v2-', 'a v1', 'never v1*-']);
    const listed = await world.query('list-versions', { bucketId: BUCKET, prefix: 'never', max: 10 });
    expect(listed.versions[0]?.versionId).toBe((never as { versionId: VersionId }).versionId);
    expect(await kindOfCurrent()).toBe('delete-marker');
  });

  test('suspended: a null marker replaces the null version, wherever that is', async () => {
    await world.createBucket();
    const data = world.newData();
    await putVersion('a', data);
    await setVersioning('enabled');
    await putVersion('a');
    await setVersioning('suspended');
    expect(await world.remove('a')).toMatchObject({ versionId: 'null', madeMarker: true });
    expect(await world.versions()).toEqual(['a null*-', 'a v2']);
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
    await world.remove('a');
    expect(await world.versions()).toEqual(['a null*-', 'a v2']);
  });
});

describe('deleting by version id', () => {
  test('the latest: the next newest becomes the latest', async () => {
    await world.createBucket('enabled');
    const [, , third] = [await putVersion('a'), await putVersion('a'), await putVersion('a')];
    expect(await world.remove('a', third)).toEqual({
      kind: 'deleted',
      versionId: third,
      isDeleteMarker: false,
      madeMarker: false,
      removedBytes: 10,
    });
    expect(await world.versions()).toEqual(['a v2*', 'a v1']);
  });

  test('a marker: the object below it is current again', async () => {
    await world.createBucket('enabled');
    await putVersion('a');
    const { versionId } = (await world.remove('a')) as { versionId: VersionId };
    expect(await world.remove('a', versionId)).toMatchObject({ isDeleteMarker: true, madeMarker: false });
    expect(await world.versions()).toEqual(['a v1*']);
    expect(await kindOfCurrent()).toBe('found');
  });

  test('the object above a marker: the marker is the latest', async () => {
    await world.createBucket('enabled');
    await world.remove('a');
    const second = await putVersion('a');
    await world.remove('a', second);
    expect(await world.versions()).toEqual(['a v1*-']);
    expect(await kindOfCurrent()).toBe('delete-marker');
  });

  test('an older one, the null version, and the last one', async () => {
    await world.createBucket();
    const data = world.newData();
    await putVersion('a', data);
    await setVersioning('enabled');
    const second = await putVersion('a');
    const third = await putVersion('a');
    await world.remove('a', second);
    expect(await world.versions()).toEqual(['a v3*', 'a null']);
    await world.remove('a', 'null');
    await world.remove('a', third);
    expect(await world.versions()).toEqual([]);
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
    expect(await putVersion('a')).toBeTypeOf('string');
    expect(await world.versions()).toEqual(['a v1*']);
  });

  test('a missing version counts as deleted; in an unversioned bucket no id is returned', async () => {
    await world.createBucket();
    await putVersion('a');
    const deleted = { kind: 'deleted', isDeleteMarker: false, madeMarker: false };
    expect(await world.remove('a', 'other')).toEqual(deleted);
    expect(await kindOfCurrent()).toBe('found');
    expect(await world.remove('a', 'null')).toEqual({ ...deleted, removedBytes: 10 });
    expect(await kindOfCurrent()).toBe('no-such-key');
    await setVersioning('enabled');
    expect(await world.remove('a', 'x'.repeat(5000))).toEqual({ ...deleted, versionId: 'x'.repeat(5000) });
  });
});

describe('several items of one key', () => {
  test('each sees the changes of the ones before', async () => {
    await world.createBucket('enabled');
    const ids = [await putVersion('a'), await putVersion('a'), await putVersion('a'), await putVersion('a')];
    const [first, second, third, fourth] = ids as [VersionId, VersionId, VersionId, VersionId];
    const outcomes = await removeAll([
      { versionId: fourth },
      { versionId: second },
      {},
      { versionId: third },
      { versionId: third },
    ]);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(Array(5).fill('deleted'));
    expect(await world.versions()).toEqual(['a v4*-', 'a v1']);
    expect(first).toBeTypeOf('string');
  });

  test('all versions at once, newest first and oldest first', async () => {
    await world.createBucket('enabled');
    for (const isReversed of [false, true]) {
      const ids: VersionId[] = [];
      for (let at = 0; at < 6; at++) ids.push(await putVersion('a'));
      if (isReversed) ids.reverse();
      await removeAll(ids.map((versionId) => ({ versionId })));
      expect(await world.versions()).toEqual([]);
    }
    expect(await world.query('count-usage', {})).toMatchObject({ objectCount: 0, sizeBytes: 0 });
  });

  test('the newest ones: the next below them becomes the latest', async () => {
    await world.createBucket('enabled');
    const ids: VersionId[] = [];
    for (let at = 0; at < 5; at++) ids.push(await putVersion('a'));
    await removeAll([3, 4, 2].map((at) => ({ versionId: ids[at] as VersionId })));
    expect(await world.versions()).toEqual(['a v2*', 'a v1']);
  });

  test('two simple deletes in a suspended bucket leave one null marker', async () => {
    await world.createBucket('suspended');
    await putVersion('a');
    await removeAll([{}, {}, { versionId: 'null' as VersionId }, {}]);
    expect(await world.versions()).toEqual(['a null*-']);
  });

  test('a marker written and removed in one command leaves the earlier state', async () => {
    await world.createBucket('suspended');
    await setVersioning('enabled');
    await putVersion('a');
    await setVersioning('suspended');
    await removeAll([{}, { versionId: 'null' as VersionId }]);
    expect(await world.versions()).toEqual(['a v1*']);
  });
});

describe('conditions', () => {
  beforeEach(() => world.createBucket());

  test('25, 26: a mismatch refuses its item only', async () => {
    await putVersion('a');
    await putVersion('b');
    const command: CommandOf<'delete-versions'> = {
      bucketId: BUCKET,
      owner: OWNER,
      items: [
        { key: 'a' as ObjectKey, conditions: { ifMatch: [etagOf('wrong')] } },
        { key: 'b' as ObjectKey, conditions: { ifMatch: '*', ifMatchSizeBytes: 10 } },
        { key: 'c' as ObjectKey, conditions: { ifMatch: [etagOf('c')] } },
      ],
    };
    const { items } = await world.execute('delete-versions', command);
    expect(items.map(({ kind }) => kind)).toEqual(['precondition-failed', 'deleted', 'deleted']);
    expect(await world.versions()).toEqual(['a null*']);
  });

  test('25: with a version id that version is compared', async () => {
    await setVersioning('enabled');
    await world.put('a', { etag: etagOf('old') });
    const { versionId } = (await world.put('a', { etag: etagOf('new') })) as { versionId: VersionId };
    const conditions = { ifMatch: [etagOf('old')] };
    expect((await removeAll([{ versionId, conditions }]))[0]?.kind).toBe('precondition-failed');
    expect((await removeAll([{ versionId, conditions: { ifMatch: [etagOf('new')] } }]))[0]?.kind).toBe(
      'deleted',
    );
    expect(await world.versions()).toEqual(['a v1*']);
  });
});

test('40: concurrent deletes of the same versions all succeed', async () => {
  await world.createBucket('enabled');
  const ids = [await putVersion('a'), await putVersion('a')];
  const items = ids.map((versionId) => ({ versionId }));
  const all = await Promise.all([removeAll(items), removeAll(items), removeAll(items)]);
  expect(all.flat().map(({ kind }) => kind)).toEqual(Array(6).fill('deleted'));
  expect(await world.versions()).toEqual([]);
});
