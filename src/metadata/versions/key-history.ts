// The versions of one key as a command sees and changes them. A command loads those it may touch, changes the list,
// and takes the rows that make the difference: where each version lies (current, marker, older) follows from the list.
// It knows nothing of links: put-histories.ts ends those of what was removed.

import type { RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import type { DeleteBlocker, Removal } from '../../types/delete-blocker.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BucketId, NULL_VERSION, type ObjectKey, type VersionId } from '../../types/names.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { decodeVersion, encodeVersion } from '../../types/records/version-record.ts';
import type { Tag } from '../../types/tags.ts';
import type { VersionRecord } from '../../types/version.ts';
import { mayHaveOlderVersions, type Versioning } from '../../types/versioning.ts';
import type { CommandContext } from '../schema/define-command.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import {
  currentRow,
  markerRow,
  put,
  remove,
  versionIdRow,
  versionRange,
  versionRow,
} from '../schema/keyspace.ts';

/** What of a key's history a command may touch; the latest version is always loaded. */
export interface HistoryScope {
  bucketId: BucketId;
  key: ObjectKey;
  /** In `look`, while the bucket's row is not there yet: undefined, and only the current version is asked for. */
  versioning: Versioning | undefined;
  /** Versions that it asks for by id. */
  versionIds: readonly VersionId[];
  /** How many versions it may remove by id at most: as many below the latest are loaded, so one is left to follow it. */
  removalsMax: number;
}

/** By which rules and when a version goes, or stays. */
type Removing = Pick<CommandContext, 'rules'> & Removal;

interface Stored {
  record: VersionRecord;
  /** Absent for versions that are new. */
  bytes?: Uint8Array;
}

/** The stored versions that `scope` names, as bytes. Of an unversioned bucket that is one row. */
export function lookAtHistory(view: View, scope: HistoryScope): Uint8Array[] {
  const { bucketId, key, versioning, versionIds, removalsMax } = scope;
  const current = view.row(currentRow(bucketId, key));
  if (versioning === undefined || !mayHaveOlderVersions(versioning))
    return current === undefined ? [] : [current];
  const latest = current ?? view.row(markerRow(bucketId, key));
  if (latest === undefined) return [];
  const found = [latest];
  if (removalsMax > 0) {
    const range = { ...versionRange({ bucketId, key, limit: removalsMax }), ...bytesMaxOf(removalsMax) };
    found.push(...view.range(range).map((row) => row.value));
  }
  for (const versionId of versionIds) {
    const order = view.row(versionIdRow(bucketId, key, versionId));
    const version = order && view.row(versionRow(bucketId, key, readU48(order)));
    if (version !== undefined) found.push(version);
  }
  return found;
}

/** Where more is not taken together: of as many as are taken whatever they are, none may be missing. */
function bytesMaxOf(removalsMax: number): { bytesMax?: number } {
  return removalsMax > LIMITS.deleteItemsMin ? { bytesMax: LIMITS.deleteBytesMax + 1 } : {};
}

export function loadHistory(view: View, bucket: BucketRecord, scope: HistoryScope): KeyHistory {
  const byOrder = new Map<number, Stored>();
  for (const bytes of lookAtHistory(view, scope)) {
    const record = decodeVersion(bytes);
    byOrder.set(record.order, { record, bytes });
  }
  return new KeyHistory(bucket, scope.key, [...byOrder.values()].sort(newestFirst));
}

function newestFirst(a: Stored, b: Stored): number {
  return b.record.order - a.record.order;
}

export class KeyHistory {
  readonly #bucket: BucketRecord;
  readonly #key: ObjectKey;
  /** Newest first; the first is the latest. Between the others there may be more that were not loaded. */
  readonly #before: readonly Stored[];
  #now: Stored[];

  constructor(bucket: BucketRecord, key: ObjectKey, stored: readonly Stored[]) {
    this.#bucket = bucket;
    this.#key = key;
    this.#before = stored;
    this.#now = [...stored];
  }

  get latest(): VersionRecord | undefined {
    return this.#now[0]?.record;
  }

