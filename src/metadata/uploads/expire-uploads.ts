// Ends uploads that nobody will: those above an age, and those whose bucket is deleted.
import { must } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { View } from '../../ports/state-machine.ts';
import type { BucketId } from '../../types/names.ts';
import { findBucket } from '../buckets/buckets.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketUploads, deletedBucketRow, remove } from '../schema/keyspace.ts';
import { endUploadWithParts, findUpload, type UploadName } from './uploads.ts';

type Command = CommandOf<'expire-uploads'>;

export const expireUploads = defineCommand<Command, OutcomeOf<'expire-uploads'>>({
  locks: ({ uploads }) => uploads.map(({ uploadId }) => exclusive(LOCK.upload(uploadId))),
  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ uploads, emptiedBucketIds = [] }, view) {
    for (const upload of uploads) {
      findUpload(view, upload);
      findBucket(view, upload.bucketId);
    }
    for (const bucketId of emptiedBucketIds) isEmptied(view, bucketId);
  },

  decide({ uploads, olderThanMs, emptiedBucketIds = [] }, view, { nowMs, left }) {
    const isLeft = ({ uploadId }: UploadName) => left.has(LOCK.upload(uploadId));
    const initiatedBeforeMs = nowMs - olderThanMs;
    const expired = uploads.filter((upload) => !isLeft(upload) && isExpired(view, upload, initiatedBeforeMs));
    const puts = expired.flatMap((upload) => endUploadWithParts(upload, nowMs));
    const emptied = emptiedBucketIds.filter((bucketId) => isEmptied(view, bucketId));
    const leftOut = uploads.filter(isLeft).map(({ uploadId }) => uploadId);
    return {
      outcome: { kind: 'expired', count: expired.length, ...(leftOut.length > 0 && { left: leftOut }) },
      puts: [...puts, ...emptied.map((bucketId) => remove(deletedBucketRow(bucketId)))],
    };
  },
});

function isExpired(view: View, name: UploadName, initiatedBeforeMs: number): boolean {
  const upload = findUpload(view, name);
  if (upload === undefined) return false;
  const bucket = must(findBucket(view, name.bucketId), 'a bucket row outlives its uploads');
  return bucket.state === 'deleted' || upload.initiatedAtMs < initiatedBeforeMs;
}

/** No lock: a deleted bucket gets no more uploads. */
function isEmptied(view: View, bucketId: BucketId): boolean {
  const isDeleted = findBucket(view, bucketId)?.state === 'deleted';
  return view.range(bucketUploads(bucketId, 1)).length === 0 && isDeleted;
}
