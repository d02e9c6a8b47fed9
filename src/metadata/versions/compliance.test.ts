// A bucket under compliance (service 2.5, 3; extensions 2.6), by its shard's clock: what may not go and when it may, in buckets
// with and without versions; what may be changed of a version's own settings; and that enabling writes one bucket's rows only.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  beginUpload,
  etagOf,
  type MetadataShards,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { OutcomeOf } from '../../ports/metadata/port.ts';
import type { ProtectionChange } from '../../ports/metadata/versions.ts';
import type { DeleteBlocker } from '../../types/delete-blocker.ts';
import type { BucketName, ObjectKey, VersionId } from '../../types/names.ts';
import type { BucketCompliance } from '../../types/retention.ts';
import { dataLinkId, type VersionRecord } from '../../types/version.ts';

const DAY = 24 * 3600 * 1000;
const a = 'a' as ObjectKey;

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

const enable = (settings: Partial<BucketCompliance> = {}) =>
  world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'compliance',
    document: {
      isEnabled: true,
      retentionDays: 1,
      conditionalHold: false,
      deleteAfterRetention: false,
      ...settings,
    },
  });

type Change = Omit<Extract<ProtectionChange, { kind: 'compliance' }>, 'kind'>;
const change = (its: Change, versionId?: VersionId) =>
  world.execute('set-protection', {
    bucketId: BUCKET,
    key: a,
    ...(versionId && { versionId }),
    change: { kind: 'compliance', ...its },
  });

const blocked = (by: DeleteBlocker['by']) => ({ kind: 'blocked', blocker: { by } });

function idOf(outcome: OutcomeOf<'commit-version'>): VersionId {
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome.versionId;
}

