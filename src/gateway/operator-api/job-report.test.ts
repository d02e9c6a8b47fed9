// However many jobs a shard keeps, the report reads no more than it shows.
import { expect, test } from 'vitest';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { JOBS_SHOWN_MAX, readJobs } from './job-report.ts';

test('of a million jobs the last ones are returned, and the others counted', async () => {
  let readCount = 0;
  const query = async (_envelope: unknown, name: string, { limit = 0 }: { limit?: number }) => {
    const done = (value: unknown) => ({ kind: 'done', value, timeMs: 0 });
    if (name === 'get-bucket') return done({ bucket: null });
    if (name === 'count-jobs') return done({ counts: [{ kind: 'move-prefix', state: 'done', count: 1e6 }] });
    const jobs = Array.from({ length: limit }, () => ({ kind: 'move-prefix', jobId: String(readCount++) }));
    if (readCount > 2 * JOBS_SHOWN_MAX) throw new Error('it goes on and on');
    return done({ jobs, nowMs: 0, next: String(readCount) });
  };
  const report = await readJobs({ shardCount: 1, query } as unknown as MetadataPort);
  expect(report.jobs).toHaveLength(JOBS_SHOWN_MAX);
  expect(report.leftOutCount).toBe(1e6 - JOBS_SHOWN_MAX);
});

test('of many shards the newest jobs are merged, each bucket is asked for once, and a shard that fails is left out', async () => {
  const shardCount = 8;
  const perShard = 1000;
  let readCount = 0;
  let namedCount = 0;
  const query = async (
    { shard }: { shard: number },
    name: string,
    { before, limit = 0 }: { before?: string; limit?: number },
  ) => {
    const done = (value: unknown) => ({ kind: 'done', value, timeMs: 0 });
    if (name === 'count-jobs')
      return done({ counts: [{ kind: 'move-prefix', state: 'done', count: perShard }] });
    if (name === 'get-bucket') {
      namedCount++;
      return done({ bucket: { name: `of ${shard}` } });
    }
    if (shard === 7 && before !== undefined) return { kind: 'unknown' };
    const from = before === undefined ? 0 : Number(before) + 1;
    const jobs = Array.from({ length: Math.min(limit, perShard - from) }, (_, at) => {
      readCount++;
      const beganAtMs = -(from + at) * shardCount - shard;
      return { kind: 'move-prefix', jobId: String(from + at), bucketId: `b${shard}`, beganAtMs };
    });
    const next = from + limit < perShard && { next: jobs.at(-1)?.jobId };
    return done({ jobs, nowMs: 0, ...next });
  };
  const report = await readJobs({ shardCount, query } as unknown as MetadataPort);
  const ages = report.jobs.map(({ ageMs }) => ageMs);
  expect(ages).toEqual(ages.toSorted((a, b) => a - b));
  expect(report.jobs.every(({ shard, bucket }) => bucket === `of ${shard}`)).toBe(true);
  expect([report.missingShards, report.leftOutCount]).toEqual([[7], 7 * perShard - report.jobs.length]);
  expect(report.jobs.length).toBeGreaterThan(JOBS_SHOWN_MAX - 100);
  expect([namedCount, readCount <= JOBS_SHOWN_MAX + 50 * shardCount]).toEqual([7, true]);
});
