// The rows of jobs that a shard keeps (model/records/job-record.ts), and how one is found and written.
import { fromHex } from '../lib/bytes.ts';
import type { JobId } from '../model/names.ts';
import { type JobRecord, jobCodec } from '../model/records/job-record.ts';
import type { RowAddress, RowPut, View } from '../ports/state-machine.ts';
import { put, TABLES } from './keyspace.ts';

export function jobRow(jobId: JobId): RowAddress {
  return { table: TABLES.jobs, key: fromHex(jobId) };
}

export function findJob(view: View, jobId: JobId): JobRecord | undefined {
  const row = view.row(jobRow(jobId));
  return row && jobCodec.decode(row);
}

export function putJob(job: JobRecord): RowPut {
  return put(jobRow(job.jobId), jobCodec.encode(job));
}
