// All versions of one key under another one: which rows are needed for it, and which ones it takes. Versions go as they
// are, with their ids, times, ETags, tags and links (R26): their bytes are copied, and decoded only where they go for good
// or may be protected.

import { isDeepStrictEqual } from 'node:util';
import { isLastPage } from '../../base/row-pages.ts';
import type { KeyMove, MoveResult } from '../../ports/metadata/moves.ts';
import type { CounterDelta, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { MoveRefusal } from '../../types/move-refusals.ts';
import { type BucketId, NULL_VERSION, type ObjectKey, type VersionId } from '../../types/names.ts';
import { checkWriteConditions, type WriteConditions } from '../../types/preconditions.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import {
  decodeVersion,
  decodeVersionSummary,
  storedHasAcl,
  storedVersionId,
  versionOrder,
  withOrder,
} from '../../types/records/version-record.ts';
import { linksOf } from '../../types/version.ts';
import { mayHaveOlderVersions, type Versioning, writesNullVersion } from '../../types/versioning.ts';
import { endLinks } from '../blobs/links.ts';
import { type NewEvent, removalOf } from '../events/note-events.ts';
import { COUNTER, usageDeltas } from '../schema/counters.ts';
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

/** Versions of one page of a key's history, while it is read: as many of the largest are some 30 MiB. */
const PAGE_VERSIONS = 100;
/** Ids, orders and what the engine adds, of a row that goes and one that comes. */
const ROWS_BYTES = 256;

interface Latest {
  bytes: Uint8Array;
  isMarker: boolean;
}

/** Rows of a move, as they are stored. */
export interface LoadedMove {
  source: Latest | undefined;
  /** Below the latest, newest first. */
  older: readonly Uint8Array[];
  isTooMuch: boolean;
  target: Latest | undefined;
  /** The destination's null version, where it is not its latest one. */
  targetNull: Uint8Array | undefined;
}

interface MoveAddress {
  bucketId: BucketId;
  from: ObjectKey;
  to: ObjectKey;
  /** In `look`, while the bucket's row is not there yet: undefined, and only current versions are asked for. */
  versioning: Versioning | undefined;
  /** False: an object at the destination refuses the move, and no more is read. Default true. */
  overwrites?: boolean;
}

/** Where the rows of a move are found: each by itself, or those of many keys at once (move-rows.ts). */
export interface MoveRows {
  current(key: ObjectKey): Uint8Array | undefined;
  marker(key: ObjectKey): Uint8Array | undefined;
  /** undefined: not known. */
  older(key: ObjectKey): readonly Uint8Array[] | undefined;
}

/** Those of one key. */
export function rowsOfEach(view: View, bucketId: BucketId): MoveRows {
  return {
    current: (key) => view.row(currentRow(bucketId, key)),
    marker: (key) => view.row(markerRow(bucketId, key)),
    older: () => undefined,
  };
}

/** For `look`, and again for `decide`. */
export function loadMove(
  view: View,
  rows: MoveRows,
  { bucketId, from, to, versioning, overwrites = true }: MoveAddress,
): LoadedMove {
  const hasOlder = versioning !== undefined && mayHaveOlderVersions(versioning);
  const source = latestOf(rows, from, hasOlder);
  const target = latestOf(rows, to, hasOlder);
  const loaded = { source, target, older: [], isTooMuch: false, targetNull: undefined };
  const isRefused = target !== undefined && !target.isMarker && !overwrites;
  if (source === undefined || !hasOlder || isRefused) return loaded;
  const isNullBelow = target !== undefined && storedVersionId(target.bytes) !== NULL_VERSION;
  const order = isNullBelow ? view.row(versionIdRow(bucketId, to, NULL_VERSION)) : undefined;
  const targetNull = order && view.row(versionRow(bucketId, to, readU48(order)));
  const known = rows.older(from);
  const older =
    known === undefined
      ? olderOf(view, { bucketId, from, to })
      : { older: known, isTooMuch: known.length >= versionsOfEntry({ from, to }, LIMITS.moveVersionsMax) };
  return { ...loaded, ...older, targetNull };
}

