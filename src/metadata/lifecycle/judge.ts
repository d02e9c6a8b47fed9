// What becomes of one version, marker or upload by the rules of its bucket at a moment. The look that finds what is due and
// the commit that takes it ask here, so they cannot differ but by what has changed between them.
import { type DeleteRules, protectedUntilMs } from '../../types/delete-blocker.ts';
import {
  abortOf,
  daysAfter,
  earliestOfNew,
  expirationOf,
  type LifecycleDue,
  type LifecycleRule,
  markerExpirationOf,
  nextMidnight,
  noncurrentExpirationOf,
  noTags,
} from '../../types/lifecycle.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';
import {
  LIFECYCLE_STAGES,
  type LifecycleAction,
  type LifecycleStage,
  type NewerVersion,
} from '../../types/records/lifecycle-record.ts';
import type { BucketRecord, UploadRecord } from '../../types/records/rows.ts';
import { decodeVersion, decodeVersionSummary, type StoredHead } from '../../types/records/version-record.ts';
import { complianceEndMs } from '../../types/retention.ts';
import type { Tag } from '../../types/tags.ts';
import type { VersionSummary } from '../../types/version.ts';
import { mayHaveOlderVersions } from '../../types/versioning.ts';
import { endsRetention } from './lifecycle-rows.ts';

export interface Judged {
  /** Due now. */
  action?: LifecycleAction;
  /** Due, and kept by retention or a hold. */
  isKept?: true;
  /** What would become of it if it were not kept. */
  keptFrom?: LifecycleAction;
  /** By which rule it is due. Absent: because its retention has ended. */
  ruleId?: string;
  /** When to look at it again; Infinity: when something is changed. */
  laterMs: number;
}

/** A version as it is stored: its head, and the whole of it for those who need more. */
export interface JudgedVersion {
  key: ObjectKey;
  head: StoredHead;
  value: Uint8Array;
}

const NEVER: Judged = { laterMs: Number.POSITIVE_INFINITY };

export interface JudgeOptions {
  rules: readonly LifecycleRule[];
  bucket: BucketRecord;
  deleteRules: DeleteRules;
  /** Accepted shard time (R19). */
  nowMs: number;
  /** Shard time. */
  readAtMs: number;
  dayMs: number;
  /** What goes when its retention ends is left out. */
  ofRulesOnly?: boolean;
}

export class LifecycleJudge {
  readonly rules: readonly LifecycleRule[];
  readonly bucket: BucketRecord;
  /** A latest version that is not older may have come while its key was being read. */
  readonly readAtMs: number;
  /** Texts that are compared to judge one version, at most; each takes some 10 ns. */
  readonly comparisonsMax: number;
  /** Newest noncurrent versions of a key that rules count. */
  readonly newestMax: number;
  readonly #deleteRules: DeleteRules;
  readonly nowMs: number;
  readonly #dayMs: number;
  readonly #endsRetention: boolean;
  readonly #mayBlock: boolean;
  /** Of the rules; Infinity: none has any. */
  readonly #leastDays: number;
  readonly #leastDateMs: number;
  readonly #leastNoncurrentDays: number;

  readonly #options: JudgeOptions;

