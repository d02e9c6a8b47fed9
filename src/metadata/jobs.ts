// The rows of jobs that a shard keeps (model/records/job-record.ts), and how one is found and written.
import { EMPTY_BYTES, fromHex } from '../lib/bytes.ts';
import { TABLE_END } from '../lib/table-rows.ts';
import { LIMITS } from '../model/limits.ts';
import type { JobId } from '../model/names.ts';
import { type JobRecord, jobCodec } from '../model/records/job-record.ts';
import type { RangeAddress, RowAddress, RowPut, View } from '../ports/state-machine.ts';
import { PRESENT, put, remove, TABLES } from './keyspace.ts';

export function jobRow(jobId: JobId): RowAddress {
  return { table: TABLES.jobs, key: fromHex(jobId) };
}

export function findJob(view: View, jobId: JobId): JobRecord | undefined {
  const row = view.row(jobRow(jobId));
  return row && jobCodec.decode(row);
}

/** It is under way. */
export function openJobRow(jobId: JobId): RowAddress {
  return { table: TABLES.openJobs, key: fromHex(jobId) };
}

/** All that are under way in the shard, as far as there may be. */
export const OPEN_JOBS: RangeAddress = {
  table: TABLES.openJobs,
  gte: EMPTY_BYTES,
  lt: TABLE_END,
  limit: LIMITS.jobsMax,
};

/** The rows of a job that begins, goes on or ends. */
export function jobPuts(job: JobRecord): RowPut[] {
  const mark = openJobRow(job.jobId);
  return [putJob(job), job.endedAtMs === undefined ? put(mark, PRESENT) : remove(mark)];
}

/** The rows that leave nothing of a job, also while it is under way. */
export function dropJob(jobId: JobId): RowPut[] {
  return [remove(jobRow(jobId)), remove(openJobRow(jobId))];
}

/** The rows that forget a job; none while it is under way, or has ended lately. */
export function forgetJob(view: View, jobId: JobId, nowMs: number): RowPut[] {
  const job = findJob(view, jobId);
  return job !== undefined && isForgettable(job, nowMs) ? [remove(jobRow(jobId))] : [];
}

export function isForgettable({ endedAtMs }: JobRecord, nowMs: number): boolean {
  return endedAtMs !== undefined && nowMs - endedAtMs >= LIMITS.jobKeptMs;
}

export function putJob(job: JobRecord): RowPut {
  return put(jobRow(job.jobId), jobCodec.encode(job));
}
