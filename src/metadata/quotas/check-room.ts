// Whether a body fits under the quotas, before it is taken in: a large upload is refused at its start, and the lease that it will
// need is extended then. The commit decides anew.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { NULL_VERSION } from '../../types/names.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { type CommandContext, defineCommand, LOCK, shared } from '../schema/define-command.ts';
import { loadHistory, lookAtHistory } from '../versions/key-history.ts';
import { refuse, writeScope } from '../versions/write-version.ts';
import { whatIsPassed } from './enforce-quotas.ts';

export const checkRoom = defineCommand<CommandOf<'check-room'>, OutcomeOf<'check-room'>>({
  locks: ({ bucketId }) => [shared(LOCK.bucket(bucketId))],

  look({ bucketId, key, isPart }, view) {
    const versioning = findBucket(view, bucketId)?.versioning;
    if (isPart !== true) lookAtHistory(view, writeScope(bucketId, key, versioning));
  },

  decide({ bucketId, key, sizeBytes, isPart }, view, context: CommandContext) {
    const bucket = openBucket(view, bucketId);
    const passed = (growth: { bytes: number; objects: number }) =>
      refuse(whatIsPassed(bucket, () => growth, context) ?? { kind: 'room' as const });
    if (isPart === true) return passed({ bytes: sizeBytes, objects: 0 });
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const replaced = bucket.versioning === 'enabled' ? undefined : history.find(NULL_VERSION);
    const objects = replaced === undefined || replaced.isDeleteMarker ? 1 : 0;
    return passed({ bytes: sizeBytes - (replaced?.sizeBytes ?? 0), objects });
  },
});
