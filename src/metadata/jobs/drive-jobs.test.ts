// Prefix MOVEs whose driver is gone, or not alone; and what becomes of them with their bucket, and after their end.
import { beforeEach, describe, expect, test } from 'vitest';
import { beginMove, DRIVER, driveJob, moveCalls } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import {
  type Background,
  DAY,
  MINUTE,
  openBackground,
} from '../../../tests/support/metadata/metadata-workers.ts';
import { noteReads } from '../../../tests/support/metadata/noted-reads.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId, BucketId, BucketName, JobId, ObjectKey } from '../../types/names.ts';
import type { MovePrefixJob } from '../../types/records/job-record.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { rowKey } from '../engine/row-keys.ts';
import { driveMove } from '../moves/drive-move.ts';
import { bucketRow } from '../schema/keyspace.ts';
import { createJobDriver } from './drive-jobs.ts';

let background: Background;
let world: MetadataShards;
beforeEach(async () => {
  background = await openBackground();
  ({ world } = background);
});

const keysOf = async () => {
  const page = await world.query('list-objects', { bucketId: BUCKET, prefix: '', max: 5000 });
  return page.objects.map(({ key }) => key as string);
};

async function putMany(count: number, prefix = 'a/'): Promise<string[]> {
  const names = Array.from({ length: count }, (_, at) => String(at).padStart(4, '0'));
  for (const name of names) await world.put(prefix + name);
  return names;
}

/** As a gateway whose client leaves when it is told of the first step: the second one is on its way by then. */
async function driveTwoSteps(job: MovePrefixJob): Promise<void> {
  for await (const _ of driveMove(moveCalls(world, job), job)) return;
}

/** The first step of such a job, with all keys that are found. */
async function firstStepOf({ bucketId, jobId, from, to }: MovePrefixJob) {
  const begin = { leg: 0 };
  const { keys } = await world.query('find-moves', { bucketId, from, to, cursor: begin, keysMax: 500 });
  return { bucketId, jobId, driver: DRIVER, stepCount: 0, begin, from, to, keys };
}

async function jobOf({ jobId }: { jobId: JobId }): Promise<MovePrefixJob | undefined> {
  return (await moveCalls(world, { jobId }).findJob())?.job;
}

test('an abandoned job is driven to its end, and no sooner', async () => {
  const names = await putMany(2 * LIMITS.moveKeysMax + 100);
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  await driveTwoSteps(job);
  await background.run('drive');
  expect((await jobOf(job))?.stepCount).toBe(2);
  world.clock.advance(LIMITS.jobStallTimeoutMs);
  await background.run('drive');
  expect(await jobOf(job)).toMatchObject({ movedCount: names.length, errorCount: 0 });
  expect((await jobOf(job))?.endedAtMs).toBeDefined();
  expect(await keysOf()).toEqual(names.map((name) => `b/${name}`));
  expect(await world.query('list-open-jobs', { kind: 'move-prefix', limit: 10 })).toMatchObject({ jobs: [] });
});

test('after a crash at any moment the walk continues where its last entry says', async () => {
  const names = await putMany(20);
  const before = await beginMove(world, { from: 'a/', to: 'a/b/' });
  await driveTwoSteps(before);
  await world.shards.close();
  const reopened = await openMetadata({ kv: world.kv, clock: world.clock });
  const job = (await moveCalls(reopened, before).findJob())?.job ?? before;
  await driveJob(reopened, job);
  world = reopened;
  expect(await keysOf()).toEqual(names.map((name) => `a/b/${name}`));
});

test('a job that cannot continue does not delay the others', async () => {
  await world.put('a/1');
  await world.put('c/1');
  const stuck = await beginMove(world, { from: 'a/', to: 'b/' });
  world.clock.advance(1);
  const other = await beginMove(world, { from: 'c/', to: 'd/' });
  world.clock.advance(LIMITS.jobStallTimeoutMs);
  const { shards } = world;
  const metadata = {
    shardCount: 1,
    query: shards.query,
    execute: async (...call: Parameters<typeof shards.execute>) => {
      const [, , command] = call;
      if ('jobId' in command && command.jobId === stuck.jobId) throw new Error('not this one');
      return shards.execute(...call);
    },
  } as never;
  const driver = createJobDriver({ metadata, shards: () => [0], clock: world.clock });
  const { failures } = await driver.work(new AbortController().signal);
  expect(failures).toEqual([new Error('not this one')]);
  expect((await jobOf(other))?.endedAtMs).toBeDefined();
  expect((await jobOf(stuck))?.endedAtMs).toBeUndefined();
});

