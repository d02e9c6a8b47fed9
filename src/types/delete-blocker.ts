// Why may this version not go? Asked wherever a version is removed for good or leaves its key: overwriting a null version,
// deleting by version id, completing an upload, MOVE, forced deletion of a bucket, lifecycle. Object lock, legal hold,
// compliance and conditional hold are decided here and nowhere else (service 3).
import type { BucketRecord } from './records/rows.ts';
import type { VersionSummary } from './version.ts';

export type DeleteBlocker = { by: 'retention' | 'legal-hold' | 'compliance' | 'conditional-hold' };

/** Of a removal. */
export interface Removal {
  /** Shard time, ms (R19). */
  nowMs: number;
  /** The caller may bypass retention in GOVERNANCE mode, and asks to. */
  bypassesGovernance?: boolean;
}

/**
 * The rules that every removal of versions must ask. The state machine passes them to all of them (createMetadataMachine),
 * so that they cannot differ; tests use other rules to see their effect.
 */
export interface DeleteRules {
  /** Whether anything in the bucket may be protected: where nothing is, versions need not be decoded to be asked. */
  mayBlockDeletes(bucket: BucketRecord): boolean;
  /**
   * undefined when `version` may go. What protects a version stands in its record's head, which is all that is read of it
   * where a bucket with millions of them is looked at.
   */
  deleteBlocker(version: VersionSummary, bucket: BucketRecord, removal: Removal): DeleteBlocker | undefined;
}

/** Those of the product. */
export const DELETE_RULES: DeleteRules = {
  mayBlockDeletes: ({ mayProtect = false }) => mayProtect,
  deleteBlocker({ protection }, _bucket, { nowMs, bypassesGovernance = false }) {
    if (protection === undefined) return undefined;
    const { retention, legalHold, compliance = {} } = protection;
    if (legalHold || compliance.legalHold) return { by: 'legal-hold' };
    if (compliance.conditionalHold && compliance.holdReleasedAtMs === undefined)
      return { by: 'conditional-hold' };
    if ((compliance.retainUntilMs ?? 0) > nowMs) return { by: 'compliance' };
    if (retention === undefined || retention.untilMs <= nowMs) return undefined;
    return retention.mode === 'GOVERNANCE' && bypassesGovernance ? undefined : { by: 'retention' };
  },
};
