// When the lifecycle of a bucket is looked at, what a commit takes that was found before, and how a pass goes on.
import { beforeEach, describe, expect, test } from 'vitest';
import { beginMove, driveJob } from '../../../tests/support/metadata/drive-job.ts';
import {
  createLifecycleWorld,
  DAY,
  HOUR,
  type LifecycleWorld,
  rulesFrom,
} from '../../../tests/support/metadata/lifecycle-world.ts';
import {
  BUCKET,
  beginUpload,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { LifecyclePage } from '../../ports/metadata/lifecycle.ts';
import type { OutcomeOf } from '../../ports/metadata/port.ts';
import type { LifecycleRule } from '../../types/lifecycle.ts';
import type { BucketName, ObjectKey } from '../../types/names.ts';
import { refuseGrowth } from '../refuse-growth.ts';

const signal = new AbortController().signal;

let world: MetadataShards;
let lifecycle: LifecycleWorld;

beforeEach(async () => {
  world = await openMetadata();
  lifecycle = createLifecycleWorld(world);
});

describe('what is not due', () => {
  test('costs one look at the queue', async () => {
    await world.createBucket();
    for (let at = 0; at < 20; at++) await world.put(`k${at}`);
    await lifecycle.putRules({ expiration: { days: 30 } });
    await lifecycle.run();
    lifecycle.calls.length = 0;
    world.clock.advance(HOUR);
    await lifecycle.run();
    expect(lifecycle.calls).toEqual(['list-due-lifecycles']);
  });

  test('is examined no more before it can be, and looked at each midnight by its row alone', async () => {
    await world.createBucket();
    await world.put('a');
    await lifecycle.putRules({ expiration: { days: 30 } });
    await lifecycle.run();
    expect((await lifecycle.status())?.last?.counts.examinedCount).toBe(1);
    const { last } = (await lifecycle.status()) ?? {};
    for (let day = 1; day <= 30; day++) {
      world.clock.advance(DAY);
      lifecycle.calls.length = 0;
      await lifecycle.run();
      expect(lifecycle.calls).toEqual(['list-due-lifecycles', 'find-expirable', 'step-lifecycle']);
      expect((await lifecycle.status())?.last).toEqual(last);
    }
    world.clock.advance(DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual([]);
  });

  test('of other prefixes is not read', async () => {
    await world.createBucket();
    for (const key of ['a', 'b/1', 'b/2', 'c', 'd/1', 'e']) await world.put(key);
    await lifecycle.putRules(
      { expiration: { days: 90 }, filter: { prefix: 'd/' } },
      { expiration: { days: 90 }, filter: { prefix: 'b/' } },
      { expiration: { days: 90 }, filter: { prefix: 'b/2' } },
    );
    await lifecycle.run();
    expect((await lifecycle.status())?.last?.counts.examinedCount).toBe(3);
  });
});

describe('a change after which something that was there is due', () => {
  const rule = { expiration: { days: 1 }, filter: { tags: [{ key: 'tmp', value: '1' }] } };

  test('other tags', async () => {
    await world.createBucket();
    await world.put('a');
    await lifecycle.putRules(rule);
    world.clock.advance(10 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a null*']);
    const tags = [{ key: 'tmp', value: '1' }];
    await world.execute('set-tags', { bucketId: BUCKET, key: 'a' as ObjectKey, tags });
    world.clock.advance(DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual([]);
  });

  test('a rename', async () => {
    await world.createBucket();
    await world.put('keep/a');
    await lifecycle.putRules({ expiration: { days: 1 }, filter: { prefix: 'tmp/' } });
    world.clock.advance(10 * DAY);
    await lifecycle.run();
    await driveJob(world, await beginMove(world, { from: 'keep/', to: 'tmp/' }));
    world.clock.advance(DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual([]);
  });

  test('the end of the newer version, or of the last one below a marker', async () => {
    await world.createBucket('enabled');
    await world.put('a');
    await world.put('b');
    world.clock.advance(30 * DAY);
    const newer = await world.put('a');
    const marker = await world.remove('b');
    await lifecycle.putRules({ expiration: { days: 20 } });
    await lifecycle.run();
    if (newer.kind !== 'committed' || marker.kind !== 'deleted') throw new Error('not written');
    await world.remove('a', newer.versionId);
    const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: 'b', max: 9 });
    await world.remove('b', versions[1]?.versionId);
    world.clock.advance(21 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*-', 'a v1']);
  });

  test('other rules are looked at at once, but act on what is due by them only', async () => {
    await world.createBucket();
    await world.put('a');
    world.clock.advance(5 * DAY);
    await world.put('b');
    await lifecycle.putRules({ expiration: { days: 30 } });
    await lifecycle.run();
    await lifecycle.putRules({ expiration: { days: 3 } });
    await lifecycle.run();
    expect(await world.versions()).toEqual(['b null*']);
  });
});

test('after weeks off it catches up', async () => {
  await world.createBucket('enabled');
  await lifecycle.putRules({ expiration: { days: 2 }, noncurrentExpiration: { days: 2 } });
  for (let day = 0; day < 5; day++) {
    await world.put('a');
    await world.put(`b${day}`);
    world.clock.advance(DAY);
  }
  world.clock.advance(40 * DAY);
  const restarted = await openMetadata({ kv: world.kv, clock: world.clock, seed: 7 });
  await restarted.shards.timeJumps.accept(Number.POSITIVE_INFINITY);
  const after = createLifecycleWorld(restarted);
  await after.run();
  expect(await after.done()).toEqual({ 'remove-noncurrent': 4, 'make-marker': 6 });
  restarted.clock.advance(3 * DAY);
  await after.run();
  restarted.clock.advance(3 * DAY);
  await after.run();
  expect(await restarted.versions()).toEqual([]);
});

test('R19: after a jump of the clock nothing goes until the operator accepts it', async () => {
  await world.createBucket();
  await world.put('a');
  await lifecycle.putRules({ expiration: { days: 1 } });
  world.clock.advance(30 * DAY);
  let isAccepted = false;
  const worker = lifecycle.worker(() => isAccepted);
  while ((await worker.work(signal)).state === 'busy');
  expect(await world.versions()).toEqual(['a null*']);
  isAccepted = true;
  while ((await worker.work(signal)).state === 'busy');
  expect(await world.versions()).toEqual([]);
});

describe('what was found is decided anew in the commit', () => {
  const rule: Partial<LifecycleRule> = {
    expiration: { days: 1 },
    noncurrentExpiration: { days: 1 },
    abortUploadsAfterDays: 1,
  };

  async function found() {
    const result = await world.query('find-expirable', {
      bucketId: BUCKET,
      dayMs: DAY,
      rowsMax: 100,
      itemsMax: 100,
    });
    if (result.kind !== 'found' || result.page === undefined) throw new Error('nothing is due');
    return { ...result, page: result.page };
  }
  /** With the numbers of the row as it is now. */
  async function step(page: LifecyclePage): Promise<OutcomeOf<'step-lifecycle'>> {
    const { record } = await world.query('lifecycle-status', { bucketId: BUCKET });
    const { bucket } = await world.query('get-bucket', { bucketId: BUCKET });
    const { stepCount = 0, changeCount = 0 } = record ?? {};
    const numbers = { cfgVersion: bucket?.cfgVersion ?? 0, stepCount, changeCount, beganAtMs: 0, dayMs: DAY };
    return world.execute('step-lifecycle', { bucketId: BUCKET, ...numbers, page });
  }

  test('a rule that has been changed meanwhile takes nothing', async () => {
    await world.createBucket('enabled');
    await world.put('a');
    await world.put('a');
    await beginUpload(world, 'u');
    await lifecycle.putRules(rule);
    world.clock.advance(3 * DAY);
    for (const stage of ['uploads', 'noncurrent', 'current'] as const) {
      const query = { bucketId: BUCKET, dayMs: DAY, from: { stage }, rowsMax: 100, itemsMax: 100 };
      const result = await world.query('find-expirable', query);
      if (result.kind !== 'found' || result.page === undefined) throw new Error('nothing is due');
      expect(result.page.items).toHaveLength(1);
      await lifecycle.putRules({ ...rule, isEnabled: false }, { expiration: { days: 100 } });
      const outcome = await step(result.page);
      expect(outcome).toMatchObject({ kind: 'stepped', counts: { byAction: {} } });
      await lifecycle.putRules(rule);
    }
    expect(await world.versions()).toEqual(['a v2*', 'a v1']);
  });

  test('a step that was found under other settings is refused', async () => {
    await world.createBucket();
    await world.put('a');
    await lifecycle.putRules(rule);
    world.clock.advance(3 * DAY);
    const { page, cfgVersion, stepCount, changeCount, nowMs } = await found();
    await lifecycle.putRules({ ...rule, id: 'other' });
    const command = {
      bucketId: BUCKET,
      cfgVersion,
      stepCount,
      changeCount,
      beganAtMs: nowMs,
      dayMs: DAY,
      page,
    };
    expect(await world.execute('step-lifecycle', command)).toEqual({ kind: 'elsewhere' });
    expect(await world.versions()).toEqual(['a null*']);
  });

  test('a hold that was set meanwhile keeps the version, and an object that came meanwhile stays', async () => {
    await world.createBucket();
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'compliance',
      document: { isEnabled: true, retentionDays: 0, conditionalHold: false, deleteAfterRetention: false },
    });
    await world.put('held');
    await world.put('new');
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    const { page } = await found();
    expect(page.items).toHaveLength(2);
    const change = { kind: 'compliance', legalHold: true } as const;
    await world.execute('set-protection', { bucketId: BUCKET, key: 'held' as ObjectKey, change });
    await world.put('new');
    expect(await step(page)).toMatchObject({ kind: 'stepped', counts: { keptCount: 1, byAction: {} } });
    expect(await world.versions()).toEqual(['held null*', 'new null*']);
  });

  test('a noncurrent version that is the latest again stays', async () => {
    await world.createBucket('enabled');
    await world.put('a');
    const newer = await world.put('a');
    await lifecycle.putRules({ noncurrentExpiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    const { page } = await found();
    if (newer.kind !== 'committed') throw new Error(newer.kind);
    await world.remove('a', newer.versionId);
    expect(await step(page)).toMatchObject({ kind: 'stepped', counts: { byAction: {} } });
    expect(await world.versions()).toEqual(['a v1*']);
  });

  test('a marker that is not alone any more stays', async () => {
    await world.createBucket('enabled');
    await world.remove('a');
    await lifecycle.putRules({ expiration: { expiredObjectDeleteMarker: true } });
    const { page } = await found();
    await world.put('a');
    await world.remove('a');
    expect(await step(page)).toMatchObject({ kind: 'stepped', counts: { byAction: {} } });
    expect(await world.versions()).toHaveLength(3);
  });
});

describe('a pass', () => {
  test('goes on in the middle after a restart, and shows how far it is', async () => {
    await world.createBucket();
    for (let at = 0; at < 900; at++) await world.put(`k${at}`);
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    await lifecycle.worker().work(signal);
    const { objectCount, record } = await world.query('lifecycle-status', { bucketId: BUCKET });
    expect(objectCount).toBe(132);
    expect(record?.pass).toMatchObject({ place: { stage: 'current' }, counts: { examinedCount: 768 } });
    await lifecycle.run();
    expect((await lifecycle.status())?.last?.counts).toMatchObject({
      examinedCount: 900,
      byAction: { expire: 900 },
    });
  });

  test('of a large bucket leaves small ones their turn', async () => {
    await world.createBucket();
    for (let at = 0; at < 600; at++) await world.put(`k${at}`);
    const small = 'b000000000000002' as typeof BUCKET;
    await world.execute('create-bucket', { bucketId: small, name: 'small' as BucketName, owner: OWNER });
    await world.put('a', { bucketId: small });
    await lifecycle.putRules({ expiration: { days: 1 } });
    const document = { rules: rulesFrom([{ expiration: { days: 1 } }]) };
    await world.execute('set-bucket-config', { bucketId: small, kind: 'lifecycle', document });
    world.clock.advance(3 * DAY);
    await lifecycle.worker().work(signal);
    expect(
      (await world.query('lifecycle-status', { bucketId: small })).record?.last?.counts.byAction,
    ).toEqual({
      expire: 1,
    });
  });

  test('leaves versions that are kept to the next pass in which they may go', async () => {
    await world.createBucket('enabled');
    await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'objectLock', document: {} });
    const untilMs = world.clock.wallMs() + 20 * DAY;
    await world.put('a', { version: { protection: { retention: { mode: 'COMPLIANCE', untilMs } } } });
    await world.put('a');
    await lifecycle.putRules({ noncurrentExpiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    await lifecycle.run();
    expect((await lifecycle.status())?.last?.counts).toMatchObject({ keptCount: 1, byAction: {} });
    expect((await lifecycle.status())?.nothingBeforeMs).toBe(world.clock.wallMs() + 2 * DAY);
    world.clock.advance(17 * DAY);
    await lifecycle.run();
    expect(await world.versions()).toEqual(['a v2*']);
  });

  test('leaves a bucket alone that is being deleted, and ends with it', async () => {
    await world.createBucket();
    await world.put('a');
    await lifecycle.putRules({ expiration: { days: 1 } });
    world.clock.advance(3 * DAY);
    const { calls } = lifecycle;
    const closing = await world.execute('close-bucket', { bucketId: BUCKET });
    await lifecycle.run();
    expect(calls).toEqual(['list-due-lifecycles', 'find-expirable']);
    if (closing.kind !== 'closing') throw new Error(closing.kind);
    const { jobId } = closing.job;
    const next = { kind: 'delete' as const };
    await world.execute('step-closing', { bucketId: BUCKET, jobId, stepCount: 0, count: 1, next });
    expect(await lifecycle.status()).toBeNull();
    expect((await world.query('list-due-lifecycles', { limit: 9 })).due).toEqual([]);
  });

  test('is no more where all rules are taken away', async () => {
    await world.createBucket();
    await lifecycle.putRules({ expiration: { days: 1 } });
    await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'lifecycle', document: null });
    expect(await lifecycle.status()).toBeNull();
    expect((await world.query('list-due-lifecycles', { limit: 9 })).due).toEqual([]);
  });
});

test('on a disk with half of its reserve left it makes no delete markers, and goes on with what frees; they come later', async () => {
  let isHalfUsed = true;
  const reserve = {
    async hold(_sizeBytes: number, { isForFullDisk } = { isForFullDisk: false }) {
      return isHalfUsed || !isForFullDisk ? undefined : { release() {} };
    },
    measure: async () => ({ freeBytes: 0, totalBytes: 0 }),
  };
  lifecycle = createLifecycleWorld(world, (metadata) => refuseGrowth(metadata, reserve));
  await world.createBucket('enabled');
  const key = 'b' as ObjectKey;
  await world.put('a');
  await world.put('b');
  await world.put('b');
  await world.execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items: [{ key }] });
  const noncurrentExpiration = { days: 1, newerNoncurrentVersions: 0 };
  await lifecycle.putRules(
    { expiration: { days: 1 }, noncurrentExpiration },
    { expiration: { expiredObjectDeleteMarker: true } },
  );
  world.clock.advance(3 * DAY);
  await lifecycle.run();
  expect(await world.versions()).toEqual(['a v1*']);
  expect(await lifecycle.done()).toEqual({ 'remove-noncurrent': 2, 'remove-marker': 1 });
  world.clock.advance(DAY);
  await lifecycle.run();
  expect(await lifecycle.done()).toEqual({});
  isHalfUsed = false;
  world.clock.advance(DAY);
  await lifecycle.run();
  expect(await lifecycle.done()).toEqual({ 'make-marker': 1 });
});

