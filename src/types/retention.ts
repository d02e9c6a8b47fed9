// How long versions must be kept: the rules of a bucket (object lock, compliance), and which changes of a version's own
// retention are allowed. Whether a version may go is decided in delete-blocker.ts (service 2.4, 2.5, 3; extensions 2.6, 5).
import { assert } from '../base/assert.ts';
import type { Retention, VersionProtection } from './protection.ts';

const DAY_MS = 24 * 3600 * 1000;

/** Days and years that a rule may give at most: AWS's figures (PutObjectLockConfiguration, "InvalidRetentionPeriod"). */
export const RETENTION_PERIOD_MAX = { days: 36_500, years: 100 } as const;

/** What new versions of a bucket get where the request names no retention; exactly one of days and years. */
export interface DefaultRetention {
  mode: Retention['mode'];
  days?: number;
  years?: number;
}

/** Of a bucket: its object lock. It is never taken away; only the default comes and goes. */
export interface BucketObjectLock {
  defaultRetention?: DefaultRetention;
}

/** A setting of compliance that may not be changed so once the settings are locked. */
export type LockedSetting = 'status' | 'retention-days' | 'lock-time';

/** Of a bucket: its compliance settings (service 2.5). */
export interface BucketCompliance {
  isEnabled: boolean;
  /** The instant from which on no setting can be reduced, ms since epoch; absent: `off`. */
  lockAtMs?: number;
  /** Days from a version's creation, or from its release of the conditional hold, before which it may not go. */
  retentionDays: number;
  /** New versions may not go before somebody has released them. */
  conditionalHold: boolean;
  /** Versions are deleted by the service once they may go. */
  deleteAfterRetention: boolean;
}

/**
 * When a default retention ends for what is made at `fromMs`. Days have 24 hours; years are those of the calendar, in UTC,
 * so a year is never shorter than 365 days.
 */
export function endOfDefault({ days, years }: DefaultRetention, fromMs: number): number {
  if (years === undefined) {
    assert(days !== undefined, 'a default retention has days or years');
    return fromMs + days * DAY_MS;
  }
  const end = new Date(fromMs);
  end.setUTCFullYear(end.getUTCFullYear() + years);
  return end.getTime();
}

/** Whether the settings can no longer be reduced at `nowMs` (service 3, "Bucket compliance lock"). */
export function isComplianceLocked({ lockAtMs }: BucketCompliance, nowMs: number): boolean {
  return lockAtMs !== undefined && lockAtMs <= nowMs;
}

/**
 * When the bucket's compliance settings and the version's own let it go, ms since epoch; holds apart.
 * Retention = max(creation or release + RetentionDays, RetentionTime) (extensions 2.6).
 */
export function complianceEndMs(
  { modifiedAtMs, protection }: { modifiedAtMs: number; protection?: VersionProtection },
  { retentionDays }: BucketCompliance,
): number {
  const { retainUntilMs = 0, holdReleasedAtMs = modifiedAtMs } = protection?.compliance ?? {};
  return Math.max(holdReleasedAtMs + retentionDays * DAY_MS, retainUntilMs);
}

/**
 * Why the settings of a bucket may not become `after`: once they are locked, nothing may be reduced. ConditionalHold and
 * DeleteAfterRetention may change at any time (service 2.5, extensions 2.6). undefined: they may.
 */
export function refusedCompliance(
  before: BucketCompliance | undefined,
  after: BucketCompliance,
  nowMs: number,
): LockedSetting | undefined {
  if (before === undefined || !before.isEnabled || !isComplianceLocked(before, nowMs)) return undefined;
  if (!after.isEnabled) return 'status';
  if (after.retentionDays < before.retentionDays) return 'retention-days';
  return after.lockAtMs === before.lockAtMs ? undefined : 'lock-time';
}

/**
 * Whether a version's retention may become `after` (undefined: none). What has ended binds nobody. Before its end it may be
 * extended by anybody with the right to set it, in the same mode; whoever may bypass GOVERNANCE may do all else to it;
 * COMPLIANCE is never shortened, removed or changed in mode (AWS PutObjectRetention).
 */
export function mayChangeRetention(
  before: Retention | undefined,
  after: Retention | undefined,
  { acceptedMs, bypassesGovernance = false }: { acceptedMs: number; bypassesGovernance?: boolean },
): boolean {
  if (before === undefined || before.untilMs <= acceptedMs) return true;
  const isExtension = after?.mode === before.mode && after.untilMs >= before.untilMs;
  return isExtension || (before.mode === 'GOVERNANCE' && bypassesGovernance);
}
