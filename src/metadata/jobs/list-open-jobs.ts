// Jobs that are under way, and those that may be forgotten: for their age, or because newer ones are shown in their place.

import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { jobCodec } from '../../types/records/job-record.ts';
import { TABLES, timeRange } from '../schema/keyspace.ts';
import { endedJobs, hasEndedFor, jobRow, openJobId, openJobs, readEndedJob } from './jobs.ts';

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
        .filter((job) => hasEndedFor(job, LIMITS.jobKeptMs, nowMs))
        .slice(0, limit)
        .map(({ jobId }) => jobId),
    };
  },
};

export const listSurplusJobs: QuerySpec<QueryOf<'list-surplus-jobs'>, ResultOf<'list-surplus-jobs'>> = {
  async run({ fromMs, limit }, state, { nowMs }) {
    const toMs = Math.max(0, nowMs - LIMITS.tokenlessJobKeptMs);
    const wanted = LIMITS.jobsShownMax + limit;
    const ended = (await state.range(endedJobs({ fromMs, toMs, limit: wanted }))).map(readEndedJob);
    let leftBytes = LIMITS.jobsShownBytesMax;
    const firstSurplus = ended.findIndex(({ sizeBytes }, at) => {
      leftBytes -= sizeBytes;
      return at === LIMITS.jobsShownMax || leftBytes < 0;
    });
    const shown = firstSurplus === -1 ? ended : ended.slice(0, firstSurplus);
    const surplus = ended.slice(shown.length, shown.length + limit);
    const isAll = ended.length < wanted && shown.length + surplus.length === ended.length;
    const oldest = isAll ? shown.at(-1) : undefined;
    return {
      jobIds: surplus.map(({ jobId }) => jobId),
      ...(oldest !== undefined && { shownFromMs: oldest.endedAtMs }),
    };
  },
};
