// What a prefix's MOVE has met and could not rename: where it lies, and that it is neither written nor read again and again.
import { beforeEach, expect, test } from 'vitest';
import { beginMove, DRIVER, driveJob, moveCalls } from '../../../tests/support/metadata/drive-job.ts';
import { type MetadataShards, OWNER } from '../../../tests/support/metadata/metadata-shards.ts';
import { type Background, DAY, openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import { noteReads } from '../../../tests/support/metadata/noted-reads.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';
import { jobCodec, type MoveError, type MovePrefixJob } from '../../types/records/job-record.ts';
import { rowKey } from '../engine/row-keys.ts';
import { driveMove } from '../moves/drive-move.ts';
import { TABLES } from '../schema/keyspace.ts';
import { jobRow } from './jobs.ts';

let background: Background;
let world: MetadataShards;
beforeEach(async () => {
  background = await openBackground();
  ({ world } = background);
});

const names = (count: number) => Array.from({ length: count }, (_, at) => `${'k'.repeat(60)}${1000 + at}`);

/** All that is under `a/` is under `b/`, too. */
async function putTwice(count: number): Promise<string[]> {
  for (const name of names(count)) for (const prefix of ['a/', 'b/']) await world.put(prefix + name);
  return names(count).map((name) => `a/${name}`);
}

const moveInSteps = (job: MovePrefixJob) => ({
  ...moveCalls(world, job),
  others: { areWaiting: () => true, rest: async () => {} },
});

const errorsOf = async (job: MovePrefixJob) =>
  ((await moveCalls(world, job).findJob())?.job.errors ?? []).map(({ sourceKey }) => sourceKey as string);

const countOf = async (table: 'jobs' | 'jobErrors') => {
  const { id } = TABLES[table];
  const all = {
    gte: rowKey(0, TABLES[table], new Uint8Array(0)),
    lt: rowKey(0, { id: id + 1, column: 'rows' }, new Uint8Array(0)),
  };
  return (await world.kv.range({ column: 'rows', ...all, limit: 10_000 })).length;
};

/** The bytes that are written meanwhile. */
async function bytesOf(work: () => Promise<unknown>): Promise<number> {
  const { kv } = world;
  const { commit } = kv;
  let bytes = 0;
  kv.commit = (puts, ...rest) => {
    for (const { key, value } of puts) bytes += key.length + (value?.length ?? 0);
    return commit.call(kv, puts, ...rest);
  };
  await work();
  kv.commit = commit;
  return bytes;
}

test('is written once, is told in its order, and goes with its job', async () => {
  const keys = await putTwice(600);
  await world.put('a/z');
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  const steps: number[] = [];
  const walk = driveMove(moveInSteps(job), job);
  for (let isDone: boolean | undefined = false; !isDone; )
    steps.push(await bytesOf(async () => (isDone = (await walk.next()).done)));
  // Its errors together have 150 KB.
  const allBytes = steps.reduce((sum, bytes) => sum + bytes);
  expect(allBytes).toBeGreaterThan(100_000);
  expect(allBytes).toBeLessThan(250_000);
  expect(await errorsOf(job)).toEqual(keys);
  expect(await countOf('jobErrors')).toBeGreaterThan(5);
  world.clock.advance(2 * DAY);
  await background.run('jobs');
  expect([await countOf('jobs'), await countOf('jobErrors')]).toEqual([0, 0]);
});

test('is not written when the driver says that it goes on', async () => {
  await putTwice(100);
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  const walk = driveMove(moveInSteps(job), job);
  await walk.next();
  const held = () => world.execute('hold-move', { jobId: job.jobId, driver: DRIVER, leaves: false });
  expect(await bytesOf(held)).toBeLessThan(10_000);
  await walk.return();
});

/** A job as an earlier release has left it: with all errors in its row. */
async function plantOld(): Promise<{ job: MovePrefixJob; errors: string[] }> {
  const job = await beginMove(world, { from: 'a/', to: 'b/' });
  const errors = names(LIMITS.moveErrorsKeptMax - 10).map(
    (name): MoveError => ({
      sourceKey: `a/before/${name}` as ObjectKey,
      destinationKey: `b/before/${name}`,
      code: 'AccessDenied',
      message: 'm'.repeat(80),
    }),
  );
  const { driver: _, keptBytes: _kept, ...left } = { ...job, errors, errorCount: errors.length };
  const { table, key } = jobRow(job.jobId);
  await world.kv.commit([{ column: 'rows', key: rowKey(0, table, key), value: jobCodec.encode(left) }]);
  return { job: left, errors: errors.map(({ sourceKey }) => sourceKey) };
}

test('of a job of an earlier release is kept, and what is met then comes behind it', async () => {
  const keys = await putTwice(20);
  const { job, errors } = await plantOld();
  expect(await errorsOf(job)).toEqual(errors);
  await driveJob(world, job);
  expect(await errorsOf(job)).toEqual([...errors, ...keys.slice(0, 10)]);
  expect(await countOf('jobErrors')).toBe(1);
});

test('is not read by who looks for jobs that are left, and no more rows at once than a page may have', async () => {
  for (let at = 0; at < LIMITS.jobsPerAccountMax; at++) await plantOld();
  const reads = noteReads(world.kv);
  const query = { kind: 'move-prefix', limit: 100 } as const;
  const first = await world.query('list-open-jobs', query);
  expect(first.jobs.length).toBeLessThan(LIMITS.jobsPerAccountMax);
  expect(first.jobs).toMatchObject(first.jobs.map(() => ({ owner: OWNER, errors: [] })));
  expect(reads.largestBytes()).toBeLessThan(LIMITS.queryPageBytesMax + 300_000);
  world.clock.advance(LIMITS.jobStallTimeoutMs);
  await background.run('drive');
  expect((await world.query('list-open-jobs', query)).jobs).toEqual([]);
});
