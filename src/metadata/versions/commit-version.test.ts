import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  copyOf,
  dataOf,
  etagOf,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

const key = 'a' as ObjectKey;
const current = () => world.query('get-version', { bucketId: BUCKET, key, includeBody: true });
const blobOf = (data: { uses: { blobId: string }[] }) => data.uses[0]?.blobId as never;

describe('replaced versions', () => {
  test('unversioned: the one before, whose blob is marked for deletion', async () => {
    await world.createBucket();
    const [first, second] = [world.newData(), world.newData()];
    expect(await world.put('a', { data: first })).toMatchObject({ kind: 'committed', versionId: 'null' });
    await world.put('a', { data: second });
    expect(await world.versions()).toEqual(['a null*']);
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(first), blobOf(second))).toEqual(['condemned', 'live']);
  });

  test('enabled: none; the one before becomes an older version', async () => {
    await world.createBucket('enabled');
    const first = world.newData();
    const outcome = await world.put('a', { data: first });
    const versionId = outcome.kind === 'committed' ? outcome.versionId : ('' as never);
    await world.put('a');
    expect(await world.versions()).toEqual(['a v2*', 'a v1']);
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(first))).toEqual(['live']);
    const older = await world.query('get-version', { bucketId: BUCKET, key, versionId, includeBody: false });
    expect(older).toMatchObject({ kind: 'found', isLatest: false, version: { order: 1 } });
  });

  test('suspended: the null version, where it is the latest', async () => {
    await world.createBucket();
    const first = world.newData();
    await world.put('a', { data: first });
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'suspended' },
    });
    await world.put('a');
    expect(await world.versions()).toEqual(['a null*']);
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(first))).toEqual(['condemned']);
  });

  test('suspended: the null version, where it is an older one', async () => {
    await world.createBucket();
    const first = world.newData();
    await world.put('a', { data: first });
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'enabled' },
    });
    await world.put('a');
    await world.put('a');
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'suspended' },
    });
    expect(await world.versions()).toEqual(['a v3*', 'a v2', 'a null']);
    expect(await world.put('a')).toMatchObject({ versionId: 'null', versioning: 'suspended' });
    expect(await world.versions()).toEqual(['a null*', 'a v3', 'a v2']);
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(first))).toEqual(['condemned']);
    const asked = { bucketId: BUCKET, key, versionId: 'null' as never, includeBody: false };
    expect(await world.query('get-version', asked)).toMatchObject({ isLatest: true, version: { order: 4 } });
  });

  test('suspended: a null marker, which has no data', async () => {
    await world.createBucket('suspended');
    await world.remove('a');
    expect(await world.versions()).toEqual(['a null*-']);
    await world.put('a');
    expect(await world.versions()).toEqual(['a null*']);
  });

  test('a latest marker of an enabled bucket becomes older', async () => {
    await world.createBucket('enabled');
    await world.put('a');
    await world.remove('a');
    expect(await current()).toMatchObject({ kind: 'delete-marker', isLatest: true });
    await world.put('a');
    expect(await world.versions()).toEqual(['a v3*', 'a v2-', 'a v1']);
  });
});

