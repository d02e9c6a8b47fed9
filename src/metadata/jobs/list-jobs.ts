// Jobs of a shard, those that began last first, and how many there are.
import { TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { JOB_KINDS, JOB_STATES, jobCodec } from '../../types/records/job-record.ts';
import { COUNTER } from '../schema/counters.ts';
import { TABLES } from '../schema/keyspace.ts';
import { isLastPage } from '../schema/row-pages.ts';
import { jobRow } from './jobs.ts';

export const listJobs: QuerySpec<QueryOf<'list-jobs'>, ResultOf<'list-jobs'>> = {
  async run({ before, limit }, state, { nowMs }) {
    const lt = before === undefined ? TABLE_END : jobRow(before).key;
    // A job may bring all the errors that it has kept.
    const asked = { limit, bytesMax: LIMITS.queryPageBytesMax };
    const range = { table: TABLES.jobs, gte: new Uint8Array(0), lt, reverse: true, ...asked };
    const rows = await state.range(range);
    const jobs = rows.map(({ value }) => jobCodec.decode(value));
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
  async run({ jobId }, state, { nowMs }) {
    const [row] = await state.rows([jobRow(jobId)]);
    return { job: row === undefined ? null : jobCodec.decode(row), nowMs };
  },
};
