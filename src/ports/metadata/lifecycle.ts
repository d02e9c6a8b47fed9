// Commands and queries about the lifecycle of objects: the worker's steps, and what operators see of it.
import type { LifecycleRule } from '../../types/lifecycle.ts';
import type { BucketId, ObjectKey, UploadId, VersionId } from '../../types/names.ts';
import type {
  LifecycleAction,
  LifecycleCounts,
  LifecyclePlace,
  LifecycleRecord,
} from '../../types/records/lifecycle-record.ts';

/** One thing that is due. The command decides anew, by what it then finds in this place. */
export interface LifecycleItem {
  key: ObjectKey;
  /** Of a noncurrent version. */
  order?: number;
  versionId?: VersionId;
  /** The version that has replaced it, and whether that is the latest. */
  newer?: { order: number; modifiedAtMs: number; isLatest: boolean };
  uploadId?: UploadId;
  /** It gets a delete marker, which is a row more. For refuse-growth.ts, and for the worker that it refuses. */
  isMarked?: true;
}

/** What one look has examined, within one stage. */
export interface LifecyclePage {
  /** Where it began. */
  from: LifecyclePlace;
  items: LifecycleItem[];
  examinedCount: number;
  /** Due, and kept by retention or a hold. */
  keptCount: number;
  /** The earliest moment at which anything else of it is due; absent: never. */
  laterMs?: number;
  /** Absent: all stages are over. */
  next?: LifecyclePlace;
}

/** What one rule would do in one way, to a page of a bucket. */
export interface PreviewedSum {
  ruleId: string;
  action: LifecycleAction;
  /** Retention or a hold keeps them. */
  isKept: boolean;
  count: number;
  /** Of what would go for good. */
  sizeBytes: number;
}

/** One thing that a rule set would take, as far as a preview names them. */
export interface PreviewedItem {
  ruleId: string;
  key: ObjectKey;
  action: LifecycleAction;
  /** Retention or a hold keeps it. */
  isKept: boolean;
  /** Of a version or marker. */
  versionId?: VersionId;
  uploadId?: UploadId;
  /** Of what would go for good. */
  sizeBytes: number;
}

export interface LifecycleCommands {
  /**
   * One step of a bucket's pass, behind step `stepCount` of its row: takes what is due of `page` by the rules as they are now.
   * Without a page: nothing is due, and it is looked at again at the next midnight. `elsewhere`: the row, the bucket's settings
   * or its state are others. A pass begins with its first page: `beganAtMs` and `changeCount` are from before that was read.
   */
  'step-lifecycle': {
    command: {
      bucketId: BucketId;
      cfgVersion: number;
      stepCount: number;
      dayMs: number;
      changeCount: number;
      beganAtMs: number;
      page?: LifecyclePage;
    };
    outcome: { kind: 'stepped'; record: LifecycleRecord; counts: LifecycleCounts } | { kind: 'elsewhere' };
  };
}

export interface LifecycleQueries {
  /** Buckets that are due, the longest due first. `nowMs`: the time by which they are. */
  'list-due-lifecycles': {
    query: { limit: number };
    result: { due: { bucketId: BucketId; dueAtMs: number }[]; nowMs: number };
  };
  /**
   * What is next due in a bucket, behind `from`, or else where its pass goes on. Examines `rowsMax` rows and finds `itemsMax`
   * items at most. `gone`: it has no lifecycle, or is not open.
   */
  'find-expirable': {
    query: {
      bucketId: BucketId;
      dayMs: number;
      from?: LifecyclePlace;
      rowsMax: number;
      itemsMax: number;
    };
    result:
      | { kind: 'gone' }
      | {
          kind: 'found';
          cfgVersion: number;
          stepCount: number;
          changeCount: number;
          nowMs: number;
          /** Absent: nothing is due. */
          page?: LifecyclePage;
        };
  };
  /** null: no rule is enabled, and nothing goes when its retention ends. `objectCount`: of the bucket, all versions. */
  'lifecycle-status': {
    query: { bucketId: BucketId };
    result: { record: LifecycleRecord | null; nowMs: number; objectCount: number };
  };
  /**
   * What these rules would do to a page of a bucket at `atMs` (default: now), without doing it. `first`: the first items of the
   * page, `firstMax` at most. `next` is absent at the end.
   */
  'preview-lifecycle': {
    query: {
      bucketId: BucketId;
      rules: LifecycleRule[];
      dayMs: number;
      atMs?: number;
      from?: LifecyclePlace;
      rowsMax: number;
      firstMax: number;
    };
    result: { examinedCount: number; sums: PreviewedSum[]; first: PreviewedItem[]; next?: LifecyclePlace };
  };
}
