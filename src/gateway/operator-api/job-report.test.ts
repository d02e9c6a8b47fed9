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
