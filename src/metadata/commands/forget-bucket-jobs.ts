// Forgets forced deletions that have ended, once they have been shown for long enough.
import { LIMITS } from '../../model/limits.ts';
import type { JobId } from '../../model/names.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import type { View } from '../../ports/state-machine.ts';
import { defineCommand, exclusive, LOCK } from '../define-command.ts';
import { findJob, jobRow } from '../jobs.ts';
import { remove } from '../keyspace.ts';

export const forgetBucketJobs = defineCommand<
  CommandOf<'forget-bucket-jobs'>,
  OutcomeOf<'forget-bucket-jobs'>
>({
  locks: ({ jobIds }) => jobIds.map((jobId) => exclusive(LOCK.job(jobId))),

  look({ jobIds }, view) {
    for (const jobId of jobIds) findJob(view, jobId);
  },

  decide({ jobIds }, view, { nowMs }) {
    const old = jobIds.filter((jobId) => isOld(view, jobId, nowMs));
    return { outcome: { kind: 'forgotten' }, puts: old.map((jobId) => remove(jobRow(jobId))) };
  },
});

function isOld(view: View, jobId: JobId, nowMs: number): boolean {
  const job = findJob(view, jobId);
  if (job?.kind !== 'empty-bucket' || job.endedAtMs === undefined) return false;
  return nowMs - job.endedAtMs >= LIMITS.jobKeptMs;
}
