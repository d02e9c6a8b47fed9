// Force delete, from its first look to its decision (service 3): what a look has found is noted, so that another
// driver can go on from there; behind the last one the bucket is deleted for good (R42), or open again.
import { assert } from '../../base/assert.ts';
import type { ClosingOutcome } from '../../ports/metadata/buckets.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { DecideContext, Decision, RangeAddress, View } from '../../ports/state-machine.ts';
import type { EmptyBucketJob } from '../../types/records/job-record.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { changeJob, dropJob, findJob } from '../jobs/jobs.ts';
import { bucketTokens } from '../outcomes/tokens.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, bucketUploads, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { lookAtConfigs } from './bucket-config.ts';
import { findBucket, versionsOf } from './buckets.ts';
import { deleteForGood } from './delete-bucket.ts';

type Command = CommandOf<'step-closing'>;

interface Closing {
  bucket: BucketRecord;
  job: EmptyBucketJob;
}

export const stepClosing = defineCommand<Command, ClosingOutcome>({
  locks: ({ bucketId, jobId }) => [exclusive(LOCK.bucket(bucketId)), exclusive(LOCK.job(jobId))],

  look({ bucketId, jobId, next }, view) {
    findBucket(view, bucketId);
    findJob(view, jobId);
    if (next.kind !== 'delete') return;
    lookAtConfigs(view, bucketId);
    for (const range of leftovers(bucketId)) view.range(range);
  },

  decide(command, view, context) {
    const { bucketId, jobId, stepCount, count, next } = command;
    const bucket = findBucket(view, bucketId);
    const before = findJob(view, jobId);
    if (before?.kind !== 'empty-bucket' || bucket === undefined) return refuse(afterwards(bucket));
    if (before.stage === 'refused') return refuse({ kind: 'reopened' });
    if (before.stage !== 'look') return refuse(afterwards(bucket));
    if (before.stepCount !== stepCount) return refuse({ kind: 'looking', job: before });
    assert(bucket.state === 'closing' && bucket.jobId === jobId, 'who looks has closed the bucket');
    const { after: _, ...rest } = before;
    const job: EmptyBucketJob = {
      ...rest,
      steppedAtMs: context.nowMs,
      stepCount: stepCount + 1,
      totalCount: before.totalCount + count,
    };
    if (next.kind === 'delete') return deleteClosed({ bucket, job }, view, context);
    if (next.kind === 'reopen') return reopen({ bucket, job }, context);
    const noted = { ...job, after: next.after };
    return { outcome: { kind: 'looking', job: noted }, ...changeJob(before, noted) };
  },
});

/** For those who come when it is over, and has been forgotten perhaps. */
function afterwards(bucket: BucketRecord | undefined): ClosingOutcome {
  return bucket?.state === 'deleted' ? { kind: 'deleted', bucket } : { kind: 'gone' };
}

/** Uploads, and all that its job would take out. */
function leftovers(bucketId: Command['bucketId']): RangeAddress[] {
  return [bucketUploads(bucketId, 1), bucketTokens(bucketId, { limit: 1 }), ...versionsOf(bucketId)];
}

/** The job goes on where there is something to take out. */
function deleteClosed(
  { bucket, job }: Closing,
  view: View,
  context: DecideContext,
): Decision<ClosingOutcome> {
  const [hasUploads = false, ...others] = leftovers(bucket.bucketId).map(
    (range) => view.range(range).length > 0,
  );
  const isEmpty = !others.includes(true);
  const { jobId: _, ...rest } = bucket;
  const deleted: BucketRecord = { ...rest, state: 'deleted', ...(!isEmpty && { jobId: job.jobId }) };
  const change = isEmpty ? dropJob(job) : changeJob(job, { ...job, stage: 'older' });
  const { puts, counters } = deleteForGood(deleted, hasUploads, view, context);
  return {
    outcome: { kind: 'deleted', bucket: deleted },
    puts: [...puts, ...change.puts],
    counters: [...counters, ...change.counters],
  };
}

function reopen({ bucket, job }: Closing, { nowMs }: DecideContext): Decision<ClosingOutcome> {
  const { jobId: _, ...rest } = bucket;
  const open: BucketRecord = { ...rest, state: 'open', cfgVersion: bucket.cfgVersion + 1 };
  const { puts, counters } = changeJob(job, { ...job, stage: 'refused', endedAtMs: nowMs });
  return {
    outcome: { kind: 'reopened' },
    puts: [put(bucketRow(bucket.bucketId), bucketCodec.encode(open)), ...puts],
    counters,
  };
}
