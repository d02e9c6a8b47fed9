// Why may this version not go? Asked wherever a version is removed for good: overwriting a null version, deleting by
// version id, completing an upload, lifecycle. Nothing protects versions yet; what will (object lock, legal hold,
// compliance, conditional hold) is decided here and nowhere else.
import type { BucketRecord } from './records/rows.ts';
import type { VersionSummary } from './version.ts';

export type DeleteBlocker = { by: 'retention' | 'legal-hold' | 'compliance' | 'conditional-hold' };

/** Whether anything in the bucket may be protected: where nothing is, versions need not be decoded to be asked. */
export function mayBlockDeletes(_bucket: BucketRecord): boolean {
  return false;
}

/**
 * undefined when `version` may go. `nowMs` is shard time (R19). What protects a version stands in its record's head, which
 * is all that is read of it where a bucket with millions of them is looked at.
 */
export function deleteBlocker(
  _version: VersionSummary,
  _bucket: BucketRecord,
  _nowMs: number,
): DeleteBlocker | undefined {
  return undefined;
}
