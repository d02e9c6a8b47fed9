// What writes and deletes mean in each state of a bucket's versioning (AWS "How S3 Versioning works"). Whether a
// version may go is delete-blocker.ts.
import type { BucketRecord } from './records/rows.ts';

export type Versioning = BucketRecord['versioning'];

/**
 * New versions have the id `null` and replace the null version wherever it stands, current or not; so do the markers
 * of a suspended bucket.
 */
export function writesNullVersion(versioning: Versioning): boolean {
  return versioning !== 'enabled';
}

/** There may be versions besides the latest, and delete markers: a bucket never becomes unversioned again. */
export function mayHaveOlderVersions(versioning: Versioning): boolean {
  return versioning !== 'unversioned';
}

/** A delete without a version id writes a marker, also for a key that never existed (s3-behaviour 38). */
export function deletesByMarker(versioning: Versioning): boolean {
  return versioning !== 'unversioned';
}
