// Jobs of a shard, those that began last first, and how many there are.

import { isLastPage } from '../../base/row-pages.ts';
import { TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import {
  JOB_KINDS,
  JOB_STATES,
  type JobRecord,
  jobCodec,
  type MoveError,
  moveErrorsCodec,
} from '../../types/records/job-record.ts';
import { COUNTER } from '../schema/counters.ts';
import { TABLES, timeRange } from '../schema/keyspace.ts';
import { endedJobs, errorsRows, hasEndedFor, jobRow, openJobId, openJobs, readEndedJob } from './jobs.ts';

export const listJobs: QuerySpec<QueryOf<'list-jobs'>, ResultOf<'list-jobs'>> = {
  async run({ before, limit }, state, { nowMs }) {
    const lt = before === undefined ? TABLE_END : jobRow(before).key;
    // One of an earlier release may have all its errors in its row.
    const asked = { limit, bytesMax: LIMITS.queryPageBytesMax };
    const range = { table: TABLES.jobs, gte: new Uint8Array(0), lt, reverse: true, ...asked };
    const rows = await state.range(range);
    const jobs = rows.map(({ value }) => briefJob(value));
    const last = jobs.at(-1);
    return { jobs, nowMs, ...(last !== undefined && !isLastPage(rows, asked) && { next: last.jobId }) };
  },
};

const KINDS_AND_STATES = JOB_KINDS.flatMap((kind) => JOB_STATES.map((state) => ({ kind, state })));

export const countJobs: QuerySpec<QueryOf<'count-jobs'>, ResultOf<'count-jobs'>> = {
  async run(_query, state) {
    const names = KINDS_AND_STATES.map((each) => COUNTER.jobs(each.kind, each.state));
    const counts = await state.counters(names);
    return { counts: KINDS_AND_STATES.map((each, at) => ({ ...each, count: counts[at] ?? 0 })) };
  },
};

export const getJob: QuerySpec<QueryOf<'get-job'>, ResultOf<'get-job'>> = {
  async run({ jobId, isBrief }, state, { nowMs }) {
    const [row] = await state.rows([jobRow(jobId)]);
    if (row === undefined) return { job: null, nowMs };
    if (isBrief) return { job: briefJob(row), nowMs };
    return { job: await withErrors(jobCodec.decode(row), state), nowMs };
  },
};

function briefJob(row: Uint8Array): JobRecord {
  const job = jobCodec.decode(row);
  return job.kind === 'move-prefix' ? { ...job, errors: [] } : job;
}

/** null: it has been forgotten meanwhile. */
async function withErrors(job: JobRecord, state: StateReader): Promise<JobRecord | null> {
  if (job.kind !== 'move-prefix' || job.errorRows === undefined) return job;
  const { errorRows: _, ...rest } = job;
  const errors: MoveError[] = [];
  for (const row of await state.rows(errorsRows(job))) {
    if (row === undefined) return null;
    errors.push(...moveErrorsCodec.decode(row).errors);
  }
  return { ...rest, errors: [...errors, ...job.errors] };
}

// Jobs that are under way, and those that may be forgotten: for their age, or because newer ones are shown in their place.

/** Rows of jobs that are read together: of an earlier release they may be large. */
const JOBS_AT_ONCE = 8;

export const listOpenJobs: QuerySpec<QueryOf<'list-open-jobs'>, ResultOf<'list-open-jobs'>> = {
  async run({ kind, after, limit }, state, { nowMs }) {
    const jobIds = (await state.range(openJobs({ kind, after, limit }))).map(({ key }) => openJobId(key));
    const jobs: JobRecord[] = [];
    let leftBytes: number = LIMITS.queryPageBytesMax;
    let at = 0;
    for (; at < jobIds.length && leftBytes > 0; at += JOBS_AT_ONCE) {
      for (const row of await state.rows(jobIds.slice(at, at + JOBS_AT_ONCE).map(jobRow))) {
        if (row === undefined) continue;
        leftBytes -= row.length;
        jobs.push(briefJob(row));
      }
    }
    const last = jobIds[Math.min(at, jobIds.length) - 1];
    const hasMore = at < jobIds.length || jobIds.length === limit;
    return { jobs, nowMs, ...(last !== undefined && hasMore && { next: last }) };
  },
};

export const listEndedJobs: QuerySpec<QueryOf<'list-ended-jobs'>, ResultOf<'list-ended-jobs'>> = {
  async run({ limit }, state, { nowMs }) {
    // What began later cannot have ended long enough ago; of the others few are under way, or ended late.
    const toMs = Math.max(0, nowMs - LIMITS.jobKeptMs);
    const openMax = LIMITS.jobsWithOnlyOnesMax;
    const bytesMax = LIMITS.queryPageBytesMax + openMax * LIMITS.moveErrorsKeptBytesMax;
    const range = { ...timeRange({ table: TABLES.jobs, toMs, limit: limit + openMax }), bytesMax };
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