test('two drivers: each step is made once, and the other driver is told', async () => {
  await putMany(10);
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  const { bucketId, jobId, from, to } = job;
  const { keys } = await world.query('find-moves', { bucketId, from, to, cursor: { leg: 0 }, keysMax: 100 });
  const some = keys.slice(0, 4);
  const after = some.at(-1) as ObjectKey;
  const begin = { leg: 0 };
  const step = {
    bucketId,
    jobId,
    driver: DRIVER,
    stepCount: 0,
    begin,
    from,
    to,
    keys: some,
    cursor: { leg: 0, after },
  };
  expect(await world.execute('step-move', step)).toMatchObject({ kind: 'stepped' });
  expect(await world.execute('step-move', step)).toMatchObject({ kind: 'elsewhere', job: { stepCount: 1 } });
  // Somebody else makes none while this driver goes on.
  const next = { ...step, stepCount: 1, begin: { leg: 0, after }, keys: keys.slice(4, 6), driver: 'another' };
  expect(await world.execute('step-move', next)).toMatchObject({
    kind: 'elsewhere',
    job: { driver: DRIVER },
  });
  const steps = [];
  for await (const made of driveMove({ ...moveCalls(world, job), driver: 'another' }, job)) steps.push(made);
  expect(steps).toEqual([]);
  expect((await jobOf(job))?.movedCount).toBe(4);
});

describe('the driver of a job', () => {
  const step = async (job: MovePrefixJob, driver: string) => {
    const { bucketId, jobId, from, to } = job;
    const { stepCount = 0, after } = (await jobOf(job)) ?? {};
    const cursor = { leg: 0, ...(after && { after }) };
    const { keys } = await world.query('find-moves', { bucketId, from, to, cursor, keysMax: 1 });
    const end = { leg: 0, after: keys[0] as ObjectKey };
    const command = { bucketId, jobId, driver, stepCount, begin: cursor, from, to, keys, cursor: end };
    return (await world.execute('step-move', command)).kind;
  };
  const hold = ({ jobId }: MovePrefixJob, driver: string, leaves = false) =>
    world.execute('hold-move', { jobId, driver, leaves });

  test('is silent for too long: others may continue, and then it may not', async () => {
    await putMany(5);
    const job = await beginMove(world, { from: 'a/', to: 'b/' });
    world.clock.advance(LIMITS.jobStallTimeoutMs - 1);
    expect(await step(job, 'another')).toBe('elsewhere');
    await hold(job, DRIVER);
    world.clock.advance(LIMITS.jobStallTimeoutMs - 1);
    expect(await step(job, 'another')).toBe('elsewhere');
    // Others do not speak for it.
    await hold(job, 'another');
    await hold(job, 'another', true);
    world.clock.advance(1);
    expect(await step(job, 'another')).toBe('stepped');
    expect(await step(job, DRIVER)).toBe('elsewhere');
  });

  test('leaves: others may continue at once', async () => {
    await putMany(5);
    const job = await beginMove(world, { from: 'a/', to: 'b/' });
    await hold(job, DRIVER, true);
    await background.run('drive');
    expect(await jobOf(job)).toMatchObject({ movedCount: 5, endedAtMs: expect.any(Number) });
  });

  test('has ended with its process: the job continues within five seconds', async () => {
    await putMany(5);
    const job = await beginMove(world, { from: 'a/', to: 'b/' });
    expect(await step(job, DRIVER)).toBe('stepped');
    await world.shards.close();
    const reopened = await openMetadata({ kv: world.kv, clock: world.clock });
    const driver = createJobDriver({ metadata: reopened.shards, shards: () => [0], clock: world.clock });
    let waitedMs = 0;
    for (;;) {
      const outcome = await driver.work(new AbortController().signal);
      if ((await reopened.query('list-open-jobs', { kind: 'move-prefix', limit: 1 })).jobs.length === 0)
        break;
      if (outcome.state !== 'idle') continue;
      world.clock.advance(outcome.idleMs);
      waitedMs += outcome.idleMs;
    }
    expect(waitedMs).toBeLessThan(5000);
    world = reopened;
    expect(await jobOf(job)).toMatchObject({ movedCount: 5 });
  });
});

