// What every command that makes a version has in common: PUT, copy, copy onto itself, Complete.

import type { CommittedVersion, NewVersion } from '../../ports/metadata/versions.ts';
import type { Decision } from '../../ports/state-machine.ts';
import type { DeleteBlocker } from '../../types/delete-blocker.ts';
import { type BucketId, makeVersionId, NULL_VERSION, type ObjectKey } from '../../types/names.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
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
}): CommittedVersion | { kind: 'blocked'; blocker: DeleteBlocker } {
  const { bucket, history, version, context } = options;
  requireAdmitted(bucket, version.owner);
  const { versioning } = bucket;
  const versionId = writesNullVersion(versioning) ? NULL_VERSION : makeVersionId(context.random(24));
  const modifiedAtMs = context.nowMs;
  const blocker = history.write({ ...version, versionId, modifiedAtMs, isDeleteMarker: false }, context);
  if (blocker !== undefined) return { kind: 'blocked', blocker };
  return { kind: 'committed', versionId, versioning, modifiedAtMs };
}

/** A decision that writes nothing. */
export function refuse<Outcome>(outcome: Outcome): Decision<Outcome> {
  return { outcome, puts: [] };
}
