// Jobs that are under way, and those that may be forgotten.
import { LIMITS } from '../../model/limits.ts';
import { jobCodec } from '../../model/records/job-record.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { isForgettable, jobRow, openJobId, openJobs } from '../jobs.ts';
import { TABLES, timeRange } from '../keyspace.ts';

export const listOpenJobs: QuerySpec<QueryOf<'list-open-jobs'>, ResultOf<'list-open-jobs'>> = {
  async run({ kind, after, limit }, state, { nowMs }) {
    const jobIds = (await state.range(openJobs({ kind, after, limit }))).map(({ key }) => openJobId(key));
    const rows = await state.rows(jobIds.map(jobRow));
    const jobs = rows.flatMap((row) => (row === undefined ? [] : [jobCodec.decode(row)]));
    const last = jobIds.at(-1);
    return { jobs, nowMs, ...(last !== undefined && jobIds.length === limit && { next: last }) };
  },
};

export const listEndedJobs: QuerySpec<QueryOf<'list-ended-jobs'>, ResultOf<'list-ended-jobs'>> = {
  async run({ limit }, state, { nowMs }) {
    // What began later cannot have ended long enough ago; of the others few are under way, or ended late.
    const toMs = Math.max(0, nowMs - LIMITS.jobKeptMs);
    const bytesMax = LIMITS.queryPageBytesMax + LIMITS.jobsMax * LIMITS.moveErrorsKeptBytesMax;
    const range = { ...timeRange({ table: TABLES.jobs, toMs, limit: limit + LIMITS.jobsMax }), bytesMax };
    const jobs = (await state.range(range)).map(({ value }) => jobCodec.decode(value));
    return {
      jobIds: jobs
        .filter((job) => isForgettable(job, nowMs))
        .slice(0, limit)
        .map(({ jobId }) => jobId),
    };
  },
};