test('jobs of several accounts take turns, a step each, whatever one of them has begun', async () => {
  const other = 'b000000000001001' as BucketId;
  const owner = '000000001001' as AccountId;
  await world.execute('create-bucket', { bucketId: other, name: 'other' as BucketName, owner });
  for (let at = 0; at < 4; at++) await putMany(3 * LIMITS.moveKeysBesideOthersMax, `a${at}/`);
  const [own, ofOther] = [[] as JobId[], [] as JobId[]];
  for (let at = 0; at < 4; at++) own.push((await beginMove(world, { from: `a${at}/`, to: `b${at}/` })).jobId);
  world.clock.advance(1);
  const command = { bucketId: other, from: 'a/', to: 'b/', overwrites: false };
  const begun = await world.execute('begin-move', command);
  if (begun.kind === 'begun') ofOther.push(begun.job.jobId);
  world.clock.advance(LIMITS.jobStallTimeoutMs);
  const { shards } = world;
  const stepped: JobId[] = [];
  const metadata = {
    shardCount: 1,
    query: shards.query,
    execute: async (...call: Parameters<typeof shards.execute>) => {
      if ('jobId' in call[2]) stepped.push(call[2].jobId as JobId);
      return shards.execute(...call);
    },
  } as never;
  const driver = createJobDriver({ metadata, shards: () => [0], clock: world.clock });
  for (let isBusy = true; isBusy; ) {
    isBusy = (await driver.work(new AbortController().signal)).state === 'busy';
  }
  // The one that began last, behind all of the other account, is among the first two.
  expect(stepped.slice(0, 2)).toContain(ofOther[0]);
  // Those of the first account, which have three steps each, have theirs one after another.
  const firstOwn = stepped.filter((jobId) => own.includes(jobId)).slice(0, 4);
  expect(new Set(firstOwn)).toEqual(new Set(own));
  for (const jobId of [...own, ...ofOther]) expect((await jobOf({ jobId }))?.endedAtMs).toBeDefined();
});

test('two drivers with steps of different length skip no key', async () => {
  const names = await putMany(LIMITS.moveKeysMax + 100);
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  const calls = moveCalls(world, job);
  const others = { areWaiting: () => true, rest: async () => {} };
  let isOvertaken = false;
  const step: typeof calls.step = async (command) => {
    if (!isOvertaken) {
      isOvertaken = true;
      // A short step, before the first of two long ones that are on their way.
      const short = driveMove({ ...calls, others }, job);
      expect((await short.next()).value?.moved).toHaveLength(LIMITS.moveKeysBesideOthersMax);
      await short.return();
    }
    return calls.step(command);
  };
  for await (const _ of driveMove({ ...calls, step, pause: async () => true }, job));
  expect(await jobOf(job)).toMatchObject({ movedCount: names.length, endedAtMs: expect.any(Number) });
  expect(await keysOf()).toEqual(names.map((name) => `b/${name}`));
});

test('a waiting driver continues when the other one has left', async () => {
  await putMany(10);
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  const ended = { ...job, stepCount: 7 };
  const calls = { ...moveCalls(world, job), pause: async () => true };
  const moved = [];
  for await (const step of driveMove(calls, ended)) moved.push(...step.moved);
  expect(moved).toHaveLength(10);
});

