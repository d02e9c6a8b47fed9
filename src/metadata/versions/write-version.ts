// What every command that makes a version has in common: PUT, copy, copy onto itself, Complete.

import { assert } from '../../base/assert.ts';
import type { CommittedVersion, NewVersion, ReadVersion } from '../../ports/metadata/versions.ts';
import type { Decision } from '../../ports/state-machine.ts';
import type { DeleteBlocker } from '../../types/delete-blocker.ts';
import { type BucketId, makeVersionId, NULL_VERSION, type ObjectKey } from '../../types/names.ts';
import type { ComplianceProtection, VersionProtection } from '../../types/protection.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { endOfDefault } from '../../types/retention.ts';
import { dataLinkId, type VersionRecord } from '../../types/version.ts';
import { type Versioning, writesNullVersion } from '../../types/versioning.ts';
import { requireAdmitted } from '../buckets/buckets.ts';
import type { CommandContext } from '../schema/define-command.ts';
import type { HistoryScope, KeyHistory } from './key-history.ts';

/** The versions that writing to a key may replace. */
export function writeScope(
  bucketId: BucketId,
  key: ObjectKey,
  versioning: Versioning | undefined,
): HistoryScope {
  const replacesNull = versioning !== undefined && writesNullVersion(versioning);
  return { bucketId, key, versioning, versionIds: replacesNull ? [NULL_VERSION] : [], removalsMax: 0 };
}

/** Makes `version` the latest of its key, in place of the null version where it has that id. */
export function writeVersion(options: {
  bucket: BucketRecord;
  history: KeyHistory;
  version: NewVersion;
  context: CommandContext;
  /** Of an upload: its retention was to come when it began. */
  mayHaveEnded?: true;
}): CommittedVersion | { kind: 'blocked'; blocker: DeleteBlocker } {
  const { bucket, history, version, context, mayHaveEnded = false } = options;
  requireAdmitted(bucket, version.owner);
  const { versioning } = bucket;
  const versionId = writesNullVersion(versioning) ? NULL_VERSION : makeVersionId(context.random(24));
  const modifiedAtMs = context.nowMs;
  const { protection: given, ...rest } = version;
  requireProtectable(bucket, given);
  if (!mayHaveEnded && hasEnded(given, context))
    return { kind: 'blocked', blocker: { by: 'retention-passed' } };
  const protection = protectionOfNew(bucket, given, modifiedAtMs);
  const record = {
    ...rest,
    ...(protection && { protection }),
    versionId,
    modifiedAtMs,
    isDeleteMarker: false,
  };
  const blocker = history.write(record, context);
  if (blocker !== undefined) return { kind: 'blocked', blocker };
  return { kind: 'committed', versionId, versioning, modifiedAtMs };
}

/** By the time that retention goes by: stored, it would protect nothing, and its client would believe that it does. */
export function hasEnded(
  given: VersionProtection | undefined,
  { acceptedMs }: Pick<CommandContext, 'acceptedMs'>,
): boolean {
  return given?.retention !== undefined && given.retention.untilMs <= acceptedMs;
}

/** For what stores a version, or an upload that becomes one: whoever sends it has looked at the bucket (R45). */
export function requireProtectable({ objectLock }: BucketRecord, given: VersionProtection | undefined): void {
  const isLocked = given?.retention !== undefined || given?.legalHold === true;
  assert(!isLocked || objectLock !== undefined, 'versions are locked only in buckets with object lock');
}

/**
 * What protects a new version: what its request names, else the default of the bucket's object lock; and the conditional hold
 * under which versions of a bucket with compliance come to be (service 2.4, 2.5). A default counts from the commit.
 */
function protectionOfNew(
  { objectLock, compliance }: BucketRecord,
  given: VersionProtection | undefined,
  nowMs: number,
): VersionProtection | undefined {
  if (objectLock === undefined && compliance === undefined) return undefined;
  const rule = objectLock?.defaultRetention;
  const retention = given?.retention ?? (rule && { mode: rule.mode, untilMs: endOfDefault(rule, nowMs) });
  const isKept = compliance?.isEnabled === true;
  const ofCompliance: ComplianceProtection = {
    ...(isKept && given?.compliance?.sha256 && { sha256: given.compliance.sha256 }),
    ...(isKept && compliance.conditionalHold && { conditionalHold: true as const }),
  };
  const protection: VersionProtection = {
    ...(retention && { retention }),
    ...(given?.legalHold && { legalHold: true as const }),
    ...(given?.hadLegalHold && { hadLegalHold: true as const }),
    ...(Object.keys(ofCompliance).length > 0 && { compliance: ofCompliance }),
  };
  return Object.keys(protection).length > 0 ? protection : undefined;
}

export function isReadVersion(version: VersionRecord, read: ReadVersion): boolean {
  return (
    version.versionId === read.versionId &&
    version.order === read.order &&
    dataLinkId(version.manifest) === read.dataLinkId
  );
}

/** A decision that writes nothing. */
export function refuse<Outcome>(outcome: Outcome): Decision<Outcome> {
  return { outcome, puts: [] };
}
