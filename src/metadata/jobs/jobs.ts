// The rows of jobs that a shard keeps (types/records/job-record.ts), and how one is found and written. Those under way
// are marked by their kind, so that who drives one kind passes over no other, and over none that has ended; those that
// have ended and that no token leads to are listed by their end, so that the newest of them alone are kept.
import { concatBytes, fromHex, toHex, utf8 } from '../../base/bytes/bytes.ts';
import type { CounterDelta, RangeAddress, Row, RowAddress, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId, JobId, ObjectKey } from '../../types/names.ts';
import {
  type EmptyBucketJob,
  JOB_KINDS,
  type JobKind,
  type JobRecord,
  jobCodec,
  jobState,
  type MoveError,
  type MovePrefixJob,
} from '../../types/records/job-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { NO_CHANGE, type RowChange } from '../blobs/repair-entries.ts';
import { outcomeDeltas } from '../outcomes/outcome-bounds.ts';
import { COUNTER } from '../schema/counters.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import { PRESENT, prefixRange, put, remove, TABLES, timeRange } from '../schema/keyspace.ts';

/** Of a job's row, its mark and their keys, besides texts; the same of each error in it. */
const JOB_BYTES = 512;
const ERROR_BYTES = 128;

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

/** It has ended, and no token leads to it. */
export function endedJobRow({ jobId }: Pick<JobRecord, 'jobId'>, endedAtMs: number): RowAddress {
  return { table: TABLES.endedJobs, key: concatBytes(u48(endedAtMs), fromHex(jobId)) };
}

const ENDED_TIME_BYTES = 6;

export function readEndedJob({ key, value }: Row): { jobId: JobId; endedAtMs: number; sizeBytes: number } {
  const jobId = toHex(key.subarray(ENDED_TIME_BYTES)) as JobId;
  return { jobId, endedAtMs: readU48(key), sizeBytes: readU48(value) };
}

/** Those that ended from one time (inclusive) to another (exclusive), the newest first. */
export function endedJobs(options: {
  fromMs?: number | undefined;
  toMs: number;
  limit: number;
}): RangeAddress {
  return { ...timeRange({ table: TABLES.endedJobs, ...options }), reverse: true };
}

/** What is written of a job that begins, goes on or ends; `before`: as it was, undefined where it begins. */
export function changeJob(before: JobRecord | undefined, job: JobRecord): RowChange {
  const { endedAtMs, isTokenless } = job;
  const mark = openJobRow(job);
  const puts = [put(jobRow(job.jobId), jobCodec.encode(job))];
  if (endedAtMs === undefined) puts.push(put(mark, markOf(job)));
  else puts.push(remove(mark));
  if (endedAtMs !== undefined && isTokenless) puts.push(put(endedJobRow(job, endedAtMs), u48(jobBytes(job))));
  return { puts, counters: jobDeltas(before, job) };
}

/** Whether the job is under way and this is the key that it renames in several entries, as its bucket's row tells. */
export function isRenameOf(
  job: JobRecord,
  { bucketId }: Pick<BucketRecord, 'bucketId'>,
  rename: { jobId: JobId; from: ObjectKey; to: ObjectKey },
): boolean {
  if (job.kind !== 'move-prefix' || job.endedAtMs !== undefined) return false;
  const { within } = job;
  const isItsKey = within?.from === rename.from && within.to === rename.to;
  return job.jobId === rename.jobId && job.bucketId === bucketId && isItsKey;
}

/** What is kept of it, roughly; where its walk stands is not: that changes with each step, and goes at the end. */
export function jobBytes(job: JobRecord): number {
  if (job.kind === 'empty-bucket') return JOB_BYTES;
  const { from, to, errors } = job;
  const textBytes = Buffer.byteLength(from) + Buffer.byteLength(to);
  return errors.reduce((sum, error) => sum + ERROR_BYTES + errorBytes(error), JOB_BYTES + textBytes);
}

export function errorBytes({ sourceKey, destinationKey, message }: MoveError): number {
  return [sourceKey, destinationKey, message].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** Whose job it is, of those of which an account may have so many. */
export function markOf(job: Pick<MovePrefixJob, 'kind' | 'owner'> | EmptyBucketJob): Uint8Array {
  return job.kind === 'move-prefix' && job.owner !== undefined ? utf8(job.owner) : PRESENT;
}

/** What makes a job as if it had never been. */
export function dropJob(job: JobRecord): RowChange {
  return { puts: [remove(jobRow(job.jobId)), remove(openJobRow(job))], counters: jobDeltas(job, undefined) };
}

/** What forgets a job; nothing while it is under way, or somebody may still ask for it. */
export function forgetJob(view: View, jobId: JobId, nowMs: number): RowChange {
  const job = findJob(view, jobId);
  const keptMs = job?.isTokenless ? LIMITS.tokenlessJobKeptMs : LIMITS.jobKeptMs;
  if (job?.endedAtMs === undefined || !hasEndedFor(job, keptMs, nowMs)) return NO_CHANGE;
  const puts = [remove(jobRow(jobId))];
  if (job.isTokenless) puts.push(remove(endedJobRow(job, job.endedAtMs)));
  return { puts, counters: jobDeltas(job, undefined) };
}

function jobDeltas(before: JobRecord | undefined, after: JobRecord | undefined): CounterDelta[] {
  const [was, is] = [before, after].map((job) => job && COUNTER.jobs(job.kind, jobState(job)));
  const one = after ?? before;
  const addedBytes = storedBytesOf(after) - storedBytesOf(before);
  const kept = outcomeDeltas(ownerOf(one), addedBytes, { isTokenless: one?.isTokenless === true });
  if (was === is) return kept;
  return [
    ...(was === undefined ? [] : [{ name: was, delta: -1 }]),
    ...(is === undefined ? [] : [{ name: is, delta: 1 }]),
    ...kept,
  ];
}

/** What a job counts for in what is kept for its owner: emptying a bucket is never refused for that, and counts for nothing. */
export function storedBytesOf(job: JobRecord | undefined): number {
  return job?.kind === 'move-prefix' ? (job.keptBytes ?? 0) : 0;
}

function ownerOf(job: JobRecord | undefined): AccountId | undefined {
  return job?.kind === 'move-prefix' ? job.owner : undefined;
}

export function hasEndedFor({ endedAtMs }: JobRecord, ms: number, nowMs: number): boolean {
  return endedAtMs !== undefined && nowMs - endedAtMs >= ms;
}