test('a preview counts what the rules would do, now or later, page by page, and does nothing', async () => {
  await world.createBucket('enabled');
  for (const key of ['a', 'b', 'c']) await world.put(key);
  await world.put('a');
  const rules = rulesFrom([{ expiration: { days: 2 }, noncurrentExpiration: { days: 2 } }]);
  const preview = async (atMs?: number) => {
    const pages = [];
    for (let from: LifecyclePage['next']; ; ) {
      const ask = { bucketId: BUCKET, rules, dayMs: DAY, rowsMax: 2, firstMax: 1 };
      const page = await world.query('preview-lifecycle', {
        ...ask,
        ...(atMs !== undefined && { atMs }),
        ...(from && { from }),
      });
      pages.push(page);
      if (page.next === undefined) return pages;
      from = page.next;
    }
  };
  world.clock.advance(DAY);
  expect((await preview()).map(({ sums }) => sums)).toEqual([[], [], [], []]);
  const later = await preview(world.clock.wallMs() + 9 * DAY);
  const ofRule = { ruleId: rules[0]?.id, isKept: false };
  expect(later.map(({ sums }) => sums)).toEqual([
    [{ ...ofRule, action: 'remove-noncurrent', count: 1, sizeBytes: 10 }],
    [{ ...ofRule, action: 'make-marker', count: 2, sizeBytes: 0 }],
    [{ ...ofRule, action: 'make-marker', count: 1, sizeBytes: 0 }],
    [],
  ]);
  expect(later[0]?.first).toMatchObject([{ key: 'a', action: 'remove-noncurrent', sizeBytes: 10 }]);
  expect(later[1]?.first).toHaveLength(1);
  expect(await world.versions()).toHaveLength(4);
});

test('of what is due and kept a preview has the sum and the first ones', async () => {
  await world.createBucket('enabled');
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'objectLock', document: {} });
  const untilMs = world.clock.wallMs() + 20 * DAY;
  for (const key of ['a', 'a', 'b', 'b', 'c', 'c'])
    await world.put(key, { version: { protection: { retention: { mode: 'COMPLIANCE', untilMs } } } });
  const rules = rulesFrom([{ noncurrentExpiration: { days: 1 } }]);
  world.clock.advance(DAY);
  const atMs = world.clock.wallMs() + 9 * DAY;
  const query = { bucketId: BUCKET, rules, dayMs: DAY, atMs, rowsMax: 10, firstMax: 1 };
  expect(await world.query('preview-lifecycle', query)).toMatchObject({
    sums: [{ isKept: true, count: 3, sizeBytes: 30 }],
    first: [{ key: 'a', isKept: true }],
  });
});
