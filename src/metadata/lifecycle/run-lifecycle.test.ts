// What lifecycle does to a bucket, by each kind of rule and in each state of versioning. When a pass runs, and what stops it, is
// in lifecycle-passes.test.ts.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  createLifecycleWorld,
  DAY,
  HOUR,
  type LifecycleWorld,
} from '../../../tests/support/metadata/lifecycle-world.ts';
import {
  BUCKET,
  beginUpload,
  type MetadataShards,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import {
  passTime,
  RETENTION_CASES,
  setRule,
  versioningsOf,
} from '../../../tests/support/metadata/retention-cases.ts';
import type { ObjectKey, VersionId } from '../../types/names.ts';

let world: MetadataShards;
let lifecycle: LifecycleWorld;

/** Begins at midnight. */
beforeEach(async () => {
  world = await openMetadata();
  lifecycle = createLifecycleWorld(world);
});

const idOf = async (key: string) => {
  const written = await world.put(key);
  if (written.kind !== 'committed') throw new Error(written.kind);
  return written.versionId;
};

const setVersioning = (status: 'enabled' | 'suspended') =>
  world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'versioning', document: { status } });

describe('Expiration by Days', () => {
  test('an object of an unversioned bucket goes at the midnight behind its days, and not before', async () => {
    await world.createBucket();
    world.clock.advance(10 * HOUR);
    await world.put('logs/a');
    await world.put('b');
    await lifecycle.putRules({ expiration: { days: 3 }, filter: { prefix: 'logs/' } });
    await lifecycle.run();
    world.clock.advance(3 * DAY + 13 * HOUR + 3599_999);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['b null*', 'logs/a null*']);
    world.clock.advance(1);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['b null*']);
    expect((await lifecycle.status())?.last?.counts).toEqual({
      examinedCount: 1,
      keptCount: 0,
      sizeBytes: 10,
      byAction: { expire: 1 },
    });
  });

  test('what was made at midnight has its whole last day', async () => {
    await world.createBucket();
    await world.put('a');
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(2 * DAY - 1);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a null*']);
    world.clock.advance(1);
    await lifecycle.run();
    expect(await world.versions()).toEqual([]);
  });

  test('a marker comes over the current version while versioning is enabled, once', async () => {
    await world.createBucket('enabled');
    await world.put('a');
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*-', 'a v1']);
    world.clock.advance(30 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*-', 'a v1']);
  });

  test('while it is suspended the marker takes the place of the null version, and leaves others', async () => {
    await world.createBucket('enabled');
    await world.put('older');
    await world.put('both');
    await setVersioning('suspended');
    await world.put('both');
    await world.put('null');
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual([
      'both null*-',
      'both v1',
      'null null*-',
      'older null*-',
      'older v1',
    ]);
    expect((await lifecycle.status())?.last?.counts.sizeBytes).toBe(20);
  });

  test('data of an expired object is free, and the counters of the bucket follow', async () => {
    await world.createBucket();
    const data = world.newData();
    await world.put('a', { data });
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    await world.markUnlinked();
    expect(await world.stateOf(...data.uses.map(({ blobId }) => blobId))).toEqual(['condemned']);
    expect(await world.query('count-usage', { bucketId: BUCKET })).toMatchObject({
      objectCount: 0,
      sizeBytes: 0,
    });
  });
});

test('Expiration by Date takes all that is there from that midnight on, and what comes later at the next', async () => {
  await world.createBucket();
  await world.put('a');
  await lifecycle.putRules({ expiration: { atMs: world.clock.wallMs() + 2 * DAY } });
  world.clock.advance(2 * DAY - 1);
  await lifecycle.run();
  expect(await world.versions()).toEqual(['a null*']);
  world.clock.advance(1);
  await lifecycle.run();
  expect(await world.versions()).toEqual([]);
  await world.put('late');
  world.clock.advance(DAY);
  await lifecycle.run();
  expect(await world.versions()).toEqual([]);
});

