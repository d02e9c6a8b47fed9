// DeleteObject and DeleteObjects: one entry for the items, each of which sees what the ones before it did. Versions of
// many pieces have large rows and many links to end: then the entry is for the first of the items only.
import { must } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DeleteItem, DeleteOutcome } from '../../ports/metadata/versions.ts';
import type { View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type AccountId, NULL_VERSION, type ObjectKey } from '../../types/names.ts';
import { checkDeleteConditions } from '../../types/preconditions.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { VersionRecord } from '../../types/version.ts';
import { deletesByMarker, type Versioning, writesNullVersion } from '../../types/versioning.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { type NewEvent, noteEvents, removalOf } from '../events/note-events.ts';
import { countChange } from '../lifecycle/lifecycle-rows.ts';
import { type CommandContext, defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { currentRow } from '../schema/keyspace.ts';
import { newMarker } from './delete-marker.ts';
import { type HistoryScope, type KeyHistory, loadHistory, lookAtHistory } from './key-history.ts';
import { putHistories } from './put-histories.ts';

type Command = CommandOf<'delete-versions'>;

export const deleteVersions = defineCommand<Command, OutcomeOf<'delete-versions'>>({
  locks: ({ bucketId, items }) => [
    shared(LOCK.bucket(bucketId)),
    ...[...new Set(items.map(({ key }) => key))].map((key) => exclusive(LOCK.key(bucketId, key))),
  ],

  look(command, view) {
    takeItems(command, findBucket(view, command.bucketId)?.versioning, view);
  },

  decide(command, view, context) {
    const { bucketId, owner } = command;
    const bucket = openBucket(view, bucketId);
    const { items, scopes } = takeItems(command, bucket.versioning, view);
    const histories = new Map<ObjectKey, KeyHistory>();
    for (const scope of scopes) histories.set(scope.key, loadHistory(view, bucket, scope));
    const happened: NewEvent[] = [];
    const outcomes = items.map((item) => {
      const history = must(histories.get(item.key), 'every key has its history');
      return deleteOne({ item, owner, bucket, history, happened, context });
    });
    const placed = putHistories({ bucket, histories: histories.values(), context });
    const noted = noteEvents(bucket, context, () => happened);
    // Without the version that is gone an older one may be the latest, or a marker alone.
    const hasNamed = items.some(({ versionId }) => versionId !== undefined);
    const changed = { puts: [], counters: hasNamed && happened.length > 0 ? countChange(bucket) : [] };
    return {
      outcome: { kind: 'deleted-versions', items: outcomes },
      ...joinChanges([placed, noted, changed]),
    };
  },
});

/** Looked at together, behind the first ones. */
const GROUP_ITEMS_MAX = 128;
/** And so many times those before them: small ones say little of how large these are. */
const GROUP_GROWTH = 4;

/**
 * The first of the items, whose rows one entry can hold with all that they lead to, and what they may touch. In `look`
 * no further than to the first group that has not been read: how large its rows are is not known yet.
 */
function takeItems(
  { bucketId, items }: Command,
  versioning: Versioning | undefined,
  view: View,
): { items: DeleteItem[]; scopes: Iterable<HistoryScope> } {
  const scopes = new Map<ObjectKey, HistoryScope>();
  let sizeBytes = 0;
  let count = 0;
  for (let size: number = LIMITS.deleteItemsMin; size > 0 && count < items.length; ) {
    const group = items.slice(count, count + size);
    const lastNew = group.findLast(({ key }) => !scopes.has(key));
    const isRead = lastNew === undefined || view.has(currentRow(bucketId, lastNew.key));
    const widened = [...Map.groupBy(group, ({ key }) => key)].map(([key, ofKey]) =>
      widen(scopes.get(key) ?? { bucketId, key, versioning, versionIds: [], removalsMax: 0 }, ofKey),
    );
    for (const scope of widened) {
      for (const row of lookAtHistory(view, scope)) sizeBytes += row.length;
    }
    if (count > 0 && sizeBytes > LIMITS.deleteBytesMax) break;
    for (const scope of widened) scopes.set(scope.key, scope);
    count += group.length;
    if (!isRead) break;
    size = nextGroup(count, sizeBytes);
  }
  return { items: items.slice(0, count), scopes: scopes.values() };
}

/** How many items more there is room for, if they are as large as those before. */
function nextGroup(count: number, sizeBytes: number): number {
  const leftBytes = LIMITS.deleteBytesMax - sizeBytes;
  if (leftBytes <= 0) return 0;
  const itemsMax = Math.min(GROUP_ITEMS_MAX, count * GROUP_GROWTH);
  return sizeBytes === 0 ? itemsMax : Math.min(itemsMax, Math.floor((leftBytes * count) / sizeBytes));
}

/** What further items of its key may touch besides. */
function widen(scope: HistoryScope, items: readonly DeleteItem[]): HistoryScope {
  const { versioning, versionIds, removalsMax } = scope;
  const marksNull = versioning !== undefined && writesNullVersion(versioning);
  const named = items.flatMap(({ versionId }) => versionId ?? (marksNull ? NULL_VERSION : []));
  const removalCount = items.filter(({ versionId }) => versionId !== undefined).length;
  return {
    ...scope,
    versionIds: [...new Set([...versionIds, ...named])],
    removalsMax: removalsMax + removalCount,
  };
}

interface Deletion {
  item: DeleteItem;
  owner: AccountId;
  bucket: BucketRecord;
  history: KeyHistory;
  /** What has been done so far. */
  happened: NewEvent[];
  context: CommandContext;
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
  const { item, bucket, history, happened, context } = deletion;
  const blocker = target && history.remove(target, { ...context, ...bypassOf(item) });
  if (blocker !== undefined) return { kind: 'blocked', blocker };
  if (target !== undefined) happened.push(removalOf(item.key, target));
  const isNamed = item.versionId !== undefined && bucket.versioning !== 'unversioned';
  return {
    kind: 'deleted',
    ...(isNamed && { versionId: item.versionId }),
    isDeleteMarker: target?.isDeleteMarker ?? false,
    madeMarker: false,
    ...(target !== undefined && target.sizeBytes > 0 && { removedBytes: target.sizeBytes }),
  };
}

function bypassOf({ bypassesGovernance }: DeleteItem): { bypassesGovernance?: true } {
  return bypassesGovernance ? { bypassesGovernance } : {};
}

function writeMarker({ item, owner, bucket, history, happened, context }: Deletion): DeleteOutcome {
  const marker = newMarker(bucket, owner, context);
  const { versionId } = marker;
  const blocker = history.write(marker, context);
  if (blocker !== undefined) return { kind: 'blocked', blocker };
  happened.push({ type: 's3:ObjectRemoved:DeleteMarkerCreated', key: item.key, versionId });
  return { kind: 'deleted', versionId, isDeleteMarker: true, madeMarker: true };
}