async function read(versionId?: VersionId): Promise<VersionRecord> {
  const query = { bucketId: BUCKET, key: a, ...(versionId && { versionId }), includeBody: false };
  const found = await world.query('get-version', query);
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

const complianceOf = async (versionId?: VersionId) => (await read(versionId)).protection?.compliance;

async function rows(): Promise<Map<string, string>> {
  const range = { column: 'rows', gte: Uint8Array.of(0), lt: new Uint8Array(64).fill(255), limit: 1e6 };
  const found = await world.kv.range(range);
  return new Map(
    found.map(({ key, value }) => [Buffer.from(key).toString('hex'), Buffer.from(value).toString('hex')]),
  );
}

describe('enabling', () => {
  test('protects all versions that are there at once, and writes none of them', async () => {
    await world.createBucket();
    for (let index = 0; index < 200; index++) await world.put(`key ${index}`);
    const before = await rows();
    expect(await enable()).toMatchObject({ kind: 'changed' });
    const after = await rows();
    const written = [...after].filter(([key, value]) => before.get(key) !== value);
    // The bucket, its document, and what the engine notes of any entry.
    expect(written.length).toBeLessThanOrEqual(8);
    expect([...before.keys()].filter((key) => !after.has(key))).toEqual([]);
    for (let index = 0; index < 200; index += 20) {
      expect(await world.remove(`key ${index}`)).toEqual(blocked('compliance'));
      expect(await world.put(`key ${index}`)).toEqual(blocked('compliance'));
    }
    expect(await world.query('find-protected', { bucketId: BUCKET, limit: 10 })).toMatchObject({
      kept: { blocker: { by: 'compliance' } },
    });
  });

  test('writes as much in a bucket of many versions as in an empty one', async () => {
    const writtenBy = async (objectCount: number) => {
      world = await openMetadata();
      await world.createBucket();
      for (let index = 0; index < objectCount; index++) await world.put(`key ${index}`);
      const before = await rows();
      await enable();
      return [...(await rows())].filter(([key, value]) => before.get(key) !== value).length;
    };
    expect(await writtenBy(100)).toBe(await writtenBy(0));
  });

  test('disabling lets all go, and enabling again counts from the creation', async () => {
    await world.createBucket();
    await world.put(a);
    await enable({ retentionDays: 2 });
    world.clock.advance(DAY);
    await enable({ isEnabled: false, retentionDays: 0 });
    await enable({ retentionDays: 2 });
    expect(await world.remove(a)).toEqual(blocked('compliance'));
    world.clock.advance(DAY);
    expect(await world.remove(a)).toMatchObject({ kind: 'deleted' });
  });

  test('a bucket that is renamed keeps its settings, and what they protect', async () => {
    await world.createBucket();
    await world.put(a);
    await enable({ lockAtMs: world.clock.wallMs() });
    const to = 'other' as BucketName;
    await world.execute('rename-bucket', { bucketId: BUCKET, from: BUCKET_NAME, to, nameEpoch: 1 });
    expect(await enable({ lockAtMs: world.clock.wallMs(), retentionDays: 0 })).toEqual({
      kind: 'refused',
      because: 'locked-retention-days',
    });
    expect(await world.remove(a)).toEqual(blocked('compliance'));
  });

  test('a bucket is deleted only once nothing of it has to stay', async () => {
    await world.createBucket();
    await world.put(a);
    await enable();
    expect(await world.execute('delete-bucket', { bucketId: BUCKET })).toEqual({ kind: 'not-empty' });
    world.clock.advance(DAY);
    expect(await world.remove(a)).toMatchObject({ kind: 'deleted' });
    expect(await world.execute('delete-bucket', { bucketId: BUCKET })).toMatchObject({ kind: 'deleted' });
  });
});

describe('without versions', () => {
  beforeEach(() => world.createBucket());

  test('an object under a conditional hold stays until days after its release', async () => {
    await enable({ conditionalHold: true });
    await world.put(a);
    world.clock.advance(10 * DAY);
    for (const by of ['conditional-hold', 'compliance'] as const) {
      expect(await world.remove(a)).toEqual(blocked(by));
      expect(await world.put(a)).toEqual(blocked(by));
      if (by === 'conditional-hold')
        expect(await change({ releasesHold: true })).toMatchObject({ kind: 'set' });
    }
    world.clock.advance(DAY - 1);
    expect(await world.remove(a)).toEqual(blocked('compliance'));
    world.clock.advance(1);
    expect(await world.put(a)).toMatchObject({ kind: 'committed' });
  });

  test('only new objects are held, and the release of what is not held changes nothing', async () => {
    await world.put(a);
    await enable({ conditionalHold: true });
    expect(await complianceOf()).toBeUndefined();
    expect(await change({ releasesHold: true })).toMatchObject({ kind: 'set' });
    expect(await complianceOf()).toBeUndefined();
    world.clock.advance(DAY);
    expect(await world.remove(a)).toMatchObject({ kind: 'deleted' });
  });

  test('a second release does not begin the days anew', async () => {
    await enable({ conditionalHold: true });
    await world.put(a);
    await change({ releasesHold: true });
    const released = await complianceOf();
    world.clock.advance(DAY / 2);
    await change({ releasesHold: true });
    expect(await complianceOf()).toEqual(released);
  });

  test('an upload is held from its completion', async () => {
    const uploadId = await beginUpload(world, a);
    await putPart(world, { key: a, uploadId }, { partNumber: 1 });
    await enable({ conditionalHold: true });
    const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
    await world.execute('complete-upload', { bucketId: BUCKET, key: a, uploadId, parts });
    expect(await world.remove(a)).toEqual(blocked('conditional-hold'));
  });

  test('a rename of a protected object is refused, and says why', async () => {
    await world.put(a);
    await enable();
    const move = { from: a, to: 'b' };
    const outcome = await world.execute('move-key', { bucketId: BUCKET, move, overwrites: true });
    expect(outcome).toMatchObject({ result: { versionId: 'null', ...blocked('compliance') } });
  });
});

test('with versions, writes and deletes go on above what is kept; a version itself stays', async () => {
  await world.createBucket('enabled');
  await enable();
  const first = idOf(await world.put(a));
  const second = idOf(await world.put(a));
  expect(await world.remove(a)).toMatchObject({ kind: 'deleted', madeMarker: true });
  for (const versionId of [first, second])
    expect(await world.remove(a, versionId)).toEqual(blocked('compliance'));
  // A marker has nothing to keep.
  const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 10 });
  expect(await world.remove(a, versions[0]?.versionId)).toMatchObject({
    kind: 'deleted',
    isDeleteMarker: true,
  });
  world.clock.advance(DAY);
  for (const versionId of [first, second])
    expect(await world.remove(a, versionId)).toMatchObject({ kind: 'deleted' });
});

