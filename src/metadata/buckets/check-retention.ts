// What protects versions, as fsck sees it: that it is asked for at all, that the rules of a bucket go together and have their
// documents, and that nothing is kept longer than anybody may have wanted.
import type { FindingPlace } from '../../types/findings.ts';
import type { VersionProtection } from '../../types/protection.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { RETENTION_PERIOD_MAX } from '../../types/retention.ts';
import type { CheckScan } from '../checks/scan.ts';
import { bucketConfigRow } from '../schema/keyspace.ts';

const DAY_MS = 24 * 3600 * 1000;
/** The last moment that a date of a request can name (ISO 8601, four digits of a year), ms since epoch. */
const LAST_DATE_MS = Date.UTC(10_000, 0, 1) - 1;

/** Of a version, or of the one that an upload becomes. */
export function checkProtection(
  scan: CheckScan,
  checked: {
    protection: VersionProtection | undefined;
    bucket: BucketRecord | undefined;
    place: FindingPlace;
  },
): void {
  const { protection, bucket, place } = checked;
  if (protection === undefined) return;
  if (bucket !== undefined && !bucket.mayProtect && isProtecting(protection))
    scan.found('retention-unasked', place);
  const { retention, compliance = {} } = protection;
  const { retainUntilMs = 0, holdReleasedAtMs = 0 } = compliance;
  const endMs = Math.max(retention?.untilMs ?? 0, retainUntilMs, holdReleasedAtMs);
  if (endMs > LAST_DATE_MS) scan.found('retention-far', { ...place, note: `${endMs}` });
}

/** A sum of its bytes alone protects nothing. */
function isProtecting({ retention, legalHold, compliance = {} }: VersionProtection): boolean {
  const { sha256: _, ...kept } = compliance;
  return retention !== undefined || legalHold === true || Object.keys(kept).length > 0;
}

/** The rules of a bucket; those of one that is deleted bind nobody, and their documents have gone. */
export async function checkRetentionRules(bucket: BucketRecord, scan: CheckScan): Promise<void> {
  const { bucketId, name, state, versioning, mayProtect, objectLock, compliance } = bucket;
  if (state === 'deleted') return;
  const place = { bucket: name, table: 'buckets' };
  const isBinding = objectLock !== undefined || compliance?.isEnabled === true;
  if (isBinding && !mayProtect) scan.found('retention-unasked', place);
  if (objectLock !== undefined && (versioning !== 'enabled' || compliance?.isEnabled)) {
    const note = versioning === 'enabled' ? 'compliance' : versioning;
    scan.found('lock-misplaced', { ...place, note });
  }
  const { days = 0, years = 0 } = objectLock?.defaultRetention ?? {};
  const keptDays = compliance?.retentionDays ?? 0;
  const isFar =
    days > RETENTION_PERIOD_MAX.days ||
    years > RETENTION_PERIOD_MAX.years ||
    bucket.createdAtMs + keptDays * DAY_MS > LAST_DATE_MS;
  if (isFar) scan.found('retention-far', { ...place, note: `${days || keptDays} days, ${years} years` });
  for (const kind of ['objectLock', 'compliance'] as const)
    if (bucket[kind] !== undefined)
      await scan.expectRow(bucketConfigRow(bucketId, kind), 'config-missing', { ...place, note: kind });
}
