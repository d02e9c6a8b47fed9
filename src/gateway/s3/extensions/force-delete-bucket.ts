// ForceDeleteBucket (service 3, 4.1; extensions 2.5): whether all that is in the bucket may go is looked at twice,
// while it is open, so that most refusals disturb nobody, and while it is closing, when nothing can come behind the look.
// Then it is deleted for everybody, or open again; should this gateway not get that far, the shard's own node does. What
// was in it goes afterwards (metadata/buckets/empty-buckets.ts).
import { must } from '../../../base/assert.ts';
import { type ClosingCalls, driveClosing, LOOK_ROWS_MAX } from '../../../metadata/buckets/drive-closing.ts';
import { SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import { type DeleteBlocker, explainBlocker } from '../../../types/delete-blocker.ts';
import { AppError } from '../../../types/errors.ts';
import type { BucketName } from '../../../types/names.ts';
import type { EmptyBucketJob } from '../../../types/records/job-record.ts';
import { presentBucket } from '../buckets/present-bucket.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation } from '../operation.ts';

export const forceDeleteBucket = defineOperation({
  name: 'ForceDeleteBucket',
  match: { method: 'DELETE', on: 'bucket', query: ['force_delete=true'] },
  logName: 'REST.DELETE.BUCKET',
  body: 'none',
  errors: ['OperationAborted'],
  differences:
    'Not in S3: deletes the bucket with all that is in it. Refused whole (AccessDenied) when any version has to stay.',
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [
    ['s3:DeleteBucket', resource],
    ['s3:DeleteObject', `${resource}/`, undefined, { isPrefix: true }],
    ['s3:DeleteObjectVersion', `${resource}/`, undefined, { isPrefix: true, removesVersion: true }],
  ],
  async run(context) {
    const job = await closeBucket(context);
    const { name } = context.bucket().believed;
    const outcome = await driveClosing(callsOf(context), job);
    context.forgetBucket(name);
    if (outcome.kind === 'reopened') throw mayNotGo(name);
    // Somebody else's deletion ended it, so long ago that it is forgotten.
    if (outcome.kind === 'gone') throw aborted(context);
    const { bucketId, owner } = outcome.bucket;
    await context.metadata.execute({ shard: SYSTEM_SHARD }, 'forget-name', { name, bucketId, owner });
    return { status: 204 };
  },
});

/** The job by which the bucket is closing: a new one, or that of a request beside or before this one. */
async function closeBucket(context: OperationContext): Promise<EmptyBucketJob> {
  const { state, jobId } = await presentBucket(context);
  if (state === 'closing') {
    const query = { jobId: must(jobId, 'a bucket that is closing has its job') };
    const { value } = await context.metadata.query(homeOf(context), 'get-job', query);
    if (value.job?.kind === 'empty-bucket') return value.job;
    throw aborted(context);
  }
  await lookWhileOpen(context);
  // Of millions of versions that has taken its time.
  await context.requireStill();
  const { bucketId } = context.bucket().believed;
  const { value } = await context.metadata.execute(targetOf(context), 'close-bucket', { bucketId });
  if (value.kind === 'closing') return value.job;
  throw aborted(context);
}

async function lookWhileOpen(context: OperationContext): Promise<void> {
  const { bucketId, name } = context.bucket().believed;
  for (let after: string | undefined, isWhole = false; !isWhole; ) {
    context.signal().throwIfAborted();
    const query = { bucketId, ...(after !== undefined && { after }), limit: LOOK_ROWS_MAX };
    const { value } = await context.metadata.query(targetOf(context), 'find-protected', query);
    if (value.kept !== undefined) throw mayNotGo(name, value.kept.blocker);
    [after, isWhole] = [value.next, value.next === undefined];
  }
}

/** Of what is decided already: whose bucket it is was asked while it was open. */
function callsOf(context: OperationContext): ClosingCalls {
  const { metadata } = context;
  return {
    look: async (query) => (await metadata.query(homeOf(context), 'find-protected', query)).value,
    step: async (command) => (await metadata.execute(homeOf(context), 'step-closing', command)).value,
  };
}

const homeOf = (context: OperationContext) => ({ shard: context.bucket().homeShard });
const targetOf = (context: OperationContext) => ({ ...homeOf(context), bucket: context.bucket().believed });

/** `blocker`: of the first one; undefined where it is not known any more. */
function mayNotGo(name: BucketName, blocker?: DeleteBlocker): AppError {
  const reason = blocker === undefined ? '' : ` Of the first of them: ${explainBlocker(blocker)}`;
  const message = `The bucket has versions that may not be deleted now. Nothing was deleted.${reason}`;
  return new AppError('AccessDenied', { message, fields: { BucketName: name } });
}

/** Renamed, deleted or changed by a request beside this one. */
function aborted(context: OperationContext): AppError {
  return new AppError('OperationAborted', { fields: { BucketName: context.bucket().believed.name } });
}