describe('settings of a version', () => {
  let createdMs: number;
  beforeEach(async () => {
    await world.createBucket();
    createdMs = world.clock.wallMs();
    await world.put(a);
    await enable();
  });

  test('the retention may be extended and never shortened', async () => {
    expect(await change({ retainUntilMs: createdMs + DAY - 1 })).toEqual({ kind: 'blocked' });
    expect(await change({ retainUntilMs: createdMs + 3 * DAY })).toMatchObject({ kind: 'set' });
    expect(await change({ retainUntilMs: createdMs + 3 * DAY - 1 })).toEqual({ kind: 'blocked' });
    expect(await change({ retainUntilMs: createdMs + 3 * DAY })).toMatchObject({ kind: 'set' });
    world.clock.advance(3 * DAY - 1);
    expect(await world.remove(a)).toEqual(blocked('compliance'));
    world.clock.advance(1);
    expect(await world.remove(a)).toMatchObject({ kind: 'deleted' });
  });

  test('what has ended may not be put before its end either', async () => {
    world.clock.advance(5 * DAY);
    expect(await change({ retainUntilMs: createdMs + DAY - 1 })).toEqual({ kind: 'blocked' });
    expect(await change({ retainUntilMs: world.clock.wallMs() + DAY })).toMatchObject({ kind: 'set' });
    expect(await world.remove(a)).toEqual(blocked('compliance'));
  });

  test('a RetentionTime is judged by the days from the release in the same request', async () => {
    await world.put('a2');
    await enable({ conditionalHold: true });
    world.clock.advance(DAY);
    expect(await world.put(a)).toMatchObject({ kind: 'committed' });
    world.clock.advance(2 * DAY);
    const nowMs = world.clock.wallMs();
    const early = { releasesHold: true as const, retainUntilMs: nowMs + DAY - 1 };
    expect(await change(early)).toEqual({ kind: 'blocked' });
    expect(await complianceOf()).toEqual({ conditionalHold: true });
    expect(await change({ ...early, retainUntilMs: nowMs + DAY })).toMatchObject({ kind: 'set' });
    const released = { conditionalHold: true, holdReleasedAtMs: nowMs, retainUntilMs: nowMs + DAY };
    expect(await complianceOf()).toEqual(released);
  });

  test('a legal hold keeps it whatever the time, until it is taken away', async () => {
    await change({ legalHold: true });
    world.clock.advance(1000 * DAY);
    expect(await world.remove(a)).toEqual(blocked('compliance-legal-hold'));
    await change({ legalHold: false });
    expect(await complianceOf()).toBeUndefined();
    expect(await world.remove(a)).toMatchObject({ kind: 'deleted' });
  });

  test('nothing else of the version changes', async () => {
    const before = await read();
    world.clock.advance(1000);
    await change({ legalHold: true });
    expect(await read()).toEqual({ ...before, protection: { compliance: { legalHold: true } } });
  });

  test('there are none where compliance is not enabled', async () => {
    await enable({ isEnabled: false });
    expect(await change({ legalHold: true })).toEqual({ kind: 'not-enabled' });
    expect((await read()).protection).toBeUndefined();
  });

  test('of a missing key, a missing version and a marker', async () => {
    world.clock.advance(DAY);
    await world.remove(a);
    expect(await change({ legalHold: true })).toEqual({ kind: 'no-such-key' });
    expect(await change({ legalHold: true }, 'A'.repeat(32) as VersionId)).toEqual({
      kind: 'no-such-version',
    });
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'enabled' },
    });
    await world.put(a);
    await world.remove(a);
    expect(await change({ legalHold: true })).toMatchObject({ kind: 'delete-marker' });
  });
});

describe('the SHA-256 of a version', () => {
  const sha256 = 'ab'.repeat(32);
  const keep = ({ versionId, order, manifest }: VersionRecord) =>
    world.execute('set-protection', {
      bucketId: BUCKET,
      key: a,
      versionId,
      change: { kind: 'sha256', sha256, of: { versionId, order, dataLinkId: dataLinkId(manifest) } },
    });

  test('is kept for the version that was read, beside its other settings', async () => {
    await world.createBucket();
    await enable({ retentionDays: 0 });
    await world.put(a);
    await change({ legalHold: true });
    expect(await keep(await read())).toMatchObject({ kind: 'set' });
    expect(await complianceOf()).toEqual({ legalHold: true, sha256 });
    // It protects nothing.
    await change({ legalHold: false });
    expect(await complianceOf()).toEqual({ sha256 });
    expect(await world.remove(a)).toMatchObject({ kind: 'deleted' });
  });

  test('is not kept for another one, not even of the same order', async () => {
    await world.createBucket();
    await enable({ retentionDays: 0 });
    await world.put(a);
    const before = await read();
    await world.remove(a);
    await world.put(a);
    expect((await read()).order).toBe(before.order);
    expect(await keep(before)).toEqual({ kind: 'other-version' });
    expect(await complianceOf()).toBeUndefined();
  });

  test('comes with a version that is put with it, where compliance is enabled', async () => {
    await world.createBucket();
    await world.put(a, { version: { protection: { compliance: { sha256 } } } });
    expect(await read()).not.toHaveProperty('protection');
    await enable({ retentionDays: 0, conditionalHold: true });
    await world.put(a, { version: { protection: { compliance: { sha256 } } } });
    expect(await complianceOf()).toEqual({ conditionalHold: true, sha256 });
  });
});
