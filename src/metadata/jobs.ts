// The rows of jobs that a shard keeps (model/records/job-record.ts), and how one is found and written. Those under way
// are marked by their kind, so that who drives one kind passes over no other, and over none that has ended.
import { concatBytes, fromHex, toHex, utf8 } from '../lib/bytes.ts';
import { LIMITS } from '../model/limits.ts';
import type { JobId } from '../model/names.ts';
import {
  type EmptyBucketJob,
  JOB_KINDS,
  type JobKind,
  type JobRecord,
  jobCodec,
  jobState,
  type MovePrefixJob,
} from '../model/records/job-record.ts';
import type { CounterDelta, RangeAddress, RowAddress, View } from '../ports/state-machine.ts';
import { COUNTER } from './counters.ts';
import type { RowChange } from './debts.ts';
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

/** What is written of a job that begins, goes on or ends; `before`: as it was, undefined where it begins. */
export function changeJob(before: JobRecord | undefined, job: JobRecord): RowChange {
  const mark = openJobRow(job);
  const puts = [
    put(jobRow(job.jobId), jobCodec.encode(job)),
    job.endedAtMs === undefined ? put(mark, markOf(job)) : remove(mark),
  ];
  return { puts, counters: jobDeltas(before, job) };
}

/** Whose job it is, of those of which an account may have so many. */
export function markOf(job: Pick<MovePrefixJob, 'kind' | 'owner'> | EmptyBucketJob): Uint8Array {
  return job.kind === 'move-prefix' && job.owner !== undefined ? utf8(job.owner) : PRESENT;
}

/** What makes a job as if it had never been. */
export function dropJob(job: JobRecord): RowChange {
  return { puts: [remove(jobRow(job.jobId)), remove(openJobRow(job))], counters: jobDeltas(job, undefined) };
}

/** What forgets a job; nothing while it is under way, or has ended lately. */
export function forgetJob(view: View, jobId: JobId, nowMs: number): RowChange {
  const job = findJob(view, jobId);
  const isDue = job !== undefined && isForgettable(job, nowMs);
  return isDue
    ? { puts: [remove(jobRow(jobId))], counters: jobDeltas(job, undefined) }
    : { puts: [], counters: [] };
}

function jobDeltas(before: JobRecord | undefined, after: JobRecord | undefined): CounterDelta[] {
  const [was, is] = [before, after].map((job) => job && COUNTER.jobs(job.kind, jobState(job)));
  if (was === is) return [];
  return [
    ...(was === undefined ? [] : [{ name: was, delta: -1 }]),
    ...(is === undefined ? [] : [{ name: is, delta: 1 }]),
  ];
}

export function isForgettable({ endedAtMs }: JobRecord, nowMs: number): boolean {
  return endedAtMs !== undefined && nowMs - endedAtMs >= LIMITS.jobKeptMs;
}
