// DeleteObject and DeleteObjects: one entry for all items, each of which sees what the ones before it did.
import { must } from '../../lib/assert.ts';
import { type AccountId, makeVersionId, NULL_VERSION, type ObjectKey } from '../../model/names.ts';
import { checkDeleteConditions } from '../../model/preconditions.ts';
import type { BucketRecord } from '../../model/records/rows.ts';
import { EMPTY_MANIFEST, type VersionRecord } from '../../model/version.ts';
import { deletesByMarker, type Versioning, writesNullVersion } from '../../model/versioning.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import type { DeleteItem, DeleteOutcome } from '../../ports/metadata-commands.ts';
import type { DecideContext } from '../../ports/state-machine.ts';
import { findBucket, openBucket } from '../buckets.ts';
import { defineCommand, exclusive, LOCK, shared } from '../define-command.ts';
import { type HistoryScope, type KeyHistory, loadHistory, lookAtHistory } from '../key-history.ts';
import { settleHistories } from '../settle-histories.ts';

type Command = CommandOf<'delete-versions'>;

export const deleteVersions = defineCommand<Command, OutcomeOf<'delete-versions'>>({
  locks: ({ bucketId, items }) => [
    shared(LOCK.bucket(bucketId)),
    ...[...new Set(items.map(({ key }) => key))].map((key) => exclusive(LOCK.key(bucketId, key))),
  ],

  look(command, view) {
    const versioning = findBucket(view, command.bucketId)?.versioning;
    for (const scope of scopesOf(command, versioning)) lookAtHistory(view, scope);
  },

  decide(command, view, context) {
    const { bucketId, owner, items } = command;
    const bucket = openBucket(view, bucketId);
    const histories = new Map<ObjectKey, KeyHistory>();
    for (const scope of scopesOf(command, bucket.versioning)) {
      histories.set(scope.key, loadHistory(view, bucket, scope));
    }
    const outcomes = items.map((item) => {
      const history = must(histories.get(item.key), 'every key has its history');
      return deleteOne({ item, owner, bucket, history, context });
    });
    const settled = settleHistories({ bucketId, histories: histories.values(), nowMs: context.nowMs });
    return { outcome: { kind: 'deleted-versions', items: outcomes }, ...settled };
  },
});

/** What the items of each key may touch. */
function scopesOf({ bucketId, items }: Command, versioning: Versioning | undefined): HistoryScope[] {
  const itemsByKey = Map.groupBy(items, ({ key }) => key);
  const marksNull = versioning !== undefined && writesNullVersion(versioning);
  return [...itemsByKey].map(([key, ofKey]) => {
    const versionIds = ofKey.flatMap(({ versionId }) => versionId ?? (marksNull ? NULL_VERSION : []));
    const removalsMax = ofKey.filter(({ versionId }) => versionId !== undefined).length;
    return { bucketId, key, versioning, versionIds: [...new Set(versionIds)], removalsMax };
  });
}

interface Deletion {
  item: DeleteItem;
  owner: AccountId;
  bucket: BucketRecord;
  history: KeyHistory;
  context: DecideContext;
}

function deleteOne(deletion: Deletion): DeleteOutcome {
  const { item, bucket, history } = deletion;
  const { versionId, conditions } = item;
  const target = versionId === undefined ? history.currentObject : history.find(versionId);
  const refusal = checkDeleteConditions(target?.isDeleteMarker ? undefined : target, conditions);
  if (refusal !== undefined) return refusal;
  return versionId === undefined && deletesByMarker(bucket.versioning)
    ? writeMarker(deletion)
    : removeVersion(deletion, target);
}

/** Deleting what is not there succeeds and changes nothing (s3-behaviour 25, 40). */
function removeVersion(deletion: Deletion, target: VersionRecord | undefined): DeleteOutcome {
  const { item, bucket, history, context } = deletion;
  const blocker = target && history.remove(target, context.nowMs);
  if (blocker !== undefined) return { kind: 'blocked', blocker };
  const isNamed = item.versionId !== undefined && bucket.versioning !== 'unversioned';
  return {
    kind: 'deleted',
    ...(isNamed && { versionId: item.versionId }),
    isDeleteMarker: target?.isDeleteMarker ?? false,
    madeMarker: false,
  };
}

function writeMarker({ owner, bucket, history, context }: Deletion): DeleteOutcome {
  const { nowMs } = context;
  const versionId = writesNullVersion(bucket.versioning) ? NULL_VERSION : makeVersionId(context.random(24));
  const marker: Omit<VersionRecord, 'order'> = {
    versionId,
    isDeleteMarker: true,
    sizeBytes: 0,
    modifiedAtMs: nowMs,
    etag: '',
    owner,
    originals: [],
    manifest: EMPTY_MANIFEST,
  };
  const blocker = history.write(marker, nowMs);
  if (blocker !== undefined) return { kind: 'blocked', blocker };
  return { kind: 'deleted', versionId, isDeleteMarker: true, madeMarker: true };
}