test('a filter takes what has its prefix, all its tags, and a size between its bounds', async () => {
  await world.createBucket();
  const put = (key: string, sizeBytes: number, ...tags: string[]) =>
    world.put(key, {
      data: world.newData({ sizeBytes }),
      version: { tags: tags.map((tag) => ({ key: tag, value: 'x' })) },
    });
  await put('p/small', 10, 'a', 'b');
  await put('p/large', 30, 'a', 'b');
  await put('p/fits', 20, 'c', 'a', 'b');
  await put('p/untagged', 20, 'a');
  await put('q/fits', 20, 'a', 'b');
  const tags = ['a', 'b'].map((key) => ({ key, value: 'x' }));
  const filter = { prefix: 'p/', tags, sizeGreaterThan: 10, sizeLessThan: 30 };
  await lifecycle.putRules({ expiration: { days: 1 }, filter });
  world.clock.advance(3 * DAY);
  await lifecycle.run();
  expect(await world.versions()).toEqual([
    'p/large null*',
    'p/small null*',
    'p/untagged null*',
    'q/fits null*',
  ]);
});

describe('NoncurrentVersionExpiration', () => {
  test('days count from the version that has replaced it; the current one stays', async () => {
    await world.createBucket('enabled');
    await world.put('a');
    world.clock.advance(10 * DAY);
    await world.put('a');
    await lifecycle.putRules({ noncurrentExpiration: { days: 2 } });
    world.clock.advance(3 * DAY - 1);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*', 'a v1']);
    world.clock.advance(1);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*']);
  });

  test('as many of the newest noncurrent ones stay as the rule says, of each key', async () => {
    await world.createBucket('enabled');
    for (let count = 0; count < 5; count++) for (const key of ['a', 'b']) await world.put(key);
    await world.remove('b');
    await lifecycle.putRules({ noncurrentExpiration: { days: 1, newerVersions: 2 } });
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v5*', 'a v4', 'a v3', 'b v6*-', 'b v5', 'b v4']);
    // One more is noncurrent: the oldest has been long enough.
    await world.put('a');
    world.clock.advance(DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v6*', 'a v5', 'a v4', 'b v6*-', 'b v5', 'b v4']);
  });

  test('a key with more versions than a page is done in one pass', async () => {
    await world.createBucket('enabled');
    for (let count = 0; count < 700; count++) await world.put('a');
    await lifecycle.putRules({ noncurrentExpiration: { days: 1, newerVersions: 3 } });
    world.clock.advance(2 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v700*', 'a v699', 'a v698', 'a v697']);
    expect(await lifecycle.done()).toEqual({ 'remove-noncurrent': 696 });
  });

  test.each([190, 191, 192, 193, 383, 384, 385])(
    'a null version below %i that are due goes with them, wherever a page ends',
    async (dueCount) => {
      await world.createBucket();
      await world.put('a');
      await setVersioning('enabled');
      for (let count = 0; count < dueCount; count++) await world.put('a');
      world.clock.advance(9 * DAY);
      // What was replaced nine days ago is due on the day behind this one, and this one long after.
      await world.put('a');
      await lifecycle.putRules({ noncurrentExpiration: { days: 5 } });
      await world.put('a');
      world.clock.advance(2 * DAY);
      await lifecycle.run();
      expect(await world.versions()).toEqual([
        `a v${dueCount + 3}*`,
        `a v${dueCount + 2}`,
        `a v${dueCount + 1}`,
      ]);
      expect(await lifecycle.done()).toEqual({ 'remove-noncurrent': dueCount });
    },
  );

  test('noncurrent markers go as versions do, but not by rules with sizes or tags', async () => {
    await world.createBucket('enabled');
    for (const key of ['a', 'b/c']) {
      await world.remove(key);
      await world.put(key);
    }
    await lifecycle.putRules(
      { noncurrentExpiration: { days: 1 }, filter: { prefix: 'b/' } },
      { noncurrentExpiration: { days: 1 }, filter: { sizeLessThan: 100 } },
    );
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*', 'a v1-', 'b/c v2*']);
  });
});

describe('delete markers', () => {
  test('ExpiredObjectDeleteMarker removes markers that are alone, and no others', async () => {
    await world.createBucket('enabled');
    await world.put('older');
    await world.remove('older');
    await world.remove('alone');
    await world.put('object');
    await lifecycle.putRules({ expiration: { expiredObjectDeleteMarker: true } });
    await lifecycle.run();
    expect(await world.versions()).toEqual(['object v1*', 'older v2*-', 'older v1']);
    await lifecycle.putRules({ expiration: { expiredObjectDeleteMarker: false } });
    await world.remove('other');
    world.clock.advance(9 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toContain('other v1*-');
  });

  test('a rule with Days removes a marker that is alone once it is old enough', async () => {
    await world.createBucket('enabled');
    await world.remove('a');
    await lifecycle.putRules({ expiration: { days: 2 } });
    world.clock.advance(3 * DAY - 1);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v1*-']);
    world.clock.advance(1);
    await lifecycle.run();
    expect(await world.versions()).toEqual([]);
  });

  test('the last noncurrent version and the marker over it go in one pass', async () => {
    await world.createBucket('enabled');
    await world.put('a');
    await world.remove('a');
    await lifecycle.putRules(
      { expiration: { expiredObjectDeleteMarker: true } },
      { noncurrentExpiration: { days: 1 } },
    );
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual([]);
    expect(await lifecycle.done()).toEqual({ 'remove-noncurrent': 1, 'remove-marker': 1 });
  });
});

test('uploads are aborted after their days, those of the rule’s prefix', async () => {
  await world.createBucket();
  const uploadId = await beginUpload(world, 'p/a');
  await putPart(world, { key: 'p/a', uploadId }, { partNumber: 1 });
  await beginUpload(world, 'q/b');
  await lifecycle.putRules({ abortUploadsAfterDays: 2, filter: { prefix: 'p/' } });
  const keys = async () =>
    (await world.query('list-uploads', { bucketId: BUCKET, prefix: '', max: 9 })).uploads.map(
      ({ key }) => key,
    );
  world.clock.advance(3 * DAY - 1);
  await lifecycle.run();
  expect(await keys()).toEqual(['p/a', 'q/b']);
  world.clock.advance(1);
  await lifecycle.run();
  expect(await keys()).toEqual(['q/b']);
  expect((await world.query('list-ended-uploads', { limit: 9 })).ended).toMatchObject([{ uploadId }]);
});

test('a rule that is disabled does nothing', async () => {
  await world.createBucket();
  await world.put('a');
  await lifecycle.putRules({ expiration: { days: 1 }, isEnabled: false });
  world.clock.advance(30 * DAY);
  await lifecycle.run();
  expect(await world.versions()).toEqual(['a null*']);
  expect(await lifecycle.status()).toBeNull();
});

test('what it removes and marks are events of their own', async () => {
  await world.createBucket('enabled');
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'events',
    document: { consumers: ['feed'] },
  });
  const versionId = await idOf('a');
  await world.put('a');
  await lifecycle.putRules({ expiration: { days: 1 }, noncurrentExpiration: { days: 1 } });
  world.clock.advance(3 * DAY);
  await lifecycle.run();
  const { events } = await world.query('list-events', { consumer: 'feed', limit: 9 });
  expect(events.slice(2).map(({ event }) => event)).toMatchObject([
    { type: 's3:LifecycleExpiration:Delete', key: 'a', versionId, sizeBytes: 10 },
    { type: 's3:LifecycleExpiration:DeleteMarkerCreated', key: 'a' },
  ]);
});

describe('retention and holds', () => {
  for (const retention of RETENTION_CASES) {
    for (const rule of retention.rules) {
      for (const versioning of versioningsOf(rule)) {
        const fate = retention.keeps ? 'stays' : 'goes';
        test(`${retention.name} (${rule}, ${versioning}): what is due ${fate}`, async () => {
          const key = 'a' as ObjectKey;
          await world.createBucket(versioning === 'unversioned' ? 'unversioned' : 'enabled');
          await setRule(world, retention, rule);
          const { given } = retention;
          const written = await world.put(key, {
            etag: '1'.repeat(32),
            version: given ? { protection: given } : {},
          });
          if (written.kind !== 'committed') throw new Error(written.kind);
          const { versionId } = written;
          if (versioning !== 'unversioned') await world.put(key, { etag: '2'.repeat(32) });
          if (versioning === 'suspended')
            await world.execute('set-bucket-config', {
              bucketId: BUCKET,
              kind: 'versioning',
              document: { status: 'suspended' },
            });
          const ofVersion = versioning === 'unversioned' ? {} : { versionId };
          await passTime(world, retention, { key, ...ofVersion });
          const passes = retention.later?.some((event) => typeof event === 'number') ?? false;
          if (!passes) world.clock.advance(3 * DAY);
          await lifecycle.putRules({ expiration: { days: 1 }, noncurrentExpiration: { days: 1 } });
          await lifecycle.run();
          const isThere = await findVersion(key, versionId);
          expect(isThere).toBe(retention.keeps);
          expect((await lifecycle.status())?.last?.counts.keptCount).toBeGreaterThanOrEqual(
            retention.keeps ? 1 : 0,
          );
        });
      }
    }
  }

  async function findVersion(key: string, versionId: VersionId): Promise<boolean> {
    const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: key, max: 9 });
    return versions.some((version) => version.versionId === versionId && !version.summary.isDeleteMarker);
  }

  test('a marker comes over a version that is kept', async () => {
    await world.createBucket('enabled');
    await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'objectLock', document: {} });
    await world.put('a', { version: { protection: { legalHold: true } } });
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*-', 'a v1']);
  });

  test('the null version that a marker would replace stays while it is kept', async () => {
    await world.createBucket('suspended');
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'compliance',
      document: { isEnabled: true, retentionDays: 30, conditionalHold: false, deleteAfterRetention: false },
    });
    await world.put('a');
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a null*']);
    expect((await lifecycle.status())?.last?.counts.keptCount).toBe(1);
    world.clock.advance(28 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a null*-']);
  });
});