describe('its bucket', () => {
  async function setState(state: 'open' | 'closing' | 'deleted'): Promise<void> {
    const { table, key } = bucketRow(BUCKET);
    const { bucket } = await world.query('get-bucket', { bucketId: BUCKET });
    if (bucket === null) throw new Error('no bucket');
    const value = bucketCodec.encode({ ...bucket, state });
    await world.kv.commit([{ column: table.column, key: rowKey(0, table, key), value }]);
  }

  test('is renamed: the job continues', async () => {
    await putMany(3);
    const job = await beginMove(world, { from: 'a/', to: 'b/' });
    const { bucket } = await world.query('get-bucket', { bucketId: BUCKET });
    const rename = { bucketId: BUCKET, from: bucket?.name, to: 'other', nameEpoch: bucket?.nameEpoch };
    expect(await world.execute('rename-bucket', rename as never)).toMatchObject({ kind: 'renamed' });
    expect((await driveJob(world, job)).ended?.movedCount).toBe(3);
  });

  test('is about to be deleted: the job waits', async () => {
    await putMany(3);
    const job = await beginMove(world, { from: 'a/', to: 'b/' });
    await setState('closing');
    expect((await driveJob(world, job)).steps).toEqual([]);
    await setState('open');
    expect((await driveJob(world, job)).ended?.movedCount).toBe(3);
  });

  test('is deleted: the job ends', async () => {
    const job = await beginMove(world, { from: 'a/', to: 'b/' });
    await world.execute('delete-bucket', { bucketId: BUCKET });
    const { steps, ended } = await driveJob(world, job);
    expect(steps).toEqual([]);
    expect(ended).toMatchObject({ movedCount: 0, endedAtMs: world.clock.wallMs() });
  });
});

test('a job is removed a day after its end, one under way never', async () => {
  const [ended, open] = [
    await beginMove(world, { from: 'a/', to: 'b/' }),
    await beginMove(world, { from: 'c/', to: 'd/' }),
  ];
  await driveJob(world, ended);
  world.clock.advance(LIMITS.jobKeptMs - MINUTE);
  await background.run('jobs');
  expect(await jobOf(ended)).toBeDefined();
  world.clock.advance(DAY);
  await background.run('jobs');
  expect(await jobOf(ended)).toBeUndefined();
  expect(await jobOf(open)).toBeDefined();
  expect(await world.execute('forget-jobs', { jobIds: [open.jobId] })).toEqual({ kind: 'forgotten' });
  expect(await jobOf(open)).toBeDefined();
});

test('their number is known without reading them', async () => {
  const countsOf = async () => {
    const { counts } = await world.query('count-jobs', {});
    const { findings } = await world.query('check-counters', { counted: [] });
    expect(findings).toEqual([]);
    return counts
      .filter(({ count }) => count > 0)
      .map(({ kind, state, count }) => `${kind} ${state} ${count}`);
  };
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  await beginMove(world, { from: 'c/', to: 'd/' });
  expect(await countsOf()).toEqual(['move-prefix under-way 2']);
  await driveJob(world, job);
  expect(await countsOf()).toEqual(['move-prefix under-way 1', 'move-prefix done 1']);
  const { jobs, next } = await world.query('list-jobs', { limit: 1 });
  expect(jobs).toHaveLength(1);
  const rest = await world.query('list-jobs', { limit: 2, ...(next && { before: next }) });
  expect([...jobs, ...rest.jobs].map(({ jobId }) => jobId)).toContain(job.jobId);
  expect(rest).not.toHaveProperty('next');
  world.clock.advance(LIMITS.jobKeptMs + DAY);
  await background.run('jobs');
  expect(await countsOf()).toEqual(['move-prefix under-way 1']);
});

test('an account has a bounded number under way in a shard, and so has the shard, where each other account may have one yet', async () => {
  const accountCount = LIMITS.jobsMax / LIMITS.jobsPerAccountMax;
  const othersCount = LIMITS.jobsWithOnlyOnesMax - LIMITS.jobsMax;
  const bucketIds = [BUCKET];
  for (let at = 1; at <= accountCount + othersCount; at++) {
    const bucketId = `b000000000001${String(at).padStart(3, '0')}` as BucketId;
    const owner = `000000001${String(at).padStart(3, '0')}` as AccountId;
    await world.execute('create-bucket', { bucketId, name: `other-${at}` as BucketName, owner });
    bucketIds.push(bucketId);
  }
  const begin = (bucketId = BUCKET, at = 0) =>
    world.execute('begin-move', { bucketId, from: `a${at}/`, to: 'b/', overwrites: false });
  const began: MovePrefixJob[] = [];
  for (const bucketId of bucketIds.slice(0, accountCount)) {
    for (let at = 0; at < LIMITS.jobsPerAccountMax; at++) {
      const begun = await begin(bucketId, at);
      if (begun.kind === 'begun') began.push(begun.job);
    }
    expect(await begin(bucketId)).toEqual({ kind: 'too-many-jobs' });
  }
  expect(began).toHaveLength(LIMITS.jobsMax);
  for (const bucketId of bucketIds.slice(accountCount, -1)) {
    expect(await begin(bucketId)).toMatchObject({ kind: 'begun' });
    expect(await begin(bucketId)).toEqual({ kind: 'too-many-jobs' });
  }
  const last = bucketIds.at(-1);
  expect(await begin(last)).toEqual({ kind: 'too-many-jobs' });
  await driveJob(world, began[0] as MovePrefixJob);
  expect(await begin(last)).toMatchObject({ kind: 'begun' });
});