describe('data', () => {
  beforeEach(() => world.createBucket());

  test('an inline body is returned with its version', async () => {
    await world.put('a', { data: world.newData({ storage: 'inline', sizeBytes: 5 }) });
    expect(await current()).toMatchObject({ kind: 'found', inlineBody: Buffer.alloc(5) });
  });

  test('a copy onto itself under a new link keeps the blob', async () => {
    const data = world.newData();
    await world.put('a', { data });
    await world.put('a', { data: copyOf(data, world.newLinkId()) });
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['live']);
    await world.remove('a');
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
  });

  test('a copy shares the blob, which outlives its first version', async () => {
    const data = world.newData();
    await world.put('a', { data });
    await world.put('b', { data: copyOf(data, world.newLinkId()) });
    await world.remove('a');
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['live']);
    await world.remove('b');
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
  });

  test('R26: a blob that is marked for deletion, or does not exist, gets no link', async () => {
    const data = world.newData();
    await world.put('a', { data });
    await world.remove('a');
    await world.markUnlinked();
    const copy = copyOf(data, world.newLinkId());
    expect(await world.put('b', { data: copy })).toEqual({ kind: 'gone', blobIds: [blobOf(data)] });
    const unborn = copyOf(world.newData(), world.newLinkId());
    expect(await world.put('b', { data: unborn })).toMatchObject({ kind: 'gone' });
  });

  test('a blob without links can be copied until it is marked for deletion', async () => {
    const data = world.newData();
    await world.put('a', { data });
    await world.remove('a');
    const copy = copyOf(data, world.newLinkId());
    expect(await world.put('b', { data: copy })).toMatchObject({ kind: 'committed' });
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(data))).toEqual(['live']);
  });

  test('R25: a new blob is refused when its id is a day old, or an hour ahead', async () => {
    const early = world.newData();
    world.clock.advance(LIMITS.blobIdAgeMaxMs);
    expect(await world.put('a', { data: early })).toMatchObject({ kind: 'committed' });
    const late = world.newData();
    world.clock.advance(LIMITS.blobIdAgeMaxMs + 1);
    expect(await world.put('a', { data: late })).toEqual({ kind: 'late' });
    const other = await openMetadata();
    await other.createBucket();
    expect(await other.put('a', { data: world.newData() })).toEqual({ kind: 'late' });
  });

  test('R24: an existing id is refused', async () => {
    const data = world.newData();
    await world.put('a', { data });
    expect(await world.put('b', { data })).toEqual({ kind: 'exists' });
    expect(await world.put('a', { data })).toEqual({ kind: 'exists' });
    expect(await world.put('a', { data, conditions: { ifNoneMatch: '*' } })).toEqual({ kind: 'exists' });
    world.clock.advance(LIMITS.blobIdAgeMaxMs + 1);
    expect(await world.put('a', { data })).toEqual({ kind: 'exists' });
  });

  test('a version without bytes has no blob', async () => {
    const data = dataOf([], { births: [], links: [] });
    expect(await world.put('a', { data })).toMatchObject({ kind: 'committed' });
    expect(await current()).toMatchObject({ version: { sizeBytes: 0 } });
  });

  test('a manifest with an ungranted link is a bug, and writes nothing', async () => {
    const data = { ...world.newData(), grant: { births: [], links: [] } };
    await expect(world.put('a', { data })).rejects.toThrow('granted once');
    expect(await current()).toEqual({ kind: 'no-such-key' });
  });
});

describe('conditions', () => {
  beforeEach(() => world.createBucket('enabled'));

  test('of many racing creators one wins', async () => {
    const puts = Array.from({ length: 20 }, () => world.put('a', { conditions: { ifNoneMatch: '*' } }));
    const kinds = (await Promise.all(puts)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'committed')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'precondition-failed')).toHaveLength(19);
  });

  test('28: of two racing PUTs with one If-Match the first wins', async () => {
    await world.put('a', { etag: etagOf('old') });
    const conditions = { ifMatch: [etagOf('old')] };
    const outcomes = await Promise.all([
      world.put('a', { conditions, etag: etagOf('x') }),
      world.put('a', { conditions, etag: etagOf('y') }),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['committed', 'precondition-failed']);
  });

  test('27: a current delete marker counts as a missing key', async () => {
    await world.put('a');
    await world.remove('a');
    expect(await world.put('a', { conditions: { ifMatch: '*' } })).toEqual({ kind: 'no-such-key' });
    expect(await world.put('a', { conditions: { ifNoneMatch: '*' } })).toMatchObject({ kind: 'committed' });
  });

  test('a refusal leaves no blob behind', async () => {
    const data = world.newData();
    await world.put('a');
    await world.put('a', { data, conditions: { ifMatch: [etagOf('other')] } });
    expect(await world.stateOf(blobOf(data))).toEqual([undefined]);
  });
});

test('usage counts versions but no markers', async () => {
  await world.createBucket('enabled');
  await world.put('a', { data: world.newData({ sizeBytes: 5 }) });
  await world.put('a', { data: world.newData({ sizeBytes: 7 }) });
  await world.remove('a');
  const counted = { objectCount: 2, sizeBytes: 12, bucketCount: 1 };
  expect(await world.query('count-usage', { bucketId: BUCKET })).toEqual(counted);
  expect(await world.query('count-usage', {})).toEqual(counted);
});