  /** The latest version unless it is a delete marker: what a GET without version id gives. */
  get currentObject(): VersionRecord | undefined {
    return this.latest?.isDeleteMarker ? undefined : this.latest;
  }

  /** Of those that the scope named. */
  find(versionId: VersionId): VersionRecord | undefined {
    return this.#now.find((stored) => stored.record.versionId === versionId)?.record;
  }

  /** Takes `record` out for good, or says why it must stay. */
  remove(record: VersionRecord, removing: Removing): DeleteBlocker | undefined {
    const blocker = removing.rules.deleteBlocker(record, this.#bucket, removing);
    if (blocker === undefined) this.#now = this.#now.filter((stored) => stored.record !== record);
    return blocker;
  }

  /**
   * Makes `record` the latest version. With the id `null` it replaces the null version wherever that stands, or says
   * why that must stay.
   */
  write(record: Omit<VersionRecord, 'order'>, removing: Removing): DeleteBlocker | undefined {
    const order = (this.latest?.order ?? 0) + 1;
    const replaced = record.versionId === NULL_VERSION ? this.find(NULL_VERSION) : undefined;
    const blocker = replaced && this.remove(replaced, removing);
    if (blocker === undefined) this.#now.unshift({ record: { ...record, order } });
    return blocker;
  }

  /** The row of `record` with other tags. It stays in its place: only a version's data and headers are for good. */
  retagged(record: VersionRecord, tags: Tag[]): RowPut {
    const { tags: _before, ...rest } = record;
    return this.rewritten(record, tags.length === 0 ? rest : { ...rest, tags });
  }

  /** The row of `record` as `changed`, in its place: for what changes nothing that a client sees of its data. */
  rewritten(record: VersionRecord, changed: VersionRecord): RowPut {
    const row =
      record === this.latest
        ? this.#latestRow(record)
        : versionRow(this.#bucket.bucketId, this.#key, record.order);
    return put(row, encodeVersion(changed));
  }

  /** The rows that lead from what was loaded to what is there now, and what came and went for good. */
  changes(): { puts: RowPut[]; added: VersionRecord[]; removed: VersionRecord[] } {
    const { added, removed } = difference(this.#before, this.#now);
    return {
      puts: [...this.#latestPuts(), ...this.#olderPuts()],
      added: added.map((stored) => stored.record),
      removed: removed.map((stored) => stored.record),
    };
  }

  #latestPuts(): RowPut[] {
    const [before] = this.#before;
    const [now] = this.#now;
    if (before === now) return [];
    const puts: RowPut[] = [];
    const isOverwritten = before?.record.isDeleteMarker === now?.record.isDeleteMarker;
    if (before !== undefined && !isOverwritten) puts.push(remove(this.#latestRow(before.record)));
    if (now !== undefined) puts.push(put(this.#latestRow(now.record), bytesOf(now)));
    return puts;
  }

  #olderPuts(): RowPut[] {
    const { bucketId } = this.#bucket;
    const { added, removed } = difference(this.#before.slice(1), this.#now.slice(1));
    const puts: RowPut[] = [];
    for (const { record } of removed) {
      puts.push(remove(versionRow(bucketId, this.#key, record.order)));
      puts.push(remove(versionIdRow(bucketId, this.#key, record.versionId)));
    }
    for (const stored of added) {
      const { order, versionId } = stored.record;
      puts.push(put(versionRow(bucketId, this.#key, order), bytesOf(stored)));
      puts.push(put(versionIdRow(bucketId, this.#key, versionId), u48(order)));
    }
    return puts;
  }

  #latestRow(record: VersionRecord): RowAddress {
    const address = record.isDeleteMarker ? markerRow : currentRow;
    return address(this.#bucket.bucketId, this.#key);
  }
}

function difference(
  before: readonly Stored[],
  now: readonly Stored[],
): Record<'added' | 'removed', Stored[]> {
  const had = new Set(before);
  const has = new Set(now);
  return {
    added: now.filter((stored) => !had.has(stored)),
    removed: before.filter((stored) => !has.has(stored)),
  };
}

function bytesOf(stored: Stored): Uint8Array {
  return stored.bytes ?? encodeVersion(stored.record);
}
