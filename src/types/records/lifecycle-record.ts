// What a shard keeps of the lifecycle of one of its buckets: when it is looked at next, how far the pass under way has come,
// and what the last one did (metadata/lifecycle). Times are shard time.
import { defineRecord } from '../../base/record-codec.ts';
import type { BucketId } from '../names.ts';

/** What a pass goes through, one after another. Noncurrent versions come first: a marker may be alone behind them. */
export const LIFECYCLE_STAGES = ['uploads', 'noncurrent', 'current', 'markers'] as const;
export type LifecycleStage = (typeof LIFECYCLE_STAGES)[number];

/** What becomes of a version, marker or upload. */
export const LIFECYCLE_ACTIONS = [
  /** A current version goes for good: of an unversioned bucket. */
  'expire',
  /** A delete marker comes over the current version. */
  'make-marker',
  'remove-noncurrent',
  /** A delete marker goes that is alone. */
  'remove-marker',
  'abort-upload',
  /** A version goes for good because its compliance retention has ended (DeleteAfterRetention). */
  'end-retention',
] as const;
export type LifecycleAction = (typeof LIFECYCLE_ACTIONS)[number];

/** Where a pass goes on. */
export interface LifecyclePlace {
  stage: LifecycleStage;
  /** Key of the row that was examined last; absent: at the beginning of the stage. */
  after?: Uint8Array;
  /** Of that row, where it is a noncurrent version: what the next older one of its key is judged by. */
  newer?: NewerVersion;
}

/** The version that is next newer to a noncurrent one. */
export interface NewerVersion {
  order: number;
  modifiedAtMs: number;
  /** Noncurrent versions of the key, up to it. */
  count: number;
}

export interface LifecycleCounts {
  /** Versions, markers and uploads that were looked at. */
  examinedCount: number;
  /** Of them, those that were due and that retention or a hold keeps. */
  keptCount: number;
  /** Of versions that went for good. */
  sizeBytes: number;
  byAction: Partial<Record<LifecycleAction, number>>;
}

export const NO_LIFECYCLE_COUNTS: LifecycleCounts = {
  examinedCount: 0,
  keptCount: 0,
  sizeBytes: 0,
  byAction: {},
};

export function addLifecycleCounts(a: LifecycleCounts, b: LifecycleCounts): LifecycleCounts {
  const byAction = { ...a.byAction };
  for (const action of LIFECYCLE_ACTIONS) {
    const count = (a.byAction[action] ?? 0) + (b.byAction[action] ?? 0);
    if (count > 0) byAction[action] = count;
  }
  return {
    examinedCount: a.examinedCount + b.examinedCount,
    keptCount: a.keptCount + b.keptCount,
    sizeBytes: a.sizeBytes + b.sizeBytes,
    byAction,
  };
}

export interface LifecyclePass {
  beganAtMs: number;
  /** When the bucket was due. */
  dueAtMs: number;
  place: LifecyclePlace;
  /** The earliest moment at which anything that was examined, or has come since the pass began, is due; absent: never. */
  laterMs?: number;
  counts: LifecycleCounts;
}

export interface LifecycleRecord {
  bucketId: BucketId;
  /** Changes of this row: a step names the one that it follows. */
  stepCount: number;
  /** The worker looks at the bucket then: its place in the queue. While a pass is under way it is when that was due. */
  dueAtMs: number;
  /** Nothing is due before; absent: nothing will be, unless something is changed that is there already (`changeCount`). */
  nothingBeforeMs?: number;
  /** Of the changes that may make due what was not, those that the last pass has seen (lifecycle-rows.ts). */
  changeCount: number;
  pass?: LifecyclePass;
  /** The last pass that came to its end. */
  last?: { beganAtMs: number; endedAtMs: number; counts: LifecycleCounts };
}

export const lifecycleCodec = defineRecord<LifecycleRecord>({ name: 'lifecycle', version: 1 });