test('under a token the same job is returned, and another request is refused', async () => {
  const command = {
    bucketId: BUCKET,
    from: 'a/',
    to: 'b/',
    overwrites: false,
    token: { token: 't', digest: 'd' },
  };
  const begun = await world.execute('begin-move', command);
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  const { jobId } = begun.job;
  expect(await world.execute('begin-move', command)).toEqual({ kind: 'began-before', jobId });
  const other = { ...command, token: { token: 't', digest: 'other' } };
  expect(await world.execute('begin-move', other)).toEqual({ kind: 'token-reused' });
});

test('errors beyond those that are stored are counted', async () => {
  const count = LIMITS.moveErrorsKeptMax + 5;
  await putMany(count, 'a/');
  await putMany(count, 'b/');
  const { ended } = await driveJob(world, await beginMove(world, { from: 'a/', to: 'b/' }));
  expect(ended).toMatchObject({ movedCount: 0, errorCount: count });
  expect(ended?.errors).toHaveLength(LIMITS.moveErrorsKeptMax);
});

test('a step moves no more than an entry may hold: a key with more takes several', async () => {
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  const sealedHeaders = new Uint8Array(1024 * 1024);
  const large = (key: string) => world.put(key, { version: { sealedHeaders } });
  for (let at = 0; at < 6; at++) for (const key of ['a/1', 'a/2', 'a/3']) await large(key);
  for (let at = 0; at < 34; at++) await large('a/4');
  const { steps, ended } = await driveJob(world, await beginMove(world, { from: 'a/', to: 'b/' }));
  expect(steps.map(({ moved }) => moved.map(({ from }) => from))).toEqual([
    ['a/1'],
    ['a/2'],
    ['a/3'],
    // Its latest version; those below it, up to as many MiB as one entry holds; and the end of the walk.
    ...Array.from({ length: 1 + Math.ceil(33 / (LIMITS.moveBytesMax / sealedHeaders.length)) }, () => [
      'a/4',
    ]),
    [],
  ]);
  expect(ended).toMatchObject({ movedCount: 18 + 34, errorCount: 0 });
});

test('of long keys with several versions fewer go in one step, so that none keeps the thread for long', async () => {
  const document = { status: 'enabled' as const };
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'versioning', document });
  const long = 'x'.repeat(900);
  for (let version = 0; version < 3; version++)
    for (let at = 0; at < 300; at++) await world.put(`a/${long}${at}`);
  const { steps, ended } = await driveJob(world, await beginMove(world, { from: 'a/', to: 'b/' }));
  const counts = steps.map(({ moved }) => new Set(moved.map(({ from }) => from)).size);
  // Two rows of each of the older versions go, and two come, with their keys.
  expect(Math.max(...counts)).toBeLessThan(LIMITS.moveStepBytesMax / (2 * 4 * long.length));
  expect(ended).toMatchObject({ movedCount: 900, errorCount: 0 });
});

test('keys that have grown since they were found are listed again, fewer at once', async () => {
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  const keys = ['a/1', 'a/2', 'a/3', 'a/4', 'a/5'];
  for (const key of keys) await world.put(key);
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  const step = await firstStepOf(job);
  expect(step.keys).toEqual(keys);
  const sealedHeaders = new Uint8Array(1024 * 1024);
  for (let at = 0; at < 10; at++)
    for (const key of keys) await world.put(key, { version: { sealedHeaders } });
  expect(await world.execute('step-move', step)).toEqual({ kind: 'too-much', job });
  expect((await driveJob(world, job)).ended).toMatchObject({ movedCount: 55, errorCount: 0 });
});

