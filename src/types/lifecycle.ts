// Lifecycle of a bucket's objects: the rules as they are stored, one document for each bucket (service 2.3; AWS
// PutBucketLifecycleConfiguration). Which version a rule applies to, and when, is decided here and nowhere else.
import type { Tag } from './tags.ts';

/** All of what is given has to hold; an empty filter takes every object of the bucket. */
export interface LifecycleFilter {
  prefix?: string;
  tags?: Tag[];
  /** Exclusive bounds, bytes. */
  sizeGreaterThan?: number;
  sizeLessThan?: number;
}

/** A rule that is on or off, with one action at least. Days are counted from midnight to midnight, UTC. */
export interface LifecycleRule {
  id: string;
  isEnabled: boolean;
  filter: LifecycleFilter;
  /** The rule was put with a Prefix of its own instead of a Filter: it is given back so. */
  hasOldPrefix?: true;
  /** Of current versions; exactly one of the three. */
  expiration?: { days: number } | { atMs: number } | { expiredObjectDeleteMarker: boolean };
  /** Of versions that a later one has replaced. */
  noncurrentExpiration?: { days: number; newerVersions?: number };
  /** Days from its start after which an upload that was not completed is aborted. */
  abortUploadsAfterDays?: number;
}

export interface BucketLifecycle {
  rules: LifecycleRule[];
  /** As it was put (AWS x-amz-transition-default-minimum-object-size). It changes nothing: there is one storage class. */
  transitionMinimum?: 'varies_by_storage_class';
}
