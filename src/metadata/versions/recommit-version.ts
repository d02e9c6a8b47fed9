// Copy onto itself with new headers: the same data under another version. There is no moment at which its blobs are
// without a link of this key, and that is why none of them needs a lock.
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { isComposed } from '../../types/version.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteCreated } from '../events/note-events.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { loadHistory, lookAtHistory } from './key-history.ts';
import { putHistories } from './put-histories.ts';
import { beginLinks, lookAtLinked, takesPlaceOf, withLink } from './take-over-links.ts';
import { isReadVersion, refuse, writeScope, writeVersion } from './write-version.ts';

type Command = CommandOf<'recommit-version'>;

export const recommitVersion = defineCommand<Command, OutcomeOf<'recommit-version'>>({
  locks: ({ bucketId, key }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.key(bucketId, key))],

  look({ bucketId, key }, view) {
    const bucket = findBucket(view, bucketId);
    const scope = writeScope(bucketId, key, bucket?.versioning);
    lookAtHistory(view, scope);
    const source = bucket && loadHistory(view, bucket, scope).currentObject;
    if (source !== undefined) lookAtLinked(source.manifest, view);
  },

  decide({ bucketId, key, expected, version, linkId, ...command }, view, context) {
    assert(version.kek !== undefined, 'an object has a key');
    const bucket = openBucket(view, bucketId);
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const source = history.currentObject;
    if (source === undefined || !isReadVersion(source, expected)) return refuse({ kind: 'changed' });
    const takesItsPlace = takesPlaceOf(source, bucket.versioning);
    const manifest = takesItsPlace ? source.manifest : withLink(source.manifest, linkId);
    const { sizeBytes, etag, originals, appendCount } = source;
    const chargedBytes = takesItsPlace ? source.chargedBytes : undefined;
    const { tags = source.tags } = command;
    const outcome = writeVersion({
      bucket,
      history,
      version: {
        sizeBytes,
        etag,
        originals,
        manifest,
        ...version,
        ...(appendCount !== undefined && { appendCount }),
        ...(chargedBytes !== undefined && { chargedBytes }),
        ...(tags?.length && { tags }),
      },
      context,
    });
    if (outcome.kind === 'blocked') return refuse(outcome);
    const composedIn = isComposed(source) ? bucketId : undefined;
    const begun = takesItsPlace ? [] : beginLinks(manifest, { view, context, composedIn });
    const placed = putHistories({ bucket, histories: [history], context });
    const noted = noteCreated(bucket, context, {
      type: 's3:ObjectCreated:Copy',
      key,
      version: source,
      written: outcome,
    });
    return { outcome, ...joinChanges([{ puts: begun, counters: [] }, placed, noted]) };
  },
});
