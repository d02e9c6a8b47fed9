// All versions of a key that moves in several entries, looked at before the first of them moves: where one of them may not,
// because it is protected or has a list that may not come along, nothing of the key does.
import type { Steps } from '../../base/async/steps.ts';
import type { View } from '../../ports/state-machine.ts';
import type { DeleteRules } from '../../types/delete-blocker.ts';
import { LIMITS } from '../../types/limits.ts';
import type { MoveRefusal } from '../../types/move-refusals.ts';
import type { BucketId, ObjectKey, VersionId } from '../../types/names.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { decodeVersionSummary, storedHasAcl, storedVersionId } from '../../types/records/version-record.ts';
import type { VersionSummary } from '../../types/version.ts';
import type { CommandContext } from '../schema/define-command.ts';
import { loadFirstMove, olderOf } from './move-history.ts';

/** Those below the latest. */
export interface CheckedVersions {
  isTooMuch: boolean;
  hasAcl: boolean;
  versions: { versionId: VersionId; summary: VersionSummary }[];
}

interface LargeMove {
  bucketId: BucketId;
  from: ObjectKey;
  to: ObjectKey;
  overwrites: boolean;
  isPrivateOnly: boolean | undefined;
  /** undefined: not read yet, or not there. */
  bucket: BucketRecord | undefined;
}

/** Of one look, and of one step. */
const PAGE_VERSIONS = 500;

/** For `look`: what moves first, and all that {@link checkVersions} looks at. */
export function lookAtLargeMove(view: View, move: LargeMove, rules: DeleteRules): void {
  olderToCheck(view, move, rules);
}

/** For `prepare`; undefined: nothing can keep them, or nothing moves. */
export function* checkVersions(
  view: View,
  move: LargeMove,
  rules: DeleteRules,
): Steps<CheckedVersions | undefined> {
  const loaded = olderToCheck(view, move, rules);
  if (loaded === undefined) return undefined;
  const { older, isTooMuch } = loaded;
  if (isTooMuch) return { isTooMuch, hasAcl: false, versions: [] };
  const versions: CheckedVersions['versions'] = [];
  let hasAcl = false;
  for (const [at, bytes] of older.entries()) {
    if (at % PAGE_VERSIONS === 0) yield;
    hasAcl ||= storedHasAcl(bytes);
    versions.push({ versionId: storedVersionId(bytes), summary: decodeVersionSummary(bytes) });
  }
  return { isTooMuch, hasAcl, versions };
}

function olderToCheck(
  view: View,
  { bucketId, from, to, overwrites, isPrivateOnly, bucket }: LargeMove,
  rules: DeleteRules,
): ReturnType<typeof olderOf> | undefined {
  const { source, target } = loadFirstMove(view, { bucketId, from, to, versioning: bucket?.versioning });
  const isRefused = target !== undefined && !target.isMarker && !overwrites;
  if (source === undefined || bucket === undefined || isRefused) return undefined;
  if (!isPrivateOnly && !rules.mayBlockDeletes(bucket)) return undefined;
  return olderOf(
    view,
    { bucketId, from, to },
    {
      versionsMax: LIMITS.moveCheckedVersionsMax,
      bytesMax: LIMITS.moveCheckedBytesMax,
      pageVersions: PAGE_VERSIONS,
    },
  );
}

/** Why nothing of the key may move; undefined: all may. */
export function refusalOfVersions(
  checked: CheckedVersions | undefined,
  { bucket, isPrivateOnly }: { bucket: BucketRecord; isPrivateOnly: boolean | undefined },
  { rules, acceptedMs }: Pick<CommandContext, 'rules' | 'acceptedMs'>,
): MoveRefusal | undefined {
  if (checked === undefined) return undefined;
  if (checked.isTooMuch) return { kind: 'too-many-versions' };
  if (isPrivateOnly && checked.hasAcl) return { kind: 'not-private' };
  if (!rules.mayBlockDeletes(bucket)) return undefined;
  for (const { versionId, summary } of checked.versions) {
    const blocker = rules.deleteBlocker(summary, bucket, { acceptedMs });
    if (blocker !== undefined) return { kind: 'blocked', versionId, blocker };
  }
  return undefined;
}
