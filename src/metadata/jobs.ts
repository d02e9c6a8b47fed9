// The rows of jobs that a shard keeps (model/records/job-record.ts), and how one is found and written. Those under way
// are marked by their kind, so that who drives one kind passes over no other, and over none that has ended.
import { concatBytes, fromHex, toHex } from '../lib/bytes.ts';
import { LIMITS } from '../model/limits.ts';
import type { JobId } from '../model/names.ts';
import { JOB_KINDS, type JobKind, type JobRecord, jobCodec } from '../model/records/job-record.ts';
import type { RangeAddress, RowAddress, RowPut, View } from '../ports/state-machine.ts';
import { PRESENT, prefixRange, put, remove, TABLES } from './keyspace.ts';

export function jobRow(jobId: JobId): RowAddress {
  return { table: TABLES.jobs, key: fromHex(jobId) };
}

export function findJob(view: View, jobId: JobId): JobRecord | undefined {
  const row = view.row(jobRow(jobId));
  return row && jobCodec.decode(row);
}

/** It is under way. */
export function openJobRow({ kind, jobId }: Pick<JobRecord, 'kind' | 'jobId'>): RowAddress {
  return { table: TABLES.openJobs, key: concatBytes(kindMark(kind), fromHex(jobId)) };
}

function kindMark(kind: JobKind): Uint8Array {
  return Uint8Array.of(JOB_KINDS.indexOf(kind));
}

/** The id of a job in the key of its mark. */
export function openJobId(key: Uint8Array): JobId {
  return toHex(key.subarray(1)) as JobId;
}

/** Marks of jobs of a kind that are under way, in the order in which they began. */
export function openJobs(options: { kind: JobKind; after?: JobId | undefined; limit: number }): RangeAddress {
  const { kind, after, limit } = options;
  const range = prefixRange({ table: TABLES.openJobs, prefix: kindMark(kind), limit });
  if (after === undefined) return range;
  return { ...range, gte: concatBytes(openJobRow({ kind, jobId: after }).key, Uint8Array.of(0)) };
}

/** The rows of a job that begins, goes on or ends. */
export function jobPuts(job: JobRecord): RowPut[] {
  const mark = openJobRow(job);
  return [
    put(jobRow(job.jobId), jobCodec.encode(job)),
    job.endedAtMs === undefined ? put(mark, PRESENT) : remove(mark),
  ];
}

/** The rows by which a job is as if it had never been. */
export function dropJob(job: JobRecord): RowPut[] {
  return [remove(jobRow(job.jobId)), remove(openJobRow(job))];
}

/** The rows that forget a job; none while it is under way, or has ended lately. */
export function forgetJob(view: View, jobId: JobId, nowMs: number): RowPut[] {
  const job = findJob(view, jobId);
  return job !== undefined && isForgettable(job, nowMs) ? [remove(jobRow(jobId))] : [];
}

export function isForgettable({ endedAtMs }: JobRecord, nowMs: number): boolean {
  return endedAtMs !== undefined && nowMs - endedAtMs >= LIMITS.jobKeptMs;
}
