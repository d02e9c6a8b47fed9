// Jobs: each lies under its own id, its bucket is known, and knows of what it does to it; those under way are marked so, and
// those without a token that have ended are listed.
import { equalBytes, toHex } from '../../base/bytes/bytes.ts';
import { allRows } from '../../base/table-rows.ts';
import type { StateView } from '../../ports/state-machine.ts';
import { JOB_KINDS, JOB_STATES, type JobRecord, jobCodec, jobState } from '../../types/records/job-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { COUNTER } from '../schema/counters.ts';
import { TABLES } from '../schema/keyspace.ts';
import {
  endedJobRow,
  errorsRows,
  isRenameOf,
  jobRow,
  markOf,
  openJobId,
  openJobRow,
  readEndedJob,
  readErrorsRow,
} from './jobs.ts';

export const checkJob: RowCheck = async (row, scan) => {
  const job = jobCodec.decode(row.value);
  const { jobId, bucketId, endedAtMs } = job;
  const bucket = await scan.bucket(bucketId);
  const place = { bucket: bucket?.name ?? bucketId, table: 'jobs' as const };
  if (toHex(row.key) !== jobId) scan.found('broken-row', { ...place, note: toHex(row.key) });
  if (bucket === undefined) scan.found('bucket-missing', { ...place, note: jobId });
  const isLost = job.kind === 'empty-bucket' && endedAtMs === undefined && bucket?.jobId !== jobId;
  if (isLost) scan.found('queue-orphaned', { ...place, note: jobId });
  checkKeyRename(job, bucket, scan);
  for (const errors of errorsRows(job))
    await scan.expectRow(errors, 'index-missing', { ...place, note: jobId });
  if (endedAtMs !== undefined) {
    if (job.isTokenless)
      await scan.expectRow(endedJobRow(job, endedAtMs), 'index-missing', { ...place, note: jobId });
    return;
  }
  const mark = await scan.row(openJobRow(job));
  if (mark === undefined) scan.found('index-missing', { ...place, note: jobId });
  else if (!equalBytes(mark, markOf(job))) scan.found('index-orphaned', { table: 'openJobs', note: jobId });
};

/** While a job renames a key in several entries the row of its bucket keeps all others from that key. */
function checkKeyRename(job: JobRecord, bucket: BucketRecord | undefined, scan: CheckScan): void {
  if (job.kind !== 'move-prefix' || job.endedAtMs !== undefined) return;
  const { jobId, isKey, from, within } = job;
  const key = within?.from ?? (isKey && from);
  // Of a deleted bucket it ends with its next step.
  if (!key || bucket === undefined || bucket.state === 'deleted') return;
  const isHeld = bucket.keyRenames?.some((rename) => isRenameOf(job, bucket, rename));
  if (!isHeld) scan.found('queue-orphaned', { bucket: bucket.name, key, table: 'jobs', note: jobId });
}

export const checkOpenJob: RowCheck = async (row, scan) => {
  const jobId = openJobId(row.key);
  const job = await scan.row(jobRow(jobId));
  const isOpen = job !== undefined && jobCodec.decode(job).endedAtMs === undefined;
  if (!isOpen) scan.found('index-orphaned', { table: 'openJobs', note: jobId });
};

export const checkEndedJob: RowCheck = async (row, scan) => {
  const { jobId, endedAtMs } = readEndedJob(row);
  const found = await scan.row(jobRow(jobId));
  const job = found && jobCodec.decode(found);
  const isSame = job?.endedAtMs === endedAtMs && job.isTokenless === true;
  if (!isSame) scan.found('index-orphaned', { table: 'endedJobs', note: jobId });
};

export const checkJobErrors: RowCheck = async (row, scan) => {
  const { jobId, at } = readErrorsRow(row);
  const found = await scan.row(jobRow(jobId));
  const isOfJob = found !== undefined && at < errorsRows(jobCodec.decode(found)).length;
  if (!isOfJob) scan.found('index-orphaned', { table: 'jobErrors', note: jobId });
};

/** What the counters of jobs are to be. */
export async function jobCounts(view: StateView): Promise<[name: string, value: number][]> {
  const names = JOB_KINDS.flatMap((kind) => JOB_STATES.map((state) => COUNTER.jobs(kind, state)));
  const counts = new Map(names.map((name) => [name, 0]));
  for await (const { value } of allRows(view, TABLES.jobs)) {
    const job = jobCodec.decode(value);
    const name = COUNTER.jobs(job.kind, jobState(job));
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts];
}
