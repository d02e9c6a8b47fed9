// The documents by which a bucket is configured: one row for each bucket and kind (metadata/buckets/bucket-config.ts).
// A new kind is a line in each of the two tables here, and a rule beside the command.
import type { Grant } from './acl.ts';
import type { EventConsumer } from './events.ts';
import type { BucketLifecycle } from './lifecycle.ts';
import type { Quota } from './quota.ts';
import type { BucketCompliance, BucketObjectLock } from './retention.ts';

/** What a document of each kind says. Absent fields were never set. */
export interface BucketConfigs {
  versioning: {
    status?: 'enabled' | 'suspended';
    /** Enabled: versions go for good only with a second factor (gateway/s3/second-factor.ts). */
    mfaDelete?: 'enabled' | 'disabled';
  };
  /** For whom it is recorded what happens to its objects; never empty. */
  events: { consumers: EventConsumer[] };
  /** Its access control list; a bucket without one has what `private` means (acl.ts). */
  acl: { grants: Grant[] };
  /** Byte for byte as it was put, but that a rename of the bucket rewrites its name (rename-in-policy.ts). */
  policy: {
    text: string;
    /** The ids of the users and roles that its principals meant when it was put, by ARN. Absent: of older policies. */
    ids?: Record<string, string>;
  };
  /** Its object lock, which is on where there is one. `isCleared`: the default was taken away, which reads show (service 4.1). */
  objectLock: BucketObjectLock & { isCleared?: true };
  /** Its compliance settings. `unlocks`: when the operator has ended their lock, and why; the last ones. */
  compliance: BucketCompliance & { unlocks?: ComplianceUnlock[] };
  lifecycle: BucketLifecycle;
  /** The operator's. */
  quota: Quota;
}

/** Record of an operator's command that has ended a lock of compliance settings. */
export interface ComplianceUnlock {
  atMs: number;
  /** Who gave it: a principal's ARN. */
  by: string;
  reason: string;
}

export type ConfigKind = keyof BucketConfigs;

/** The numbers by which rows name their kind. They are stored, so a number is never given to another kind. */
export const CONFIG_KIND_IDS: Readonly<Record<ConfigKind, number>> = {
  versioning: 1,
  events: 2,
  acl: 3,
  policy: 4,
  objectLock: 5,
  compliance: 6,
  lifecycle: 7,
  quota: 8,
};

export const CONFIG_KINDS = Object.keys(CONFIG_KIND_IDS) as readonly ConfigKind[];

/** Of one bucket: the documents that it has. */
export type ConfigsOfBucket = { readonly [K in ConfigKind]?: BucketConfigs[K] };

/** What a bucket may be given with its creation: it is there with all of it, or not at all. */
export type CreationSettings = Pick<ConfigsOfBucket, 'versioning' | 'acl' | 'objectLock'>;
