// The lifecycle of a bucket as operators see it: how far its pass has come, and what a set of rules would do, page by page.
import { setImmediate } from 'node:timers/promises';
import { finishInTurns } from '../../base/async/steps.ts';
import { fromBase64, toBase64 } from '../../base/bytes/bytes.ts';
import { XmlError } from '../../base/xml/parse-xml.ts';
import type { PreviewedItem } from '../../ports/metadata/lifecycle.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { LifecycleRule } from '../../types/lifecycle.ts';
import { LIMITS } from '../../types/limits.ts';
import { parseBucketName } from '../../types/names.ts';
import {
  LIFECYCLE_STAGES,
  type LifecycleAction,
  type LifecycleCounts,
  type LifecyclePlace,
  type LifecycleStage,
} from '../../types/records/lifecycle-record.ts';
import { requireDone } from '../../types/require-done.ts';
import { lookUpBucket } from '../s3/buckets/bucket-cache.ts';
import { checkRules } from '../s3/buckets/check-lifecycle.ts';
import type { ResolvedBucket } from '../s3/context.ts';
import { readLifecycleText } from '../s3/xml/lifecycle-json.ts';

/** Rows that one page of a preview examines. */
const PREVIEW_ROWS = 2000;
/** Items that a page names. */
const PREVIEW_FIRST = 20;
const TIME_MAX_MS = Date.UTC(9999, 11, 31);
/** Of a row of the shard, with what stands before the object's key. */
const ROW_KEY_BYTES_MAX = 3 * LIMITS.keyBytesMax;

export interface LifecycleReport {
  bucket: string;
  enabledRuleCount: number;
  disabledRuleCount: number;
  /** Of all versions. */
  objectCount: number;
  /** ISO 8601, by the clock of the shard, as all that follow. */
  at: string;
  /** When the bucket is looked at next, or when it was due, where a pass is under way. */
  dueAt?: string;
  /** How long it has been due. */
  lagMs: number;
  /** Nothing is due before. */
  nothingBefore?: string;
  pass?: { beganAt: string; stage: LifecycleStage; counts: LifecycleCounts };
  last?: { beganAt: string; endedAt: string; counts: LifecycleCounts };
}

/** NoSuchEntity. */
export async function readLifecycle(metadata: MetadataPort, name: string): Promise<LifecycleReport> {
  const { homeShard, record: bucket, configs } = await findBucket(metadata, name);
  const reply = await metadata.query({ shard: homeShard }, 'lifecycle-status', { bucketId: bucket.bucketId });
  const { record, nowMs, objectCount } = requireDone(reply);
  const rules = configs.lifecycle?.rules ?? [];
  const enabledRuleCount = rules.filter(({ isEnabled }) => isEnabled).length;
  const report: LifecycleReport = {
    bucket: bucket.name,
    enabledRuleCount,
    disabledRuleCount: rules.length - enabledRuleCount,
    objectCount,
    at: isoTime(nowMs),
    lagMs: record === null ? 0 : Math.max(0, nowMs - record.dueAtMs),
  };
  if (record === null) return report;
  const { dueAtMs, nothingBeforeMs, pass, last } = record;
  report.dueAt = isoTime(dueAtMs);
  if (nothingBeforeMs !== undefined) report.nothingBefore = isoTime(nothingBeforeMs);
  if (pass !== undefined) {
    const { beganAtMs, place, counts } = pass;
    report.pass = { beganAt: isoTime(beganAtMs), stage: place.stage, counts };
  }
  if (last !== undefined) {
    const { beganAtMs, endedAtMs, counts } = last;
    report.last = { beganAt: isoTime(beganAtMs), endedAt: isoTime(endedAtMs), counts };
  }
  return report;
}

export interface PreviewAsked {
  /** XML, or JSON as the AWS CLI has it. Absent: the bucket's present rules. */
  document?: string;
  /** ISO 8601: what would be due then. Absent: now. */
  at?: string;
  /** Of the page before. */
  cursor?: string;
}

export interface PreviewSum {
  rule: string;
  action: LifecycleAction;
  /** Retention or a hold keeps them. */
  isKept: boolean;
  count: number;
  /** Of versions that would go for good. */
  sizeBytes: number;
}

export interface ShownItem {
  rule: string;
  action: LifecycleAction;
  isKept: boolean;
  key: string;
  versionId?: string;
  uploadId?: string;
  sizeBytes: number;
}

