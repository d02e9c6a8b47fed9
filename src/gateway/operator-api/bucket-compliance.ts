// The compliance settings of a bucket as the operator sees them, and the one way to end their lock (service 2.5, 3): it is kept
// with the settings, and stands in the log.
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { ComplianceUnlock } from '../../types/bucket-config.ts';
import { AppError } from '../../types/errors.ts';
import { requireDone } from '../../types/require-done.ts';
import { isComplianceLocked } from '../../types/retention.ts';
import { findBucket, noSuchBucket } from './find-bucket.ts';

export interface ShownCompliance {
  bucket: string;
  isEnabled: boolean;
  /** ISO 8601; absent: off. */
  lockTime?: string;
  isLocked: boolean;
  retentionDays: number;
  conditionalHold: boolean;
  deleteAfterRetention: boolean;
  /** Oldest first. */
  unlocks: { at: string; by: string; reason: string }[];
}

/** NoSuchEntity. */
export async function readBucketCompliance(metadata: MetadataPort, name: string): Promise<ShownCompliance> {
  const { homeShard, record } = await findBucket(metadata, name);
  const { bucketId } = record;
  const reply = await metadata.query({ shard: homeShard }, 'get-bucket', { bucketId, kinds: ['compliance'] });
  const { bucket, configs } = requireDone(reply);
  if (bucket === null || reply.kind !== 'done') throw noSuchBucket();
  const {
    isEnabled = false,
    lockAtMs,
    retentionDays = 0,
    conditionalHold = false,
    deleteAfterRetention = false,
    unlocks = [],
  } = configs.compliance ?? {};
  return {
    bucket: bucket.name,
    isEnabled,
    ...(lockAtMs !== undefined && { lockTime: new Date(lockAtMs).toISOString() }),
    isLocked:
      configs.compliance !== undefined && isEnabled && isComplianceLocked(configs.compliance, reply.timeMs),
    retentionDays,
    conditionalHold,
    deleteAfterRetention,
    unlocks: unlocks.map(showUnlock),
  };
}

function showUnlock({ atMs, by, reason }: ComplianceUnlock): ShownCompliance['unlocks'][number] {
  return { at: new Date(atMs).toISOString(), by, reason };
}

/** `by`: ARN of who asks for it. NoSuchEntity; InvalidBucketState where nothing is locked. */
export async function unlockBucketCompliance(
  { metadata, log }: { metadata: MetadataPort; log: Pick<Logger, 'warn'> },
  name: string,
  { by, reason }: { by: string; reason: string },
): Promise<ShownCompliance> {
  const { homeShard, record } = await findBucket(metadata, name);
  const { bucketId } = record;
  const outcome = requireDone(
    await metadata.execute({ shard: homeShard }, 'unlock-compliance', { bucketId, by, reason }),
  );
  if (outcome.kind === 'no-such-bucket') throw noSuchBucket();
  if (outcome.kind === 'not-locked') {
    throw new AppError('InvalidBucketState', {
      message: 'The compliance settings of the bucket are not locked.',
    });
  }
  log.warn({ bucket: outcome.bucket.name, bucketId, by, reason }, 'compliance-unlocked');
  return readBucketCompliance(metadata, outcome.bucket.name);
}