describe('DeleteAfterRetention', () => {
  const settings = { isEnabled: true, retentionDays: 10, conditionalHold: false, deleteAfterRetention: true };
  const setCompliance = (document: typeof settings) =>
    world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'compliance', document });

  for (const versioning of ['unversioned', 'enabled', 'suspended'] as const) {
    test(`versions go for good once their retention has ended, current or not (${versioning})`, async () => {
      await world.createBucket(versioning);
      await world.put('a');
      await setCompliance(settings);
      world.clock.advance(5 * DAY + 1);
      await world.put('b');
      if (versioning === 'enabled') await world.put('a');
      world.clock.advance(5 * DAY - 2);
      await lifecycle.run();
      expect(await world.versions()).toContain(versioning === 'enabled' ? 'a v1' : 'a null*');
      world.clock.advance(DAY);
      await lifecycle.run();
      const left = versioning === 'enabled' ? ['a v2*', 'b v1*'] : ['b null*'];
      expect(await world.versions()).toEqual(left);
      world.clock.advance(5 * DAY);
      await lifecycle.run();
      expect(await world.versions()).toEqual([]);
    });
  }

  test('nothing goes while a hold is on, and it goes when the hold is released', async () => {
    await world.createBucket();
    await setCompliance({ ...settings, conditionalHold: true });
    await world.put('a');
    world.clock.advance(30 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a null*']);
    const key = 'a' as ObjectKey;
    const change = { kind: 'compliance', releasesHold: true } as const;
    await world.execute('set-protection', { bucketId: BUCKET, key, change });
    world.clock.advance(9 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a null*']);
    world.clock.advance(2 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual([]);
    expect(await lifecycle.done()).toEqual({ 'end-retention': 1 });
  });

  test('it ends with the setting', async () => {
    await world.createBucket();
    await world.put('a');
    await setCompliance(settings);
    await setCompliance({ ...settings, deleteAfterRetention: false });
    world.clock.advance(30 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a null*']);
  });
});
