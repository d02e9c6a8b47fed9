// PutObjectAcl: another access control list for one version, which stays the version that it is in all else.
import { isDeepStrictEqual } from 'node:util';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteEvents } from '../events/note-events.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { type HistoryScope, loadHistory, lookAtHistory } from './key-history.ts';
import { refuse } from './write-version.ts';

type Command = CommandOf<'set-acl'>;

export const setAcl = defineCommand<Command, OutcomeOf<'set-acl'>>({
  locks: ({ bucketId, key }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.key(bucketId, key))],

  look(command, view) {
    lookAtHistory(view, scopeOf(command, findBucket(view, command.bucketId)?.versioning));
  },

  decide(command, view, context) {
    const { bucketId, key, versionId, owner, before, tagsBefore, grants } = command;
    const bucket = openBucket(view, bucketId);
    const { versioning } = bucket;
    const history = loadHistory(view, bucket, scopeOf(command, versioning));
    const version = versionId === undefined ? history.latest : history.find(versionId);
    if (version === undefined)
      return refuse({ kind: versionId === undefined ? 'no-such-key' : 'no-such-version' });
    if (version.isDeleteMarker) {
      const { versionId: markerId, modifiedAtMs } = version;
      return refuse({ kind: 'delete-marker', versionId: markerId, modifiedAtMs });
    }
    const hasOtherList = before !== undefined && !isDeepStrictEqual(version.acl ?? null, before);
    const hasOtherTags = tagsBefore !== undefined && !isDeepStrictEqual(version.tags ?? [], tagsBefore);
    if (version.owner !== owner || hasOtherList || hasOtherTags) return refuse({ kind: 'other-owner' });
    const noted = noteEvents(bucket, context, () => [
      { type: 's3:ObjectAcl:Put', key, versionId: version.versionId },
    ]);
    const { acl: _before, ...rest } = version;
    return {
      outcome: { kind: 'set', versionId: version.versionId, versioning },
      puts: [history.rewritten(version, grants === null ? rest : { ...rest, acl: grants }), ...noted.puts],
      counters: noted.counters,
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