export interface LifecyclePreview {
  sums: PreviewSum[];
  examinedCount: number;
  first: ShownItem[];
  /** Absent behind the last page. */
  cursor?: string;
}

/**
 * A page, without doing any of it. NoSuchEntity; NoSuchLifecycleConfiguration where there are no rules and none are given;
 * MaxMessageLengthExceeded and the errors of PutBucketLifecycleConfiguration; ValidationError for a cursor or time that is none.
 */
export async function previewLifecycle(
  metadata: MetadataPort,
  name: string,
  asked: PreviewAsked & { dayMs: number },
): Promise<LifecyclePreview> {
  const bucket = await findBucket(metadata, name);
  const rules = asked.document === undefined ? presentRules(bucket) : await givenRules(asked.document);
  const { dayMs, cursor, at } = asked;
  const { bucketId } = bucket.record;
  const reply = await metadata.query({ shard: bucket.homeShard }, 'preview-lifecycle', {
    bucketId,
    rules,
    dayMs,
    ...(at !== undefined && { atMs: parseTime(at) }),
    ...(cursor !== undefined && { from: parseCursor(cursor) }),
    rowsMax: PREVIEW_ROWS,
    firstMax: PREVIEW_FIRST,
  });
  const { examinedCount, sums, first, next } = requireDone(reply);
  return {
    sums: sums.map(({ ruleId: rule, ...sum }) => ({ rule, ...sum })),
    examinedCount,
    first: first.map(showItem),
    ...(next && { cursor: cursorOf(next) }),
  };
}

function showItem({ ruleId: rule, ...item }: PreviewedItem): ShownItem {
  return { rule, ...item };
}

function presentRules({ configs, record }: ResolvedBucket): LifecycleRule[] {
  if (configs.lifecycle !== undefined) return configs.lifecycle.rules;
  throw new AppError('NoSuchLifecycleConfiguration', { fields: { BucketName: record.name } });
}

/** Rules without an id are named by their place. */
async function givenRules(text: string): Promise<LifecycleRule[]> {
  if (Buffer.byteLength(text) > LIMITS.lifecycleBodyBytesMax) throw new AppError('MaxMessageLengthExceeded');
  try {
    const given = await finishInTurns(readLifecycleText(text), () => setImmediate());
    return checkRules(given, (at) => `#${at + 1}`);
  } catch (error) {
    const fault = error instanceof AppError ? error.cause : error;
    if (!(fault instanceof XmlError)) throw error;
    const message = `This is no lifecycle configuration: ${fault.message}.`;
    throw new AppError('MalformedXML', { message, cause: fault });
  }
}

function parseTime(text: string): number {
  const timeMs = Date.parse(text);
  if (Number.isNaN(timeMs)) throw new AppError('ValidationError', { message: 'at is no time.' });
  return timeMs;
}

function cursorOf({ stage, after, newer }: LifecyclePlace): string {
  return Buffer.from(JSON.stringify([stage, after && toBase64(after), newer])).toString('base64url');
}

function parseCursor(text: string): LifecyclePlace {
  try {
    const [stage, after, newer] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    const bytes = typeof after === 'string' ? fromBase64(after) : undefined;
    const isPlace =
      LIFECYCLE_STAGES.some((each) => each === stage) && (bytes?.length ?? 0) <= ROW_KEY_BYTES_MAX;
    if (isPlace) {
      return {
        stage: stage as LifecycleStage,
        ...(bytes && { after: bytes }),
        ...(newer ? { newer: parseNewer(newer) } : {}),
      };
    }
  } catch {
    // As any other text that is no cursor.
  }
  throw new AppError('ValidationError', { message: 'cursor is of no page.' });
}

function parseNewer(value: unknown): NonNullable<LifecyclePlace['newer']> {
  const { order, modifiedAtMs, count } = value as Record<string, unknown>;
  return { order: Number(order), modifiedAtMs: Number(modifiedAtMs), count: Number(count) };
}

async function findBucket(metadata: MetadataPort, text: string): Promise<ResolvedBucket> {
  const name = parseBucketName(text);
  const bucket = name && (await lookUpBucket(metadata, name));
  if (bucket !== undefined) return bucket;
  throw new AppError('NoSuchEntity', { message: 'There is no bucket of that name.' });
}

/** Rules may be due in millions of years. */
function isoTime(timeMs: number): string {
  return new Date(Math.min(timeMs, TIME_MAX_MS)).toISOString();
}
