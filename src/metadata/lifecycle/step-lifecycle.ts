// One step of a bucket's lifecycle: takes the items of a page that are due, and notes how far the pass has come, in one
// entry. Each item is decided here, on the rules and the versions as they are now, whatever the look has found: so a rule that
// has been changed takes nothing any more, and what retention or a hold keeps stays.
import { must } from '../../base/assert.ts';
import { compareBytes } from '../../base/bytes/bytes.ts';
import type { LifecycleItem } from '../../ports/metadata/lifecycle.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RangeAddress, RowPut, View } from '../../ports/state-machine.ts';
import { nextMidnight } from '../../types/lifecycle.ts';
import { NULL_VERSION, type ObjectKey } from '../../types/names.ts';
import {
  addLifecycleCounts,
  type LifecycleAction,
  type LifecycleCounts,
  type LifecyclePass,
  type LifecycleRecord,
  NO_LIFECYCLE_COUNTS,
} from '../../types/records/lifecycle-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { decodeVersion, storedHead, storedVersionId } from '../../types/records/version-record.ts';
import { linksOf, type VersionRecord } from '../../types/version.ts';
import { mayHaveOlderVersions, type Versioning, writesNullVersion } from '../../types/versioning.ts';
import { endLinks } from '../blobs/links.ts';
import { joinChanges, type RowChange } from '../blobs/repair-entries.ts';
import { findBucket, isBeingRenamed } from '../buckets/buckets.ts';
import { type NewEvent, noteEvents, removalOf } from '../events/note-events.ts';
import { usageDeltas } from '../schema/counters.ts';
import { type CommandContext, defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import {
  bucketConfigRow,
  currentRow,
  markerRow,
  remove,
  versionIdRow,
  versionRange,
  versionRow,
} from '../schema/keyspace.ts';
import { endUploadWithParts, findUpload } from '../uploads/uploads.ts';
import { newMarker } from '../versions/delete-marker.ts';
import { type HistoryScope, type KeyHistory, loadHistory, lookAtHistory } from '../versions/key-history.ts';
import { putHistories } from '../versions/put-histories.ts';
import { refuse } from '../versions/write-version.ts';
import { rulesOf } from './find-expirable.ts';
import { type Judged, LifecycleJudge, newestMaxOf } from './judge.ts';
import { findLifecycle, replaceLifecycle } from './lifecycle-rows.ts';

type Command = CommandOf<'step-lifecycle'>;
type Page = NonNullable<Command['page']>;

export const stepLifecycle = defineCommand<Command, OutcomeOf<'step-lifecycle'>>({
  locks: ({ bucketId, page }) => [
    shared(LOCK.bucket(bucketId)),
    exclusive(LOCK.lifecycle(bucketId)),
    ...[...new Set((page?.items ?? []).map((item) => lockOf(bucketId, item)))].map(exclusive),
  ],

  look({ bucketId, page }, view) {
    findLifecycle(view, bucketId);
    const row = view.row(bucketConfigRow(bucketId, 'lifecycle'));
    const bucket = findBucket(view, bucketId);
    if (bucket === undefined || page === undefined) return;
    const newestMax = newestMaxOf(rulesOf(bucketId, row));
    for (const item of page.items) lookAtItem(item, { bucket, page, newestMax }, view);
  },

  decide(command, view, context) {
    const { bucketId, cfgVersion, stepCount, page, dayMs } = command;
    const before = findLifecycle(view, bucketId);
    const bucket = findBucket(view, bucketId);
    if (before?.stepCount !== stepCount) return refuse({ kind: 'elsewhere' });
    if (bucket?.state !== 'open' || bucket.cfgVersion !== cfgVersion) return refuse({ kind: 'elsewhere' });
    if (page === undefined) {
      const record = {
        ...before,
        stepCount: stepCount + 1,
        dueAtMs: nextMidnight(context.acceptedMs, dayMs),
      };
      const outcome = { kind: 'stepped' as const, record, counts: NO_LIFECYCLE_COUNTS };
      return { outcome, puts: replaceLifecycle(before, record) };
    }
    const row = view.row(bucketConfigRow(bucketId, 'lifecycle'));
    const { acceptedMs: nowMs } = context;
    const options = { rules: rulesOf(bucketId, row), bucket, deleteRules: context.rules, nowMs, dayMs };
    const judge = new LifecycleJudge({ ...options, readAtMs: Number.POSITIVE_INFINITY });
    const taking = new Taking({ bucket, judge, view, context });
    for (const item of page.items) taking.take(item, page);
    const change = taking.change();
    const counts: LifecycleCounts = {
      ...taking.counts,
      examinedCount: page.examinedCount,
      keptCount: page.keptCount + taking.counts.keptCount,
    };
    const record = stepped(before, command, page, { counts, laterMs: taking.laterMs, nowMs });
    return {
      outcome: { kind: 'stepped', record, counts },
      puts: [...change.puts, ...replaceLifecycle(before, record)],
      counters: change.counters,
    };
  },
});

function lockOf(bucketId: string, { key, uploadId }: LifecycleItem): string {
  return uploadId === undefined ? LOCK.key(bucketId, key) : LOCK.upload(uploadId);
}

interface Looking {
  bucket: BucketRecord;
  page: Page;
  /** Newest noncurrent versions that rules count. */
  newestMax: number;
}

function lookAtItem(item: LifecycleItem, { bucket, page, newestMax }: Looking, view: View): void {
  const { bucketId, versioning } = bucket;
  const { key, order, newer, uploadId } = item;
  if (uploadId !== undefined) findUpload(view, { bucketId, key, uploadId });
  else if (order !== undefined && newer !== undefined) {
    view.row(versionRow(bucketId, key, order));
    findNewer(item, bucket, view);
    if (newestMax > 0) view.range(newestOf({ bucketId, key, limit: newestMax }));
  } else lookAtHistory(view, scopeOf(bucket, versioning, key, page));
}

/** Those of a key by their rows' keys: a hundred versions of many pieces have tens of MB. */
function newestOf(options: Parameters<typeof versionRange>[0]): RangeAddress {
  return { ...versionRange(options), keysOnly: true };
}

/** The head of the version that has replaced a noncurrent one, where it is there still. */
function findNewer({ key, newer }: LifecycleItem, { bucketId }: BucketRecord, view: View) {
  if (newer === undefined) return undefined;
  const row = newer.isLatest
    ? (view.row(currentRow(bucketId, key)) ?? view.row(markerRow(bucketId, key)))
    : view.row(versionRow(bucketId, key, newer.order));
  const head = row && storedHead(row);
  return head?.order === newer.order ? head : undefined;
}

/**
 * The successor as the look has seen it, where it has gone since, by the step before this one as a rule. Not of a null version:
 * that may be another one by now, for a renamed key brings its history along.
 */
function knownNewer({ newer, versionId }: LifecycleItem, value: Uint8Array) {
  return versionId !== NULL_VERSION && versionId === storedVersionId(value) ? newer : undefined;
}

/** Of a latest version that may go, or get a marker over it; the one below it comes to light, or shows that it is not alone. */
function scopeOf(
  { bucketId, compliance }: BucketRecord,
  versioning: Versioning,
  key: ObjectKey,
  { from }: Page,
): HistoryScope {
  const marksNull = mayHaveOlderVersions(versioning) && writesNullVersion(versioning);
  const mayRemove = from.stage === 'markers' || compliance?.deleteAfterRetention === true;
  const versionIds = marksNull && from.stage === 'current' ? [NULL_VERSION] : [];
  return { bucketId, key, versioning, versionIds, removalsMax: mayRemove ? 1 : 0 };
}

/** Takes the items of one step, each by what it is now. */
class Taking {
  /** Of what was taken, and kept. */
  readonly counts: LifecycleCounts = { ...NO_LIFECYCLE_COUNTS, byAction: {} };
  /** When to look again at what was not; Infinity: never. */
  laterMs = Number.POSITIVE_INFINITY;
  readonly #bucket: BucketRecord;
  readonly #judge: LifecycleJudge;
  readonly #view: View;
  readonly #context: CommandContext;
  readonly #histories: KeyHistory[] = [];
  /** Noncurrent versions. */
  readonly #removed: VersionRecord[] = [];
  readonly #puts: RowPut[] = [];
  readonly #happened: NewEvent[] = [];

  constructor(options: {
    bucket: BucketRecord;
    judge: LifecycleJudge;
    view: View;
    context: CommandContext;
  }) {
    this.#bucket = options.bucket;
    this.#judge = options.judge;
    this.#view = options.view;
    this.#context = options.context;
  }

  take(item: LifecycleItem, page: Page): void {
    if (isBeingRenamed(this.#bucket, item.key)) this.#later(this.#judge.tomorrowMs);
    else if (item.uploadId !== undefined) this.#takeUpload(item, item.uploadId);
    else if (item.order !== undefined) this.#takeNoncurrent(item, item.order);
    else this.#takeLatest(item, page);
  }

  change(): RowChange {
    const { nowMs } = this.#context;
    const links = this.#removed.flatMap(({ manifest }) => linksOf(manifest));
    const older = {
      puts: [...this.#puts, ...endLinks(links, nowMs)],
      counters: usageDeltas(this.#bucket, { added: [], removed: this.#removed }, this.#context),
    };
    const placed = putHistories({ bucket: this.#bucket, histories: this.#histories, context: this.#context });
    const noted = noteEvents(this.#bucket, this.#context, () => this.#happened);
    return joinChanges([older, placed, noted]);
  }

  #takeUpload({ key }: LifecycleItem, uploadId: NonNullable<LifecycleItem['uploadId']>): void {
    const name = { bucketId: this.#bucket.bucketId, key, uploadId };
    const upload = findUpload(this.#view, name);
    if (upload === undefined) return;
    const judged = this.#judge.upload(upload);
    this.#note(judged);
    if (judged.action === undefined) return;
    this.#puts.push(...endUploadWithParts(name, this.#context.nowMs));
    this.#count(judged.action, 0);
  }

  #takeNoncurrent(item: LifecycleItem, order: number): void {
    const { key } = item;
    const { bucketId } = this.#bucket;
    const row = versionRow(bucketId, key, order);
    const value = this.#view.row(row);
    if (value === undefined) return;
    const newer = findNewer(item, this.#bucket, this.#view) ?? knownNewer(item, value);
    if (newer === undefined) {
      this.#later(this.#judge.tomorrowMs);
      return;
    }
    const count = this.#newerCountOf(key, order);
    const judged = this.#judge.noncurrent({ key, head: storedHead(value), value }, { ...newer, count });
    this.#note(judged);
    const { action } = judged;
    if (action === undefined) return;
    const version = decodeVersion(value);
    this.#removed.push(version);
    this.#puts.push(remove(row), remove(versionIdRow(bucketId, key, version.versionId)));
    this.#happened.push(expired(key, version));
    this.#count(action, version.sizeBytes);
  }

  /** Of the noncurrent versions of a key that are newer: as many as rules count. */
  #newerCountOf(key: ObjectKey, order: number): number {
    const limit = this.#judge.newestMax;
    if (limit === 0) return 0;
    const { bucketId } = this.#bucket;
    const own = versionRow(bucketId, key, order);
    // The newest come first.
    const newest = this.#view.range(newestOf({ bucketId, key, limit }));
    return newest.filter((row) => compareBytes(row.key, own.key) < 0).length;
  }

  #takeLatest({ key }: LifecycleItem, page: Page): void {
    const { bucketId, versioning } = this.#bucket;
    const scope = scopeOf(this.#bucket, versioning, key, page);
    const history = loadHistory(this.#view, this.#bucket, scope);
    const { latest: head } = history;
    const isOfStage = head?.isDeleteMarker === (page.from.stage === 'markers');
    if (head === undefined || !isOfStage) return;
    const view = this.#view;
    const version = {
      key,
      head,
      get value() {
        return must(view.row(currentRow(bucketId, key)), 'the latest version is there');
      },
    };
    const judged = head.isDeleteMarker ? this.#judge.marker(version) : this.#judge.current(version);
    this.#note(judged);
    const { action } = judged;
    if (action === undefined || (action === 'remove-marker' && !this.#isAlone(key))) return;
    this.#act(action, key, history);
  }

  #isAlone(key: ObjectKey): boolean {
    const range = versionRange({ bucketId: this.#bucket.bucketId, key, limit: 1 });
    return this.#view.range(range).length === 0;
  }

  #act(action: LifecycleAction, key: ObjectKey, history: KeyHistory): void {
    const { latest } = history;
    if (latest === undefined) return;
    const marker =
      action === 'make-marker' ? newMarker(this.#bucket, this.#bucket.owner, this.#context) : undefined;
    const gone = marker === undefined ? latest : replacedBy(marker, history);
    const blocker = marker ? history.write(marker, this.#context) : history.remove(latest, this.#context);
    if (blocker !== undefined) {
      this.#note({ isKept: true, laterMs: this.#judge.tomorrowMs });
      return;
    }
    this.#histories.push(history);
    this.#happened.push(marker ? markerMade(key, marker) : expired(key, latest));
    this.#count(action, gone?.sizeBytes ?? 0);
  }

  #note({ isKept, laterMs }: Judged): void {
    if (isKept) this.counts.keptCount++;
    this.#later(laterMs);
  }

  #later(laterMs: number): void {
    this.laterMs = Math.min(this.laterMs, laterMs);
  }

  #count(action: LifecycleAction, sizeBytes: number): void {
    const { byAction } = this.counts;
    byAction[action] = (byAction[action] ?? 0) + 1;
    this.counts.sizeBytes += sizeBytes;
  }
}

function expired(key: ObjectKey, version: VersionRecord): NewEvent {
  return { ...removalOf(key, version), type: 's3:LifecycleExpiration:Delete' };
}

/** A marker of a suspended bucket goes in the place of the null version. */
function replacedBy({ versionId }: Pick<VersionRecord, 'versionId'>, history: KeyHistory) {
  return versionId === NULL_VERSION ? history.find(NULL_VERSION) : undefined;
}

function markerMade(key: ObjectKey, { versionId }: Pick<VersionRecord, 'versionId'>): NewEvent {
  return { type: 's3:LifecycleExpiration:DeleteMarkerCreated', key, versionId };
}

/** The bucket's row behind a page. */
function stepped(
  before: Readonly<LifecycleRecord>,
  { stepCount, beganAtMs, changeCount, dayMs }: Command,
  page: Page,
  done: { counts: LifecycleCounts; laterMs: number; nowMs: number },
): LifecycleRecord {
  const { pass, last: _, ...rest } = before;
  const counts = addLifecycleCounts(pass?.counts ?? NO_LIFECYCLE_COUNTS, done.counts);
  const laterMs = Math.min(pass?.laterMs ?? Infinity, page.laterMs ?? Infinity, done.laterMs);
  const later = laterMs < Infinity && laterMs;
  const began = pass ?? { beganAtMs, dueAtMs: before.dueAtMs };
  const record: LifecycleRecord = {
    ...rest,
    stepCount: stepCount + 1,
    changeCount: pass === undefined ? changeCount : before.changeCount,
    ...(before.last && { last: before.last }),
  };
  if (page.next !== undefined) {
    const { beganAtMs: from, dueAtMs } = began;
    const place = page.next;
    const under: LifecyclePass = {
      beganAtMs: from,
      dueAtMs,
      place,
      counts,
      ...(later && { laterMs: later }),
    };
    return { ...record, pass: under };
  }
  const { nothingBeforeMs: _before, ...ended } = record;
  return {
    ...ended,
    dueAtMs: nextMidnight(done.nowMs, dayMs),
    ...(later && { nothingBeforeMs: later }),
    last: { beganAtMs: began.beganAtMs, endedAtMs: done.nowMs, counts },
  };
}