  constructor(options: JudgeOptions) {
    this.#options = options;
    const { rules, bucket, deleteRules, nowMs, dayMs, ofRulesOnly = false } = options;
    this.rules = rules.filter(({ isEnabled }) => isEnabled);
    this.comparisonsMax = this.rules.reduce((sum, rule) => sum + comparisonsOf(rule), 0);
    this.newestMax = newestMaxOf(this.rules);
    this.bucket = bucket;
    this.#deleteRules = deleteRules;
    this.nowMs = nowMs;
    this.readAtMs = options.readAtMs;
    this.#dayMs = dayMs;
    this.#endsRetention = !ofRulesOnly && endsRetention(bucket);
    this.#leastDays = least(
      this.rules.map(({ expiration: one }) => (one && 'days' in one ? one.days : Infinity)),
    );
    this.#leastDateMs = least(
      this.rules.map(({ expiration: one }) => (one && 'atMs' in one ? one.atMs : Infinity)),
    );
    this.#leastNoncurrentDays = least(
      this.rules.map(({ noncurrentExpiration }) => noncurrentExpiration?.days ?? Infinity),
    );
    this.#mayBlock = this.#endsRetention || deleteRules.mayBlockDeletes(bucket);
  }

  /** The next midnight: for what is due and cannot be judged, or done, before. */
  get tomorrowMs(): number {
    return nextMidnight(this.nowMs, this.#dayMs);
  }

  /** The first moment at which anything may be due that comes to be, or becomes noncurrent, from now on. */
  earliestOfNewMs(): number {
    const { compliance } = this.bucket;
    const endMs =
      this.#endsRetention && compliance !== undefined
        ? complianceEndMs({ modifiedAtMs: this.nowMs }, compliance)
        : Number.POSITIVE_INFINITY;
    return Math.min(endMs, earliestOfNew(this.rules, this.nowMs, this.#dayMs));
  }

  /** Stages in which anything may be due, with the prefixes of keys that have to be looked at. */
  stages(): { stage: LifecycleStage; prefixes: readonly string[] }[] {
    const hasOlder = mayHaveOlderVersions(this.bucket.versioning);
    return LIFECYCLE_STAGES.flatMap((stage) => {
      if (!hasOlder && (stage === 'noncurrent' || stage === 'markers')) return [];
      const ofVersions = stage === 'noncurrent' || stage === 'current';
      const prefixes =
        this.#endsRetention && ofVersions
          ? ['']
          : this.rules.filter((rule) => actsIn(rule, stage)).map(({ filter }) => filter.prefix ?? '');
      return prefixes.length === 0 ? [] : [{ stage, prefixes: outermost(prefixes) }];
    });
  }

  /** The same for keys of one of its prefixes in a stage: a thousand rules are not asked for each key. */
  within(stage: LifecycleStage, prefix: string): LifecycleJudge {
    const isAsked = (rule: LifecycleRule) =>
      actsIn(rule, stage) && (rule.filter.prefix ?? '').startsWith(prefix);
    return new LifecycleJudge({ ...this.#options, rules: this.rules.filter(isAsked) });
  }

  /** No current version made at `modifiedAtMs` is due before, whatever its key, size and tags. */
  currentNotBeforeMs(modifiedAtMs: number): number {
    if (this.#endsRetention) return 0;
    return Math.min(this.#leastDateMs, daysAfter(modifiedAtMs, this.#leastDays, this.#dayMs));
  }

  /** The same of a version that is noncurrent since `sinceMs`. */
  noncurrentNotBeforeMs(sinceMs: number): number {
    return this.#endsRetention ? 0 : daysAfter(sinceMs, this.#leastNoncurrentDays, this.#dayMs);
  }

  current(version: JudgedVersion): Judged {
    const { modifiedAtMs } = version.head;
    const due = expirationOf(this.rules, { ...subjectOf(version), modifiedAtMs }, this.#dayMs);
    const byMarker = mayHaveOlderVersions(this.bucket.versioning);
    return this.#ofVersion(version, due, byMarker ? 'make-marker' : 'expire');
  }

  noncurrent(version: JudgedVersion, newer: NewerVersion): Judged {
    const subject = { ...subjectOf(version), sinceMs: newer.modifiedAtMs };
    const dueOf = (newerCount: number) =>
      noncurrentExpirationOf(this.rules, { ...subject, newerCount }, this.#dayMs);
    const due = dueOf(newer.count);
    const judged = this.#ofVersion(version, due, 'remove-noncurrent');
    if (judged.action !== undefined || judged.isKept) return judged;
    // One that is kept as one of the newest may be due as soon as another one becomes noncurrent.
    const agedMs = dueOf(Number.POSITIVE_INFINITY)?.atMs;
    if (agedMs === due?.atMs || agedMs === undefined) return judged;
    return { laterMs: Math.min(judged.laterMs, Math.max(agedMs, this.tomorrowMs)) };
  }

  /** Of a delete marker that is the latest; one that is not alone stays. */
  marker({ key, head }: Omit<JudgedVersion, 'value'>): Judged {
    const due = markerExpirationOf(this.rules, { key, modifiedAtMs: head.modifiedAtMs }, this.#dayMs);
    if (due === undefined) return NEVER;
    return this.#ofDue(due, 'remove-marker');
  }

  upload(upload: Pick<UploadRecord, 'key' | 'initiatedAtMs'>): Judged {
    const due = abortOf(this.rules, upload, this.#dayMs);
    if (due === undefined) return NEVER;
    return this.#ofDue(due, 'abort-upload');
  }

  /** Of what nothing keeps. */
  #ofDue({ atMs, ruleId }: LifecycleDue, action: LifecycleAction): Judged {
    return atMs <= this.nowMs ? { action, ruleId, ...NEVER } : { laterMs: atMs };
  }

  #ofVersion(judged: JudgedVersion, due: LifecycleDue | undefined, action: LifecycleAction): Judged {
    if (!this.#mayBlock || judged.head.isDeleteMarker)
      return due === undefined ? NEVER : this.#ofDue(due, action);
    const dueAtMs = due?.atMs ?? Number.POSITIVE_INFINITY;
    const isDue = dueAtMs <= this.nowMs;
    const byRule = due && { ruleId: due.ruleId };
    const version = decodeVersionSummary(judged.value);
    const endMs = this.#retentionEndMs(version);
    if (endMs <= this.nowMs && !this.#isBlocked(version)) return { action: 'end-retention', ...NEVER };
    // A marker over a version takes nothing away.
    if (isDue && (action === 'make-marker' || !this.#isBlocked(version)))
      return { action, ...byRule, ...NEVER };
    if (!isDue && endMs > this.nowMs) return { laterMs: Math.min(dueAtMs, endMs) };
    const untilMs = protectedUntilMs(version, this.bucket);
    const others = Math.min(...[dueAtMs, endMs].filter((atMs) => atMs > this.nowMs));
    const keptFrom = isDue ? action : 'end-retention';
    return {
      isKept: true,
      keptFrom,
      ...(isDue && byRule),
      laterMs: Math.min(others, Math.max(untilMs, this.tomorrowMs)),
    };
  }

  #retentionEndMs(version: VersionSummary): number {
    const { compliance } = this.bucket;
    return this.#endsRetention && compliance !== undefined
      ? complianceEndMs(version, compliance)
      : Number.POSITIVE_INFINITY;
  }

  #isBlocked(version: VersionSummary): boolean {
    const removal = { acceptedMs: this.nowMs };
    return this.#deleteRules.deleteBlocker(version, this.bucket, removal) !== undefined;
  }
}

/** Of its prefix, and of each of its tags with all that a version has. */
function comparisonsOf({ filter: { tags = [] } }: LifecycleRule): number {
  return 1 + tags.length * LIMITS.tagsMax;
}

export function newestMaxOf(rules: readonly LifecycleRule[]): number {
  return Math.max(0, ...rules.map(({ noncurrentExpiration }) => noncurrentExpiration?.newerVersions ?? 0));
}

function least(values: readonly number[]): number {
  return values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
}

function actsIn(rule: LifecycleRule, stage: LifecycleStage): boolean {
  const { expiration, noncurrentExpiration, abortUploadsAfterDays } = rule;
  if (stage === 'uploads') return abortUploadsAfterDays !== undefined;
  if (stage === 'noncurrent') return noncurrentExpiration !== undefined;
  if (expiration === undefined) return false;
  if ('expiredObjectDeleteMarker' in expiration)
    return stage === 'markers' && expiration.expiredObjectDeleteMarker;
  return true;
}

/** In the order of keys, and none that begins with another one. */
function outermost(prefixes: readonly string[]): string[] {
  const ordered = [...new Set(prefixes)].map((prefix) => ({ prefix, bytes: Buffer.from(prefix) }));
  ordered.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  const found: string[] = [];
  for (const { prefix } of ordered) {
    const last = found.at(-1);
    if (last === undefined || !prefix.startsWith(last)) found.push(prefix);
  }
  return found;
}

/** Decoded once, however many rules ask for its tags. */
export function subjectOf(version: JudgedVersion) {
  const { key, head } = version;
  if (head.isDeleteMarker) return { key, tags: noTags };
  let decoded: readonly Tag[] | undefined;
  const tags = () => {
    decoded ??= decodeVersion(version.value).tags ?? [];
    return decoded;
  };
  return { key, sizeBytes: head.sizeBytes, tags };
}