/** The same of what moves first where a key moves in several entries: its latest version, and its null version. */
export function loadFirstMove(view: View, move: MoveAddress): LoadedMove {
  const { bucketId, from } = move;
  const rows = { ...rowsOfEach(view, bucketId), older: () => [] };
  const loaded = loadMove(view, rows, move);
  if (loaded.source === undefined || storedVersionId(loaded.source.bytes) === NULL_VERSION) return loaded;
  const order = view.row(versionIdRow(bucketId, from, NULL_VERSION));
  const older = order && view.row(versionRow(bucketId, from, readU48(order)));
  return older === undefined ? loaded : { ...loaded, older: [older] };
}

/** What is added to the orders of what moves. */
export function baseOf({ target }: LoadedMove): number {
  return target === undefined ? 0 : versionOrder(target.bytes);
}

function latestOf(rows: MoveRows, key: ObjectKey, hasOlder: boolean): Latest | undefined {
  const current = rows.current(key);
  if (current !== undefined) return { bytes: current, isMarker: false };
  const marker = hasOlder ? rows.marker(key) : undefined;
  return marker && { bytes: marker, isMarker: true };
}

/** What the rows of one version below the latest take of an entry, besides its record: two that go, two that come. */
export function movedRowsBytes(from: string, to: string): number {
  return 2 * (Buffer.byteLength(from) + Buffer.byteLength(to) + ROWS_BYTES);
}

/** Versions below the latest that one entry moves: fewer than `max` where the keys are long. */
export function versionsOfEntry({ from, to }: { from: string; to: string }, max: number): number {
  return Math.max(1, Math.min(max, Math.floor(LIMITS.moveStepBytesMax / movedRowsBytes(from, to))));
}

interface OlderBounds {
  versionsMax: number;
  bytesMax: number;
  pageVersions?: number;
}

/** Page by page, so that no more is read than one entry may hold, or `bounds` allow. */
export function olderOf(
  view: View,
  { bucketId, from, to }: Pick<MoveAddress, 'bucketId' | 'from' | 'to'>,
  bounds: OlderBounds = {
    versionsMax: versionsOfEntry({ from, to }, LIMITS.moveVersionsMax),
    bytesMax: LIMITS.moveKeyBytesMax,
  },
): Pick<LoadedMove, 'older' | 'isTooMuch'> {
  const { pageVersions: limit = PAGE_VERSIONS } = bounds;
  const older: Uint8Array[] = [];
  const rowsBytes = movedRowsBytes(from, to);
  let sizeBytes = 0;
  let { gte, ...range } = versionRange({ bucketId, key: from, limit });
  const bytesMax = LIMITS.queryPageBytesMax;
  for (;;) {
    const rows = view.range({ ...range, gte, bytesMax });
    for (const { value } of rows) {
      older.push(value);
      sizeBytes += rowsBytes + value.length;
    }
    const isTooMuch = older.length >= bounds.versionsMax || sizeBytes > bounds.bytesMax;
    const last = rows.at(-1);
    if (isTooMuch || last === undefined || isLastPage(rows, { limit, bytesMax })) return { older, isTooMuch };
    gte = Buffer.concat([last.key, Uint8Array.of(0)]);
  }
}

export interface MoveChange {
  result: MoveResult;
  /** The latest version, as it was stored, where that has moved. */
  latest?: Uint8Array;
  puts: RowPut[];
  counters: CounterDelta[];
}