test('rows at the new names count, too: they are not read at once, and fewer keys are listed', async () => {
  const rowBytes = 1024 * 1024;
  const sealedHeaders = new Uint8Array(rowBytes);
  const names = Array.from({ length: 50 }, (_, at) => String(at).padStart(2, '0'));
  for (const name of names) {
    await world.put(`a/${name}`);
    await world.put(`b/${name}`, { version: { sealedHeaders } });
  }
  const reads = noteReads(world.kv);
  const { steps, ended } = await driveJob(world, await beginMove(world, { from: 'a/', to: 'b/' }));
  expect(steps.map(({ moved }) => moved.length)).toEqual([13, 13, 13, 11]);
  expect(reads.largestBytes()).toBeLessThan(2 * LIMITS.moveBytesMax + 2 * rowBytes);
  expect(ended).toMatchObject({ movedCount: 0, errorCount: 50, endedAtMs: expect.any(Number) });
});

describe('rows that are looked up separately are not read at once', () => {
  const rowBytes = 512 * 1024;
  const version = { sealedHeaders: new Uint8Array(rowBytes) };
  const names = Array.from({ length: 100 }, (_, at) => `2/${100 + at}`);
  const readBytesMax = 64 * 1024 * 1024;
  beforeEach(() =>
    world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'enabled' },
    }),
  );

  test('behind many small ones, which one range does not pass', async () => {
    await world.put('a/0');
    for (const name of names) await world.put(`a/${name}`);
    for (let at = 0; at < 2 * LIMITS.moveKeysMax + 10; at++) await world.put(`b/1/${at}`);
    for (const name of names) await world.put(`b/${name}`, { version });
    const reads = noteReads(world.kv);
    const { ended } = await driveJob(world, await beginMove(world, { from: 'a/', to: 'b/' }));
    expect(ended).toMatchObject({ movedCount: 1, errorCount: names.length });
    expect(reads.largestBytes()).toBeLessThan(readBytesMax);
  });

  test('null versions below others', async () => {
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'suspended' },
    });
    for (const name of names) await world.put(`a/${name}`);
    for (const name of names) await world.put(`b/${name}`, { version });
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'enabled' },
    });
    for (const name of names) await world.remove(`b/${name}`);
    // Only a bucket that writes null versions replaces them.
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'suspended' },
    });
    const reads = noteReads(world.kv);
    const { ended } = await driveJob(
      world,
      await beginMove(world, { from: 'a/', to: 'b/', overwrites: true }),
    );
    expect(ended).toMatchObject({ movedCount: names.length, errorCount: 0 });
    expect(reads.largestBytes()).toBeLessThan(readBytesMax);
    expect(await keysOf()).toEqual(names.map((name) => `b/${name}`));
  });

  test('versions that have come since the keys were found', async () => {
    for (const name of names) for (let at = 0; at < 2; at++) await world.put(`a/${name}`);
    const job = await beginMove(world, { from: 'a/', to: 'b/' });
    const step = await firstStepOf(job);
    expect(step.keys).toHaveLength(names.length);
    for (let at = 0; at < 2; at++) for (const name of names) await world.put(`a/${name}`, { version });
    await world.put(`a/${names[0]}`);
    const reads = noteReads(world.kv);
    expect(await world.execute('step-move', step)).toEqual({ kind: 'too-much', job });
    expect((await driveJob(world, job)).ended).toMatchObject({
      movedCount: 4 * names.length + 1,
      errorCount: 0,
    });
    expect(reads.largestBytes()).toBeLessThan(readBytesMax);
  });
});

test('a step that meets many other keys between its own finds them all', async () => {
  // More strangers than the range over new names holds, and older versions in great number.
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  for (let at = 0; at < 2 * LIMITS.moveKeysMax + 10; at++) await world.put(`b/1/${at}`);
  for (const key of ['a/0', 'a/2', 'a/2', 'b/2']) await world.put(key);
  const { ended } = await driveJob(world, await beginMove(world, { from: 'a/', to: 'b/' }));
  expect(ended).toMatchObject({ movedCount: 1, errors: [{ sourceKey: 'a/2', code: 'ObjectAlreadyExists' }] });
});
