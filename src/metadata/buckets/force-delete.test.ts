// Force delete of a bucket (service 3 and 4.1; extensions 2.5) by its home and its worker: nothing is written while it is
// inspected, nothing is deleted when a version is protected, and everything otherwise, whatever drives it.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  beginUpload,
  type MetadataShards,
  OWNER,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { MINUTE } from '../../../tests/support/metadata/metadata-workers.ts';
import { inSlices } from '../../../tests/support/run/in-slices.ts';
import { must } from '../../base/assert.ts';
import type { DeleteRules } from '../../types/delete-blocker.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, JobId, ObjectKey, VersionId } from '../../types/names.ts';
import { rowKey } from '../engine/row-keys.ts';
import { keepOutcome } from '../outcomes/tokens.ts';
import type { TABLES } from '../schema/keyspace.ts';
import { createMetadataMachine } from '../state-machine.ts';
import { createUploadExpiry } from '../uploads/expire-uploads-worker.ts';
import { createJobForgetter } from '../workers/forget-by-age.ts';
import { type ClosingCalls, driveClosing, LOOK_ROWS_MAX } from './drive-closing.ts';
import { EMPTY_LINKS_MAX, EMPTY_ROWS_MAX } from './empty-bucket.ts';
import { createBucketEmptier } from './empty-buckets.ts';

/** What has to stay: the versions whose ETag begins so. */
let keptEtag: string | undefined;
let mayBlock = true;
const rules: DeleteRules = {
  mayBlockDeletes: () => mayBlock,
  deleteBlocker: ({ etag }) =>
    keptEtag !== undefined && etag.startsWith(keptEtag) ? { by: 'retention' } : undefined,
};
const machine = createMetadataMachine(rules);

let world: MetadataShards;
let emptier: ReturnType<typeof createBucketEmptier>;
beforeEach(async () => {
  [keptEtag, mayBlock] = [undefined, true];
  world = await openMetadata({ machine });
  await world.createBucket('enabled');
  emptier = createBucketEmptier({ metadata: world.shards, shards: () => [0], clock: world.clock });
});

const bucketOf = async () => must((await world.query('get-bucket', { bucketId: BUCKET })).bucket, 'a bucket');
const jobOf = async (jobId: JobId) => (await world.query('get-job', { jobId })).job;
const close = async () => {
  const outcome = await world.execute('close-bucket', { bucketId: BUCKET });
  if (outcome.kind !== 'closing') throw new Error(outcome.kind);
  return outcome.job;
};
const calls: ClosingCalls = {
  look: (query) => world.query('find-protected', query),
  step: (command) => world.execute('step-closing', command),
};
const work = () => emptier.work(new AbortController().signal);
async function workUntilIdle(): Promise<number> {
  for (let count = 1; ; count++) if ((await work()).state === 'idle') return count;
}
const usage = () => world.query('count-usage', {});
const rowCount = async (table: keyof typeof TABLES) => (await rowsOf(table)).length;
const rowsOf = async (table: keyof typeof TABLES) => {
  const { findings, rowCount: count } = await world.query('check-rows', {
    table: table as never,
    limit: 10_000,
    keyIds: ['k1'],
  });
  expect(findings).toEqual([]);
  return new Array(count).fill(0);
};

/** A key with two versions, one with a marker, one with an ordinary object. */
async function fill(): Promise<void> {
  for (const etag of ['1', '2']) await world.put('twice', { etag: etag.padEnd(32, '0') });
  await world.put('marked', { etag: '3'.padEnd(32, '0') });
  await world.remove('marked');
  await world.put('once', { etag: '4'.padEnd(32, '0') });
}

