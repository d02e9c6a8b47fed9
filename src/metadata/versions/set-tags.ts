// PutObjectTagging, DeleteObjectTagging: other tags for one version, which stays the version that it is: its id, its
// order, its ETag and its time (AWS "Categorizing your storage using tags").
import { isDeepStrictEqual } from 'node:util';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteEvents } from '../events/note-events.ts';
import { countChange } from '../lifecycle/lifecycle-rows.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { type HistoryScope, loadHistory, lookAtHistory } from './key-history.ts';
import { refuse } from './write-version.ts';

type Command = CommandOf<'set-tags'>;

export const setTags = defineCommand<Command, OutcomeOf<'set-tags'>>({
  locks: ({ bucketId, key }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.key(bucketId, key))],

  look(command, view) {
    lookAtHistory(view, scopeOf(command, findBucket(view, command.bucketId)?.versioning));
  },

  decide(command, view, context) {
    const { bucketId, key, versionId, tags, before } = command;
    const bucket = openBucket(view, bucketId);
    const { versioning } = bucket;
    const history = loadHistory(view, bucket, scopeOf(command, versioning));
    const version = versionId === undefined ? history.latest : history.find(versionId);
    if (version === undefined) {
      return refuse({ kind: versionId === undefined ? 'no-such-key' : 'no-such-version' });
    }
    if (version.isDeleteMarker) {
      const { versionId: markerId, modifiedAtMs } = version;
      return refuse({ kind: 'delete-marker', versionId: markerId, modifiedAtMs });
    }
    if (before !== undefined) {
      const { owner, tags: present = [] } = version;
      if (before === null || !isDeepStrictEqual({ owner, tags: present }, before))
        return refuse({ kind: 'other-version' });
    }
    const type = tags === null ? 's3:ObjectTagging:Delete' : 's3:ObjectTagging:Put';
    const noted = noteEvents(bucket, context, () => [{ type, key, versionId: version.versionId }]);
    return {
      outcome: { kind: 'tagged', versionId: version.versionId, versioning },
      puts: [history.retagged(version, tags ?? []), ...noted.puts],
      counters: [...noted.counters, ...countChange(bucket)],
    };
  },
});

function scopeOf(
  { bucketId, key, versionId }: Command,
  versioning: HistoryScope['versioning'],
): HistoryScope {
  const versionIds = versionId === undefined ? [] : [versionId];
  return { bucketId, key, versioning, versionIds, removalsMax: 0 };
}
