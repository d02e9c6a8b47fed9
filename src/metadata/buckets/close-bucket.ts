// Force delete, first step (service 3): the bucket takes no more writes, so that what is looked at stays as it is. Its
// job brings it to its end, whatever becomes of the gateway. Asking again gives the same job.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { View } from '../../ports/state-machine.ts';
import { makeJobId } from '../../types/names.ts';
import type { EmptyBucketJob } from '../../types/records/job-record.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { changeJob, findJob } from '../jobs/jobs.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBucket } from './buckets.ts';

export const closeBucket = defineCommand<CommandOf<'close-bucket'>, OutcomeOf<'close-bucket'>>({
  // Writers into the bucket hold it shared: no earlier one can commit behind this (R7).
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findEmptyingJob(findBucket(view, bucketId), view);
  },

  decide({ bucketId }, view, { nowMs, random, origin }) {
    const before = findBucket(view, bucketId);
    const underWay = findEmptyingJob(before, view);
    if (before?.state === 'closing' && underWay !== undefined) {
      return refuse({ kind: 'closing', job: underWay });
    }
    if (before?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
    const job: EmptyBucketJob = {
      kind: 'empty-bucket',
      isTokenless: true,
      jobId: makeJobId({ timeMs: nowMs, random: random(8) }),
      bucketId,
      name: before.name,
      beganAtMs: nowMs,
      steppedAtMs: nowMs,
      stepCount: 0,
      stage: 'look',
      totalCount: 0,
      removedCount: 0,
      ...(before.events && origin && { origin }),
    };
    const cfgVersion = before.cfgVersion + 1;
    const bucket: BucketRecord = { ...before, state: 'closing', cfgVersion, jobId: job.jobId };
    const { puts, counters } = changeJob(undefined, job);
    return {
      outcome: { kind: 'closing', job },
      puts: [put(bucketRow(bucketId), bucketCodec.encode(bucket)), ...puts],
      counters,
    };
  },
});

function findEmptyingJob(bucket: BucketRecord | undefined, view: View): EmptyBucketJob | undefined {
  const job = bucket?.jobId && findJob(view, bucket.jobId);
  return job?.kind === 'empty-bucket' ? job : undefined;
}