describe('while it is closing', () => {
  const booleanOf = async () => {
    const { cfgVersion } = await bucketOf();
    return { bucketId: BUCKET, name: BUCKET_NAME, cfgVersion };
  };

  test('reads are served, writes and renames are refused', async () => {
    await fill();
    const before = await booleanOf();
    await close();
    const query = { bucketId: BUCKET, prefix: '', max: 10 };
    const listed = await world.shards.query({ shard: 0, bucket: await booleanOf() }, 'list-objects', query);
    expect(listed).toMatchObject({ kind: 'done' });
    // Who knows it from before is told what it is now.
    for (const bucket of [before, await booleanOf()]) {
      const item = { key: 'once' as ObjectKey };
      const command = { bucketId: BUCKET, owner: (await bucketOf()).owner, items: [item] };
      expect(await world.shards.execute({ shard: 0, bucket }, 'delete-versions', command)).toMatchObject({
        kind: 'stale-bucket',
        bucket: { state: 'closing' },
      });
    }
    const names = { bucketId: BUCKET, from: BUCKET_NAME, to: 'other' as typeof BUCKET_NAME };
    expect(await world.execute('rename-bucket', { ...names, nameEpoch: 1 })).toEqual({ kind: 'refused' });
    expect(await world.execute('delete-bucket', { bucketId: BUCKET })).toEqual({ kind: 'no-such-bucket' });
  });

  test('a repeated request gets the same job, with any number of drivers', async () => {
    await fill();
    const job = await close();
    expect(await close()).toEqual(job);
    const outcomes = await Promise.all([1, 2, 3].map(() => driveClosing(calls, job)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(['deleted', 'deleted', 'deleted']);
    expect((await usage()).bucketCount).toBe(0);
    expect(await jobOf(job.jobId)).toMatchObject({ totalCount: 4 });
    expect(await world.execute('close-bucket', { bucketId: BUCKET })).toEqual({ kind: 'no-such-bucket' });
  });

  test('a late driver continues from there, and counts nothing twice', async () => {
    await fill();
    const job = await close();
    const { count, next } = await world.query('find-protected', { bucketId: BUCKET, limit: 2 });
    const step = { bucketId: BUCKET, jobId: job.jobId, stepCount: 0, count };
    const after = { kind: 'look', after: must(next, 'there is more') } as const;
    expect(await world.execute('step-closing', { ...step, next: after })).toMatchObject({ kind: 'looking' });
    // This one has looked at all by itself.
    const late = await world.execute('step-closing', { ...step, count: 5, next: { kind: 'delete' } });
    expect(late).toMatchObject({ kind: 'looking', job: { stepCount: 1, totalCount: 2 } });
    expect(await driveClosing(calls, job)).toMatchObject({ kind: 'deleted' });
    expect(await jobOf(job.jobId)).toMatchObject({ totalCount: 4, stage: 'older' });
  });
});

describe('a protected version', () => {
  test.each([
    ['1', 'an older version'],
    ['2', 'a latest one'],
    ['3', 'one below a marker'],
    ['4', 'an only one'],
  ])('%s: %s keeps all', async (etag) => {
    await fill();
    const [versions, counted, before] = [await world.versions(), await usage(), await bucketOf()];
    keptEtag = etag;
    const job = await close();
    expect(await driveClosing(calls, job)).toEqual({ kind: 'reopened' });
    expect(await driveClosing(calls, job)).toEqual({ kind: 'reopened' });
    expect([await world.versions(), await usage()]).toEqual([versions, counted]);
    const { cfgVersion } = before;
    expect(await bucketOf()).toEqual({ ...before, cfgVersion: cfgVersion + 2 });
    expect(await jobOf(job.jobId)).toMatchObject({ stage: 'refused', removedCount: 0 });
    await workUntilIdle();
    expect(await world.versions()).toEqual(versions);
    // It may be tried again, with a job of its own.
    keptEtag = undefined;
    expect(await driveClosing(calls, await close())).toMatchObject({ kind: 'deleted' });
  });

  test('is reported, wherever it is stored, and a look of any size finds it', async () => {
    await fill();
    keptEtag = '1';
    for (const limit of [1, 2, 3, 100]) {
      const found = [];
      for (let after: string | undefined, isWhole = false; !isWhole; ) {
        const query = { bucketId: BUCKET, ...(after !== undefined && { after }), limit };
        const { kept, next } = await world.query('find-protected', query);
        if (kept !== undefined) found.push(kept);
        [after, isWhole] = [next, next === undefined || kept !== undefined];
      }
      expect(found).toEqual([
        { key: 'twice', versionId: expect.any(String) as VersionId, blocker: { by: 'retention' } },
      ]);
    }
  });
});

test('nothing is inspected in a bucket that cannot have any, and all is counted the same', async () => {
  await fill();
  [keptEtag, mayBlock] = ['1', false];
  expect(await world.query('find-protected', { bucketId: BUCKET, limit: 1 })).toEqual({ count: 4 });
  const { jobId } = await close();
  expect(await driveClosing(calls, await close())).toMatchObject({ kind: 'deleted' });
  expect(await jobOf(jobId)).toMatchObject({ totalCount: 4, stepCount: 1 });
});

describe('the remaining data', () => {
  test('versions, markers, their links, tokens, uploads and counters are deleted, too', async () => {
    await fill();
    await inSlices(2 * EMPTY_ROWS_MAX + 10, (count) => world.put(`many-${count}`));
    const uploadId = await beginUpload(world, 'unfinished');
    await putPart(world, { key: 'unfinished', uploadId }, { partNumber: 1 });
    const job = await close();
    await driveClosing(calls, job);
    const counts: number[] = [];
    for (let isIdle = false; !isIdle; ) {
      isIdle = (await work()).state === 'idle';
      const { findings } = await world.query('check-counters', { counted: [] });
      expect(findings).toEqual([]);
      for (const table of ['objects', 'versionIds', 'buckets', 'jobs', 'links'] as const) await rowsOf(table);
      counts.push((await usage()).objectCount);
    }
    // Some at a time.
    expect(counts.length).toBeGreaterThan(5);
    expect([...counts].sort((a, b) => b - a)).toEqual(counts);
    expect(await usage()).toEqual({ objectCount: 0, sizeBytes: 0, bucketCount: 0 });
    for (const table of ['objects', 'versionIds', 'tokens', 'tokenTimes'] as const) {
      expect(await rowCount(table), table).toBe(0);
    }
    const total = 2 * EMPTY_ROWS_MAX + 14;
    expect(await jobOf(job.jobId)).toMatchObject({
      stage: 'emptied',
      totalCount: total,
      removedCount: total,
      endedAtMs: expect.any(Number),
    });
    expect(await bucketOf()).not.toHaveProperty('jobId');
    const { timeJumps } = world.shards;
    const deps = {
      metadata: world.shards,
      shards: () => [0],
      uploadKeptMs: 31 * 24 * 60 * MINUTE,
      timeJumps,
    };
    while ((await createUploadExpiry(deps).work(new AbortController().signal)).state === 'busy');
    expect([await rowCount('uploads'), await rowCount('deletedBuckets')]).toEqual([0, 0]);
  });

  test('an entry ends a bounded number of links', async () => {
    const links = 40;
    const one = world.newData();
    for (let count = 0; count < EMPTY_LINKS_MAX / links + 5; count++) {
      const data = Array.from({ length: links }, () => world.newData({ sizeBytes: 1 }));
      const uses = data.flatMap(({ uses }) => uses);
      const births = data.flatMap(({ grant }) => grant.births);
      const segments = uses.map((use, at) => ({ use: at, offsetBytes: 0, sizeBytes: use.sizeBytes }));
      const manifest = { ...one.manifest, uses, segments } as typeof one.manifest;
      await world.put(`k${count}`, {
        data: { sizeBytes: links, uses, manifest, grant: { births, links: [] } },
      });
    }
    await driveClosing(calls, await close());
    let most = 0;
    for (let isIdle = false, before = 0; !isIdle; ) {
      isIdle = (await work()).state === 'idle';
      const { ended } = await world.query('list-ended-links', { limit: 10_000 });
      most = Math.max(most, ended.length - before);
      before = ended.length;
    }
    expect(most).toBe(EMPTY_LINKS_MAX);
    expect((await usage()).objectCount).toBe(0);
  });

  test('tokens are deleted even without versions, and those of other buckets stay', async () => {
    const other = 'b000000000000002' as BucketId;
    for (const bucketId of [BUCKET, other]) {
      for (let count = 0; count < EMPTY_ROWS_MAX + 5; count++) {
        const token = { token: `token ${count}`, digest: 'd' };
        const view = { has: () => true, row: () => undefined, range: () => [] };
        const keeping = { owner: OWNER, nowMs: world.clock.wallMs(), view };
        const { puts } = keepOutcome({ bucketId, token }, {}, keeping);
        await world.kv.commit(
          puts.map(({ table, key, value }) => ({ column: 'rows', key: rowKey(0, table, key), value })),
        );
      }
    }
    await driveClosing(calls, await close());
    await workUntilIdle();
    for (const table of ['tokens', 'tokenTimes'] as const) {
      expect(await rowCount(table), table).toBe(EMPTY_ROWS_MAX + 5);
    }
  });

  test('an empty bucket leaves no job behind', async () => {
    const job = await close();
    expect(await driveClosing(calls, job)).toMatchObject({ kind: 'deleted', bucket: { state: 'deleted' } });
    expect(await jobOf(job.jobId)).toBeNull();
    expect(await driveClosing(calls, job)).toMatchObject({ kind: 'deleted' });
    expect(await bucketOf()).not.toHaveProperty('jobId');
  });

  test('a step that is behind, or late, does nothing', async () => {
    await fill();
    const job = await close();
    await driveClosing(calls, job);
    const command = { bucketId: BUCKET, jobId: job.jobId };
    for (const stepCount of [0, 7]) {
      expect(await world.execute('empty-bucket', { ...command, stepCount })).toEqual({ kind: 'elsewhere' });
    }
    await workUntilIdle();
    const { stepCount } = must((await jobOf(job.jobId)) ?? undefined, 'a job');
    expect(await world.execute('empty-bucket', { ...command, stepCount })).toEqual({ kind: 'elsewhere' });
  });
});

describe('a closing without a driver', () => {
  test('is left to its gateway for a while, then finished, also on an idle shard', async () => {
    await fill();
    const { jobId } = await close();
    world.clock.advance(LIMITS.jobStallTimeoutMs - 1);
    expect((await work()).state).toBe('idle');
    expect((await bucketOf()).state).toBe('closing');
    world.clock.advance(1);
    await workUntilIdle();
    expect((await bucketOf()).state).toBe('deleted');
    expect(await jobOf(jobId)).toMatchObject({ stage: 'emptied', removedCount: 4 });
    const { items } = await world.query('list-outbox', { limit: 10 });
    expect(items.map(({ record }) => record.kind)).toEqual(['forget-name']);
  });

  test('is refused if a version is protected', async () => {
    await fill();
    await close();
    keptEtag = '1';
    world.clock.advance(LIMITS.jobStallTimeoutMs);
    await workUntilIdle();
    expect((await bucketOf()).state).toBe('open');
  });

  test('continues step by step without waiting again once it was taken over', {
    timeout: 60_000,
  }, async () => {
    await inSlices(LOOK_ROWS_MAX + 5, (count) => world.put(`many-${count}`));
    await close();
    world.clock.advance(LIMITS.jobStallTimeoutMs);
    expect((await work()).state).toBe('busy');
    expect((await bucketOf()).state).toBe('closing');
    expect((await work()).state).toBe('busy');
    expect((await bucketOf()).state).toBe('deleted');
  });
});

test('a job is listed for a day after its end, and then removed', async () => {
  await fill();
  const { jobId } = await close();
  await driveClosing(calls, await close());
  await workUntilIdle();
  const { timeJumps } = world.shards;
  const forgetter = createJobForgetter({ metadata: world.shards, shards: () => [0], timeJumps });
  const forget = () => forgetter.work(new AbortController().signal);
  world.clock.advance(LIMITS.jobKeptMs - 1);
  await forget();
  expect(await jobOf(jobId)).not.toBeNull();
  world.clock.advance(2);
  await forget();
  expect(await jobOf(jobId)).toBeNull();
});
