// PUT and copy: one entry writes the version, the rows of its data, and the end of what it replaced (R25, R26).

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { checkWriteConditions } from '../../types/preconditions.ts';
import { isComposed, linksOf } from '../../types/version.ts';
import { admitGrant, existsAlready, grantLocks, lookAtGrant } from '../blobs/links.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteCreated } from '../events/note-events.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { loadHistory, lookAtHistory } from './key-history.ts';
import { putHistories } from './put-histories.ts';
import { refuse, writeScope, writeVersion } from './write-version.ts';

export const commitVersion = defineCommand<CommandOf<'commit-version'>, OutcomeOf<'commit-version'>>({
  locks: ({ bucketId, key, data }) => [
    shared(LOCK.bucket(bucketId)),
    exclusive(LOCK.key(bucketId, key)),
    ...grantLocks(data),
  ],

  look({ bucketId, key, data }, view) {
    const versioning = findBucket(view, bucketId)?.versioning;
    lookAtHistory(view, writeScope(bucketId, key, versioning));
    lookAtGrant(data, view);
  },

  decide({ bucketId, key, version, data, conditions, event }, view, context) {
    if (existsAlready(data, view)) return refuse({ kind: 'exists' });
    const bucket = openBucket(view, bucketId);
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const refusal = checkWriteConditions(history.currentObject, conditions);
    if (refusal !== undefined) return refuse(refusal);
    const admitted = admitGrant({
      grant: data,
      names: linksOf(version.manifest),
      view,
      context,
      composedIn: isComposed(version) ? bucketId : undefined,
    });
    if (admitted.kind !== 'admitted') return refuse(admitted);
    const outcome = writeVersion({ bucket, history, version, context });
    if (outcome.kind === 'blocked') return refuse(outcome);
    const placed = putHistories({ bucket, histories: [history], context });
    const type = event ?? 's3:ObjectCreated:Put';
    const noted = noteCreated(bucket, context, { type, key, version, written: outcome });
    return { outcome, ...joinChanges([admitted, placed, noted]) };
  },
});
