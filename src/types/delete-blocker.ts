// Why may this version not go? Asked wherever a version is removed for good or leaves its key: overwriting a null version,
// deleting by version id, completing an upload, MOVE, forced deletion of a bucket, lifecycle. Object lock, legal hold,
// compliance and conditional hold are decided here and nowhere else (service 3).
import { AppError } from './errors.ts';
import type { BucketRecord } from './records/rows.ts';
import { type BucketCompliance, complianceEndMs } from './retention.ts';
import type { VersionSummary } from './version.ts';

/**
 * The first two are of object lock, the next three of compliance. `retention-passed` is no version's: what is to be written has
 * a retention that has ended.
 */
export type DeleteBlocker = {
  by:
    | 'retention'
    | 'legal-hold'
    | 'compliance'
    | 'conditional-hold'
    | 'compliance-legal-hold'
    | 'retention-passed';
};

/** Of a removal. */
export interface Removal {
  /** Shard time less what the operator has not accepted of jumps of the clock, ms (R19): what retention goes by. */
  acceptedMs: number;
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
  deleteBlocker(version, bucket, { acceptedMs, bypassesGovernance = false }) {
    // A delete marker has nothing to keep.
    if (version.isDeleteMarker) return undefined;
    const { retention, legalHold } = version.protection ?? {};
    if (legalHold) return { by: 'legal-hold' };
    const blocker = bucket.compliance && complianceBlocker(version, bucket.compliance, acceptedMs);
    if (blocker !== undefined) return blocker;
    if (retention === undefined || retention.untilMs <= acceptedMs) return undefined;
    return retention.mode === 'GOVERNANCE' && bypassesGovernance ? undefined : { by: 'retention' };
  },
};

/** When the last thing that keeps the version ends by itself, ms since epoch; Infinity: somebody has to end a hold. */
export function protectedUntilMs(
  { isDeleteMarker, modifiedAtMs, protection }: VersionSummary,
  bucket: BucketRecord,
): number {
  if (isDeleteMarker) return 0;
  const { retention, legalHold, compliance = {} } = protection ?? {};
  if (legalHold) return Number.POSITIVE_INFINITY;
  const untilMs = retention?.untilMs ?? 0;
  const settings = bucket.compliance;
  if (settings === undefined || !settings.isEnabled) return untilMs;
  const { legalHold: isHeld, conditionalHold, holdReleasedAtMs } = compliance;
  if (isHeld || (conditionalHold && holdReleasedAtMs === undefined)) return Number.POSITIVE_INFINITY;
  return Math.max(untilMs, complianceEndMs({ modifiedAtMs, ...(protection && { protection }) }, settings));
}

/** Settings of compliance bind while they are enabled, and then all versions at once, however old. */
function complianceBlocker(
  version: VersionSummary,
  settings: BucketCompliance,
  acceptedMs: number,
): DeleteBlocker | undefined {
  if (!settings.isEnabled) return undefined;
  const { legalHold, conditionalHold, holdReleasedAtMs } = version.protection?.compliance ?? {};
  if (legalHold) return { by: 'compliance-legal-hold' };
  if (conditionalHold && holdReleasedAtMs === undefined) return { by: 'conditional-hold' };
  return complianceEndMs(version, settings) > acceptedMs ? { by: 'compliance' } : undefined;
}

/** What clients are told; of object lock in AWS's words (DeleteObject of a locked version). */
export function explainBlocker({ by }: DeleteBlocker): string {
  return `Access Denied because ${REASONS[by]}.`;
}

const REASONS: Readonly<Record<DeleteBlocker['by'], string>> = {
  'retention-passed': 'its retention has ended',
  retention: 'object protected by object lock',
  'legal-hold': 'object protected by object lock',
  compliance: 'the object is protected by compliance, and its retention has not ended',
  'conditional-hold': 'the object is protected by compliance, and its conditional hold has not been released',
  'compliance-legal-hold': 'the object is protected by compliance, and is under a legal hold',
};

/** AWS's words for a lock whose end has come already. */
export const RETENTION_PASSED = 'The retain until date must be in the future!';

/**
 * The error of a request that would remove a version that has to stay (service 4.2, delete rule 3; s3-behaviour 41), or whose own
 * retention the shard's time has passed: stored, it would protect nothing.
 */
export function blockedRemoval(blocker: DeleteBlocker): AppError {
  if (blocker.by === 'retention-passed')
    return new AppError('InvalidArgument', { message: RETENTION_PASSED });
  return new AppError('AccessDenied', { message: explainBlocker(blocker) });
}