/** The outcome of the move, and its rows. A refused move has no rows. */
export function moveHistory(options: {
  bucket: BucketRecord;
  move: KeyMove & { to: ObjectKey };
  loaded: LoadedMove;
  overwrites: boolean;
  isPrivateOnly: boolean | undefined;
  context: Pick<CommandContext, 'rules' | 'nowMs' | 'acceptedMs' | 'minimumDays'>;
}): MoveChange {
  const { bucket, move, loaded, overwrites } = options;
  const { rules, nowMs, acceptedMs } = options.context;
  const { source, older, target } = loaded;
  if (source === undefined) return refused({ kind: 'no-such-key' });
  if (!isAsJudged(move, source)) return refused({ kind: 'not-judged' });
  const refusal = checkConditions(move, source, target);
  if (refusal !== undefined) return refused(refusal);
  if (target !== undefined && !target.isMarker && !overwrites) return refused({ kind: 'exists' });
  if (loaded.isTooMuch) return refused({ kind: 'too-many-versions' });
  if (options.isPrivateOnly && [source.bytes, ...older].some(storedHasAcl))
    return refused({ kind: 'not-private' });
  // Where no older versions can be, the one that there is is the null version.
  const hasOlder = mayHaveOlderVersions(bucket.versioning);
  const versionIds = hasOlder ? [source.bytes, ...older].map(storedVersionId) : [NULL_VERSION];
  const replaced = versionIds.includes(NULL_VERSION) ? nullVersionOf(loaded) : undefined;
  // A bucket that keeps versions loses none by a write: only a deletion takes a null version away, with a right of its own.
  const mayReplace = overwrites && writesNullVersion(bucket.versioning);
  if (replaced !== undefined && !mayReplace && !decodeVersionSummary(replaced).isDeleteMarker) {
    return refused({ kind: 'exists' });
  }
  if (rules.mayBlockDeletes(bucket)) {
    for (const bytes of [source.bytes, ...older, ...(replaced === undefined ? [] : [replaced])]) {
      const blocker = rules.deleteBlocker(decodeVersionSummary(bytes), bucket, { acceptedMs });
      if (blocker !== undefined)
        return refused({ kind: 'blocked', versionId: storedVersionId(bytes), blocker });
    }
  }
  const { bucketId } = bucket;
  const puts = movePuts({ bucketId, move, loaded, versionIds, replaced });
  const moves = [{ name: COUNTER.moves, delta: 1 }];
  const moved = { result: versionIds, latest: source.bytes };
  if (replaced === undefined) return { ...moved, puts, counters: moves };
  const gone = decodeVersion(replaced);
  puts.push(...endLinks(linksOf(gone.manifest), nowMs));
  const usage = usageDeltas(bucket, { added: [], removed: [gone] }, options.context);
  return { ...moved, puts, counters: [...moves, ...usage] };
}

/**
 * The two events of a key that has moved, in the words of S3: an object was created under the new key, and removed from the old
 * one. None where no latest version moved: older versions have no events of their own.
 */
export function renameOf(
  { from, to }: { from: ObjectKey; to: ObjectKey },
  { latest }: MoveChange,
): NewEvent[] {
  if (latest === undefined) return [];
  const version = { ...decodeVersionSummary(latest), versionId: storedVersionId(latest) };
  const { versionId, isDeleteMarker, sizeBytes, etag } = version;
  const came: NewEvent = isDeleteMarker
    ? { type: 's3:ObjectRemoved:DeleteMarkerCreated', key: to, versionId, otherKey: from }
    : { type: 's3:ObjectCreated:Copy', key: to, versionId, sizeBytes, etag, otherKey: from };
  return [came, { ...removalOf(from, version), otherKey: to }];
}

export function refused(refusal: MoveRefusal): MoveChange {
  return { result: refusal, puts: [], counters: [] };
}

/** Tags may have changed since, or another object may be there. */
function isAsJudged({ sourceJudged }: KeyMove, source: Latest): boolean {
  if (sourceJudged === undefined) return true;
  if (sourceJudged === null || source.isMarker) return sourceJudged === null && source.isMarker;
  const { owner, acl = [], tags = [] } = decodeVersion(source.bytes);
  return isDeepStrictEqual({ owner, acl, tags }, sourceJudged);
}

function checkConditions(
  { sourceConditions, targetConditions }: KeyMove,
  source: Latest,
  target: Latest | undefined,
): MoveRefusal | undefined {
  const ofSource = checkLatest(source, sourceConditions);
  // A delete marker has no ETag to match.
  if (ofSource?.kind === 'no-such-key') return ofSource;
  if (ofSource !== undefined) return { kind: 'source-condition', condition: ofSource.condition };
  const ofTarget = checkLatest(target, targetConditions);
  if (ofTarget === undefined) return undefined;
  const condition = ofTarget.kind === 'no-such-key' ? 'If-Match' : ofTarget.condition;
  return { kind: 'target-condition', condition };
}

