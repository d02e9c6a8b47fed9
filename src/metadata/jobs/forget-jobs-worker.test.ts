// Jobs that have ended and that no token leads to: kept while an answer may be told from them, then the newest of a shard
// for the operator; those with a token for a day, whatever else there is.
import { beforeEach, expect, test } from 'vitest';
import { beginMove, driveJob, moveCalls } from '../../../tests/support/metadata/drive-job.ts';
import { BUCKET, type MetadataShards, OWNER } from '../../../tests/support/metadata/metadata-shards.ts';
import {
  type Background,
  DAY,
  MINUTE,
  openBackground,
} from '../../../tests/support/metadata/metadata-workers.ts';
import { noteReads } from '../../../tests/support/metadata/noted-reads.ts';
import { LIMITS } from '../../types/limits.ts';
import { type JobId, makeJobId, type ObjectKey } from '../../types/names.ts';
import type { MoveError } from '../../types/records/job-record.ts';
import { rowKey } from '../engine/row-keys.ts';
import { changeJob } from './jobs.ts';

let background: Background;
let world: MetadataShards;
beforeEach(async () => {
  background = await openBackground();
  ({ world } = background);
});

/** Jobs that end one after the other, a millisecond apart, as if each had been brought to its end. */
async function plantEnded(
  count: number,
  { errors = [], hasToken = false }: { errors?: MoveError[]; hasToken?: boolean } = {},
): Promise<JobId[]> {
  const jobIds: JobId[] = [];
  for (let at = 0; at < count; at++) {
    world.clock.advance(1);
    const nowMs = world.clock.wallMs();
    const random = Buffer.alloc(8);
    random.writeUInt32BE(at);
    const jobId = makeJobId({ timeMs: nowMs, random });
    const { puts } = changeJob(undefined, {
      kind: 'move-prefix',
      owner: OWNER,
      jobId,
      bucketId: BUCKET,
      from: 'a/',
      to: 'b/',
      beganAtMs: nowMs,
      steppedAtMs: nowMs,
      endedAtMs: nowMs,
      stepCount: 1,
      overwrites: false,
      leg: 0,
      movedCount: 0,
      errorCount: errors.length,
      errors,
      ...(!hasToken && { isTokenless: true }),
    });
    await world.kv.commit(
      puts.map(({ table, key, value }) => ({ column: 'rows', key: rowKey(0, table, key), value })),
    );
    jobIds.push(jobId);
  }
  return jobIds;
}

/** Newest first. */
async function keptJobs(): Promise<JobId[]> {
  const all: JobId[] = [];
  for (let before: JobId | undefined; ; ) {
    const page = await world.query('list-jobs', { limit: 500, ...(before && { before }) });
    all.push(...page.jobs.map(({ jobId }) => jobId));
    before = page.next;
    if (before === undefined) return all;
  }
}

/** None of rows and index without the other. */
async function expectSound(): Promise<void> {
  for (const table of ['jobs', 'openJobs', 'endedJobs', 'jobErrors'] as const) {
    expect((await world.query('check-rows', { table, limit: 10_000, keyIds: [] })).findings).toEqual([]);
  }
}

test('of jobs without a token the newest stay, once no answer uses the others any more', async () => {
  const surplusCount = 300;
  const jobIds = await plantEnded(LIMITS.jobsShownMax + surplusCount);
  const [tokened = 'none'] = await plantEnded(1, { hasToken: true });
  world.clock.advance(LIMITS.tokenlessJobKeptMs - (LIMITS.jobsShownMax + surplusCount + 2));
  await background.run('jobs');
  expect(await keptJobs()).toHaveLength(LIMITS.jobsShownMax + surplusCount + 1);
  world.clock.advance(2 * (LIMITS.jobsShownMax + surplusCount));
  await background.run('jobs');
  expect(await keptJobs()).toEqual([tokened, ...jobIds.slice(surplusCount).reverse()]);
  await expectSound();

  const later = await plantEnded(2);
  world.clock.advance(LIMITS.tokenlessJobKeptMs + MINUTE);
  await background.run('jobs');
  const shown = [...later.toReversed(), tokened, ...jobIds.slice(surplusCount + 2).reverse()];
  expect(await keptJobs()).toEqual(shown);
  background.reopen();
  await background.run('jobs');
  expect(await keptJobs()).toEqual(shown);
  world.clock.advance(2 * DAY);
  await background.run('jobs');
  expect(await keptJobs()).toEqual([]);
  await expectSound();
});

test('listed jobs are bounded by their size, with errors', async () => {
  const message = 'm'.repeat(100);
  const error = { sourceKey: 'a/k' as ObjectKey, destinationKey: 'b/k', code: 'AccessDenied', message };
  const errors = Array(LIMITS.moveErrorsKeptMax).fill(error);
  const jobIds = await plantEnded(60, { errors });
  const small = await plantEnded(2);
  world.clock.advance(LIMITS.tokenlessJobKeptMs + MINUTE);
  const reads = noteReads(world.kv);
  await background.run('jobs');
  const kept = await keptJobs();
  expect(kept.slice(0, 2)).toEqual(small.toReversed());
  expect(kept.length).toBeGreaterThan(20);
  expect(kept.length).toBeLessThan(LIMITS.jobsShownBytesMax / (100 * LIMITS.moveErrorsKeptMax));
  expect(kept.slice(2)).toEqual(jobIds.slice(jobIds.length - kept.length + 2).reverse());
  expect(reads.largestBytes()).toBeLessThan(2 * LIMITS.queryPageBytesMax);
  await expectSound();
});

test('a recently ended job stays, however many newer ones there are, and so does one under way', async () => {
  const open = await beginMove(world, { from: 'c/', to: 'd/' });
  const ended = await beginMove(world, { from: 'a/', to: 'b/' });
  await driveJob(world, ended);
  await plantEnded(LIMITS.jobsShownMax + 10);
  await background.run('jobs');
  expect(await moveCalls(world, ended).findJob()).toBeDefined();
  world.clock.advance(LIMITS.tokenlessJobKeptMs + MINUTE);
  await background.run('jobs');
  expect(await moveCalls(world, ended).findJob()).toBeUndefined();
  expect(await moveCalls(world, open).findJob()).toBeDefined();
  expect(await world.execute('forget-jobs', { jobIds: [open.jobId] })).toEqual({ kind: 'forgotten' });
  expect(await moveCalls(world, open).findJob()).toBeDefined();
});

test('a job with a token is not removed before its day is over', async () => {
  const token = { token: 't', digest: 'd' };
  const command = { bucketId: BUCKET, from: 'a/', to: 'b/', overwrites: false, token };
  const begun = await world.execute('begin-move', command);
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  await driveJob(world, begun.job);
  const { jobId } = begun.job;
  await plantEnded(LIMITS.jobsShownMax + 10);
  world.clock.advance(DAY - 2 * MINUTE);
  await background.run('jobs', 'tokens');
  await world.execute('forget-jobs', { jobIds: [jobId] });
  expect(await world.execute('begin-move', command)).toEqual({ kind: 'began-before', jobId });
  expect(await moveCalls(world, { jobId }).findJob()).toMatchObject({
    job: { jobId, endedAtMs: expect.any(Number) },
  });
});
