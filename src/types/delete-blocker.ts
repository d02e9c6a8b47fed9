// Why may this version not go? Asked wherever a version is removed for good or leaves its key: overwriting a null version,
// deleting by version id, completing an upload, MOVE, forced deletion of a bucket, lifecycle. Nothing protects versions yet;
// what will (object lock, legal hold, compliance, conditional hold) is decided here and nowhere else.
import type { BucketRecord } from './records/rows.ts';
import type { VersionSummary } from './version.ts';

export type DeleteBlocker = { by: 'retention' | 'legal-hold' | 'compliance' | 'conditional-hold' };

/**
 * What whoever removes versions has to ask. The metadata's table hands it to all of them (createMetadataMachine), so that
 * they cannot differ; a test composes a machine with other answers, to see what becomes of them.
 */
export interface DeleteRules {
  /** Whether anything in the bucket may be protected: where nothing is, versions need not be decoded to be asked. */
  mayBlockDeletes(bucket: BucketRecord): boolean;
  /**
   * undefined when `version` may go. `nowMs` is shard time (R19). What protects a version stands in its record's head,
   * which is all that is read of it where a bucket with millions of them is looked at.
   */
  deleteBlocker(version: VersionSummary, bucket: BucketRecord, nowMs: number): DeleteBlocker | undefined;
}

/** Those of the product. */
export const DELETE_RULES: DeleteRules = {
  mayBlockDeletes: () => false,
  deleteBlocker: () => undefined,
};
