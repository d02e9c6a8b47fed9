// The delete marker that comes over the versions of a key: by a delete without a version id, or by a rule of the lifecycle.
import { type AccountId, makeVersionId, NULL_VERSION } from '../../types/names.ts';
import { NO_ORIGINALS } from '../../types/originals.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { EMPTY_MANIFEST, type VersionRecord } from '../../types/version.ts';
import { writesNullVersion } from '../../types/versioning.ts';
import type { CommandContext } from '../schema/define-command.ts';

export function newMarker(
  bucket: BucketRecord,
  owner: AccountId,
  { nowMs, random }: Pick<CommandContext, 'nowMs' | 'random'>,
): Omit<VersionRecord, 'order'> {
  return {
    versionId: writesNullVersion(bucket.versioning) ? NULL_VERSION : makeVersionId(random(24)),
    isDeleteMarker: true,
    sizeBytes: 0,
    modifiedAtMs: nowMs,
    etag: '',
    owner,
    originals: NO_ORIGINALS,
    manifest: EMPTY_MANIFEST,
  };
}
