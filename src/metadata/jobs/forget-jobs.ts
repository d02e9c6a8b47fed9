// Forgets jobs once their outcome has been kept long enough.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { findJob, forgetJob } from './jobs.ts';

export const forgetJobs = defineCommand<CommandOf<'forget-jobs'>, OutcomeOf<'forget-jobs'>>({
  locks: ({ jobIds }) => jobIds.map((jobId) => exclusive(LOCK.job(jobId))),

  look({ jobIds }, view) {
    for (const jobId of jobIds) findJob(view, jobId);
  },

  decide({ jobIds }, view, { nowMs }) {
    const changes = [...new Set(jobIds)].map((jobId) => forgetJob(view, jobId, nowMs));
    return { outcome: { kind: 'forgotten' }, ...joinChanges(changes) };
  },
});
