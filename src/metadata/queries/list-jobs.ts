// Jobs of a shard, in the order in which they began.
import { fromHex, toHex } from '../../lib/bytes.ts';
import { allRows, behind, TABLE_END } from '../../lib/table-rows.ts';
import type { JobId } from '../../model/names.ts';
import { jobCodec, jobState } from '../../model/records/job-record.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { jobRow } from '../jobs.ts';
import { TABLES } from '../keyspace.ts';

export const listJobs: QuerySpec<QueryOf<'list-jobs'>, ResultOf<'list-jobs'>> = {
  async run({ after, limit }, state, { nowMs }) {
    const from = after && fromHex(after);
    const rows = await state.range({ table: TABLES.jobs, gte: behind(from), lt: TABLE_END, limit });
    const jobs = rows.map(({ value }) => jobCodec.decode(value));
    const last = rows.at(-1);
    const next = rows.length === limit && last !== undefined && { next: toHex(last.key) as JobId };
    return { jobs, nowMs, ...next };
  },
};

export const countJobs: QuerySpec<QueryOf<'count-jobs'>, ResultOf<'count-jobs'>> = {
  async run(_query, state) {
    const counts: ResultOf<'count-jobs'>['counts'] = [];
    for await (const { value } of allRows(state, TABLES.jobs)) {
      const job = jobCodec.decode(value);
      const [kind, its] = [job.kind, jobState(job)];
      const seen = counts.find((each) => each.kind === kind && each.state === its);
      if (seen === undefined) counts.push({ kind, state: its, count: 1 });
      else seen.count++;
    }
    return { counts };
  },
};

export const getJob: QuerySpec<QueryOf<'get-job'>, ResultOf<'get-job'>> = {
  async run({ jobId }, state) {
    const [row] = await state.rows([jobRow(jobId)]);
    return { job: row === undefined ? null : jobCodec.decode(row) };
  },
};
