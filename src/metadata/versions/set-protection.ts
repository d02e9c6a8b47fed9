// PutObjectRetention, PutObjectLegalHold, PutObjectCompliance: what protects one version changes, and nothing else of it, so
// that extending the retention of a version of terabytes writes one row. Whether the change may be is decided here, in the
// commit, by types/retention.ts.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { ProtectionChange } from '../../ports/metadata/versions.ts';
import type { ComplianceProtection, VersionProtection } from '../../types/protection.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { complianceEndMs, mayChangeRetention } from '../../types/retention.ts';
import type { VersionRecord } from '../../types/version.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { countChange } from '../lifecycle/lifecycle-rows.ts';
import { type CommandContext, defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { type HistoryScope, loadHistory, lookAtHistory } from './key-history.ts';
import { isReadVersion, refuse } from './write-version.ts';

type Command = CommandOf<'set-protection'>;

export const setProtection = defineCommand<Command, OutcomeOf<'set-protection'>>({
  locks: ({ bucketId, key }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.key(bucketId, key))],

  look(command, view) {
    lookAtHistory(view, scopeOf(command, findBucket(view, command.bucketId)?.versioning));
  },

  decide(command, view, context) {
    const { bucketId, versionId, change } = command;
    const bucket = openBucket(view, bucketId);
    const { versioning } = bucket;
    if (!isEnabled(bucket, change)) return refuse({ kind: 'not-enabled' });
    const history = loadHistory(view, bucket, scopeOf(command, versioning));
    const version = versionId === undefined ? history.latest : history.find(versionId);
    if (version === undefined)
      return refuse({ kind: versionId === undefined ? 'no-such-key' : 'no-such-version' });
    if (version.isDeleteMarker) {
      const { versionId: markerId, modifiedAtMs } = version;
      return refuse({ kind: 'delete-marker', versionId: markerId, modifiedAtMs });
    }
    if (change.kind === 'sha256' && !isReadVersion(version, change.of))
      return refuse({ kind: 'other-version' });
    if (change.kind === 'retention' && (change.retention?.untilMs ?? Infinity) <= context.acceptedMs)
      return refuse({ kind: 'retention-passed' });
    const protection = changed(version, bucket, change, context);
    if (protection === 'blocked') return refuse({ kind: 'blocked' });
    const { protection: _before, ...rest } = version;
    return {
      outcome: { kind: 'set', versionId: version.versionId, versioning },
      puts: [history.rewritten(version, isEmpty(protection) ? rest : { ...rest, protection })],
      counters: countChange(bucket),
    };
  },
});

function isEnabled({ objectLock, compliance }: BucketRecord, change: ProtectionChange): boolean {
  const isOfCompliance = change.kind === 'compliance' || change.kind === 'sha256';
  return isOfCompliance ? compliance?.isEnabled === true : objectLock !== undefined;
}

function changed(
  version: VersionRecord,
  bucket: BucketRecord,
  change: ProtectionChange,
  context: CommandContext,
): VersionProtection | 'blocked' {
  switch (change.kind) {
    case 'retention': {
      const { retention: before, ...rest } = version.protection ?? {};
      const after = change.retention ?? undefined;
      const { acceptedMs } = context;
      const { bypassesGovernance = false } = change;
      if (!mayChangeRetention(before, after, { acceptedMs, bypassesGovernance })) return 'blocked';
      return { ...rest, ...(after && { retention: after }) };
    }
    case 'legal-hold': {
      const { legalHold: _on, hadLegalHold: _off, ...rest } = version.protection ?? {};
      return { ...rest, ...(change.isOn ? { legalHold: true } : { hadLegalHold: true }) };
    }
    default: {
      const compliance = changedCompliance(version, bucket, change, context);
      if (compliance === 'blocked') return 'blocked';
      const { compliance: _before, ...rest } = version.protection ?? {};
      return Object.keys(compliance).length === 0 ? rest : { ...rest, compliance };
    }
  }
}

function changedCompliance(
  version: VersionRecord,
  { compliance: settings }: BucketRecord,
  change: Extract<ProtectionChange, { kind: 'compliance' | 'sha256' }>,
  { nowMs }: CommandContext,
): ComplianceProtection | 'blocked' {
  const before = version.protection?.compliance ?? {};
  if (change.kind === 'sha256') return { ...before, sha256: change.sha256 };
  const { retainUntilMs, legalHold, releasesHold } = change;
  const after: ComplianceProtection = { ...before };
  if (releasesHold && before.conditionalHold) after.holdReleasedAtMs ??= nowMs;
  if (retainUntilMs !== undefined) {
    const endMs =
      settings === undefined
        ? 0
        : complianceEndMs({ ...version, protection: { compliance: after } }, settings);
    if (retainUntilMs < endMs) return 'blocked';
    after.retainUntilMs = retainUntilMs;
  }
  if (legalHold === true) after.legalHold = true;
  if (legalHold === false) delete after.legalHold;
  return after;
}

function isEmpty(protection: VersionProtection): boolean {
  return Object.keys(protection).length === 0;
}

function scopeOf(
  { bucketId, key, versionId }: Command,
  versioning: HistoryScope['versioning'],
): HistoryScope {
  const versionIds = versionId === undefined ? [] : [versionId];
  return { bucketId, key, versioning, versionIds, removalsMax: 0 };
}
