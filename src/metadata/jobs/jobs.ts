// The rows of jobs that a shard keeps (types/records/job-record.ts), and how one is found and written. Those under way
// are marked by their kind, so that who drives one kind passes over no other, and over none that has ended; those that
// have ended and that no token leads to are listed by their end, so that the newest of them alone are kept. What a rename has
// met goes to rows of its own by and by, so that what is written of a job at each step is small.
import { concatBytes, fromHex, toHex, utf8 } from '../../base/bytes/bytes.ts';
import type { CounterDelta, RangeAddress, Row, RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId, JobId, ObjectKey } from '../../types/names.ts';
import {
  type EmptyBucketJob,
  type ErrorRows,
  JOB_KINDS,
  type JobKind,
  type JobRecord,
  jobCodec,
  jobState,
  type MoveError,
  type MovePrefixJob,
  moveErrorsCodec,
} from '../../types/records/job-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { NO_CHANGE, type RowChange } from '../blobs/repair-entries.ts';
import { outcomeDeltas } from '../outcomes/outcome-bounds.ts';
import { COUNTER } from '../schema/counters.ts';
import { readU16, readU48, u16, u48 } from '../schema/key-parts.ts';
import { PRESENT, prefixRange, put, remove, TABLES, timeRange } from '../schema/keyspace.ts';

/** Of a job's row, its mark and their keys, besides texts; the same of each error in it. */
const JOB_BYTES = 512;
const ERROR_BYTES = 128;
/** Errors of more bytes than these do not stay in the job's row. */
const ERRORS_IN_JOB_BYTES = 8 * 1024;

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

/** Those of a job's errors that are not in its row, in their order. */
export function errorsRows(job: JobRecord): RowAddress[] {
  const count = job.kind === 'move-prefix' ? (job.errorRows?.rowCount ?? 0) : 0;
  return Array.from({ length: count }, (_, at) => errorsRow(job.jobId, at));
}

export function errorsRow(jobId: JobId, at: number): RowAddress {
  return { table: TABLES.jobErrors, key: concatBytes(fromHex(jobId), u16(at)) };
}

const ERRORS_AT_BYTES = 2;

/** `at`: the number of the row among the job's. */
export function readErrorsRow({ key }: Row): { jobId: JobId; at: number } {
  const jobEnd = key.length - ERRORS_AT_BYTES;
  return { jobId: toHex(key.subarray(0, jobEnd)) as JobId, at: readU16(key, jobEnd) };
}

/** What is written of a job that begins, goes on or ends; `before`: as it was, undefined where it begins. */
export function changeJob(before: JobRecord | undefined, job: JobRecord): RowChange {
  const { endedAtMs, isTokenless } = job;
  const mark = openJobRow(job);
  const { small, puts } = apartFromErrors(job);
  puts.push(put(jobRow(job.jobId), jobCodec.encode(small)));
  if (endedAtMs !== undefined) puts.push(remove(mark));
  else if (before === undefined) puts.push(put(mark, markOf(job)));
  if (endedAtMs !== undefined && isTokenless) puts.push(put(endedJobRow(job, endedAtMs), u48(jobBytes(job))));
  return { puts, counters: jobDeltas(before, job) };
}

/** The job as its row has it, and the row of what is too much for that. */
function apartFromErrors(job: JobRecord): { small: JobRecord; puts: RowPut[] } {
  if (job.kind !== 'move-prefix') return { small: job, puts: [] };
  const { jobId, errors, errorRows } = job;
  const textBytes = textBytesOf(errors);
  if (textBytes + ERROR_BYTES * errors.length <= ERRORS_IN_JOB_BYTES) return { small: job, puts: [] };
  const rowCount = errorRows?.rowCount ?? 0;
  const { errorCount, textBytes: allBytes } = keptErrors(job);
  const small = {
    ...job,
    errors: [],
    errorRows: { rowCount: rowCount + 1, errorCount, textBytes: allBytes },
  };
  return { small, puts: [put(errorsRow(jobId, rowCount), moveErrorsCodec.encode({ errors }))] };
}

/** All errors that are kept of a job. */
export function keptErrors({ errors, errorRows }: MovePrefixJob): Omit<ErrorRows, 'rowCount'> {
  return {
    errorCount: (errorRows?.errorCount ?? 0) + errors.length,
    textBytes: (errorRows?.textBytes ?? 0) + textBytesOf(errors),
  };
}

function textBytesOf(errors: readonly MoveError[]): number {
  return errors.reduce((sum, error) => sum + errorBytes(error), 0);
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
  const { from, to } = job;
  const { errorCount, textBytes } = keptErrors(job);
  return JOB_BYTES + Buffer.byteLength(from) + Buffer.byteLength(to) + ERROR_BYTES * errorCount + textBytes;
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
  const rows = [jobRow(job.jobId), openJobRow(job), ...errorsRows(job)];
  return { puts: rows.map(remove), counters: jobDeltas(job, undefined) };
}

/** What forgets a job; nothing while it is under way, or somebody may still ask for it. */
export function forgetJob(view: View, jobId: JobId, nowMs: number): RowChange {
  const job = findJob(view, jobId);
  const keptMs = job?.isTokenless ? LIMITS.tokenlessJobKeptMs : LIMITS.jobKeptMs;
  if (job?.endedAtMs === undefined || !hasEndedFor(job, keptMs, nowMs)) return NO_CHANGE;
  const puts = [jobRow(jobId), ...errorsRows(job)].map(remove);
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
