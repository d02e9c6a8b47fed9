// The driver of a prefix's MOVE reports to its shard between two steps that it goes on, or leaves the job to others.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { changeJob, findJob } from '../jobs/jobs.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { refuse } from '../versions/write-version.ts';

export const holdMove = defineCommand<CommandOf<'hold-move'>, OutcomeOf<'hold-move'>>({
  locks: ({ jobId }) => [exclusive(LOCK.job(jobId))],

  look({ jobId }, view) {
    findJob(view, jobId);
  },

  decide({ jobId, driver, leaves }, view, { nowMs }) {
    const job = findJob(view, jobId);
    const isDriven = job?.kind === 'move-prefix' && job.endedAtMs === undefined && job.driver === driver;
    if (!isDriven) return refuse({ kind: 'held' });
    const { driver: _, ...left } = job;
    const change = changeJob(job, leaves ? left : { ...job, steppedAtMs: nowMs });
    return { outcome: { kind: 'held' }, ...change };
  },
});