function checkLatest(latest: Latest | undefined, conditions: WriteConditions | undefined) {
  if (conditions === undefined) return undefined;
  const isObject = latest !== undefined && !latest.isMarker;
  return checkWriteConditions(isObject ? decodeVersionSummary(latest.bytes) : undefined, conditions);
}

/** A key has one null version: the one that comes takes the place of the one that is there. */
export function nullVersionOf({
  target,
  targetNull,
}: Pick<LoadedMove, 'target' | 'targetNull'>): Uint8Array | undefined {
  const isLatest = target !== undefined && storedVersionId(target.bytes) === NULL_VERSION;
  return isLatest ? target.bytes : targetNull;
}

function movePuts(options: {
  bucketId: BucketId;
  move: { from: ObjectKey; to: ObjectKey };
  loaded: LoadedMove;
  versionIds: readonly VersionId[];
  replaced: Uint8Array | undefined;
}): RowPut[] {
  const { bucketId, move, loaded, versionIds, replaced } = options;
  const { older, target, targetNull } = loaded;
  const source = loaded.source as Latest;
  const { from, to } = move;
  const latestRow = ({ isMarker }: Latest, key: ObjectKey) =>
    (isMarker ? markerRow : currentRow)(bucketId, key);
  // All come above what is there, in the order that they have.
  const base = baseOf(loaded);
  const rebased = (bytes: Uint8Array) => rebasedOn(base, bytes);
  const puts = [remove(latestRow(source, from)), put(latestRow(source, to), rebased(source.bytes))];
  if (target !== undefined) {
    if (target.isMarker !== source.isMarker) puts.push(remove(latestRow(target, to)));
    if (target.bytes !== replaced) {
      puts.push(put(versionRow(bucketId, to, base), target.bytes));
      puts.push(put(versionIdRow(bucketId, to, storedVersionId(target.bytes)), u48(base)));
    }
  }
  if (replaced !== undefined && replaced === targetNull) {
    puts.push(remove(versionRow(bucketId, to, versionOrder(replaced))));
    puts.push(remove(versionIdRow(bucketId, to, NULL_VERSION)));
  }
  const place = { bucketId, from, to, base };
  for (const [index, bytes] of older.entries()) {
    for (const row of olderPuts(place, bytes, versionIds[index + 1] as VersionId)) puts.push(row);
  }
  return puts;
}

function rebasedOn(base: number, bytes: Uint8Array): Uint8Array {
  return base === 0 ? bytes : withOrder(bytes, base + versionOrder(bytes));
}

/** A version below the latest goes from one key to another. */
function olderPuts(
  { bucketId, from, to, base }: { bucketId: BucketId; from: ObjectKey; to: ObjectKey; base: number },
  bytes: Uint8Array,
  versionId: VersionId,
): RowPut[] {
  const order = versionOrder(bytes);
  return [
    remove(versionRow(bucketId, from, order)),
    remove(versionIdRow(bucketId, from, versionId)),
    put(versionRow(bucketId, to, base + order), rebasedOn(base, bytes)),
    put(versionIdRow(bucketId, to, versionId), u48(base + order)),
  ];
}

/** The same of some of a key's versions, as they are stored. */
export function moveOlder(
  place: { bucketId: BucketId; from: ObjectKey; to: ObjectKey; base: number },
  older: readonly Uint8Array[],
): MoveChange {
  const versionIds = older.map(storedVersionId);
  const puts: RowPut[] = [];
  for (const [at, bytes] of older.entries())
    for (const row of olderPuts(place, bytes, versionIds[at] as VersionId)) puts.push(row);
  // Who walks over all versions is to see that some have moved.
  return { result: versionIds, puts, counters: [{ name: COUNTER.moves, delta: 1 }] };
}
