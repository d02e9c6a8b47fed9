// Jobs that are under way, and those that may be forgotten.
import { toHex } from '../../lib/bytes.ts';
import { LIMITS } from '../../model/limits.ts';
import type { JobId } from '../../model/names.ts';
import { jobCodec } from '../../model/records/job-record.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { isForgettable, jobRow, OPEN_JOBS } from '../jobs.ts';
import { TABLES, timeRange } from '../keyspace.ts';

export const listOpenJobs: QuerySpec<QueryOf<'list-open-jobs'>, ResultOf<'list-open-jobs'>> = {
  async run({ limit }, state, { nowMs }) {
    const marks = await state.range({ ...OPEN_JOBS, limit });
    const rows = await state.rows(marks.map(({ key }) => jobRow(toHex(key) as JobId)));
    return { jobs: rows.flatMap((row) => (row === undefined ? [] : [jobCodec.decode(row)])), nowMs };
  },
};

export const listEndedJobs: QuerySpec<QueryOf<'list-ended-jobs'>, ResultOf<'list-ended-jobs'>> = {
  async run({ limit }, state, { nowMs }) {
    // What began later cannot have ended long enough ago; of the others few are under way, or ended late.
    const toMs = Math.max(0, nowMs - LIMITS.jobKeptMs);
    const range = timeRange({ table: TABLES.jobs, toMs, limit: limit + LIMITS.jobsMax });
    const jobs = (await state.range(range)).map(({ value }) => jobCodec.decode(value));
    return {
      jobIds: jobs
        .filter((job) => isForgettable(job, nowMs))
        .slice(0, limit)
        .map(({ jobId }) => jobId),
    };
  },
};
