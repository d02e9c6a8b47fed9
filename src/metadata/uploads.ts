// An open upload and its parts as commands see them, and how both end: by Complete, by Abort, or by age.

import { LIMITS } from '../model/limits.ts';
import type { BucketId, ObjectKey, UploadId } from '../model/names.ts';
import { type PartRecord, partCodec, type UploadRecord, uploadCodec } from '../model/records/rows.ts';
import type { RowPut, View } from '../ports/state-machine.ts';
import { partRange, partRow, remove, uploadRow, uploadTimeRow } from './keyspace.ts';

export interface UploadName {
  bucketId: BucketId;
  key: ObjectKey;
  uploadId: UploadId;
}

/** undefined where no such upload is open, also for ids that were never given out. */
export function findUpload(view: View, { bucketId, key, uploadId }: UploadName): UploadRecord | undefined {
  const row = view.row(uploadRow(bucketId, key, uploadId));
  return row && uploadCodec.decode(row);
}

/** All parts by number, as bytes: `look` has no need to decode them. */
export function lookAtParts(view: View, uploadId: UploadId): Uint8Array[] {
  const range = partRange({ uploadId, after: 0, limit: LIMITS.partCountMax });
  return view.range(range).map((row) => row.value);
}

export function loadParts(view: View, uploadId: UploadId): PartRecord[] {
  return lookAtParts(view, uploadId).map((bytes) => partCodec.decode(bytes));
}

/** Takes the upload's rows away. Its parts' links are the caller's: Complete carries most of them over. */
export function endUpload({ bucketId, key, uploadId }: UploadName, parts: readonly PartRecord[]): RowPut[] {
  return [
    remove(uploadRow(bucketId, key, uploadId)),
    remove(uploadTimeRow(uploadId)),
    ...parts.map(({ partNumber }) => remove(partRow(uploadId, partNumber))),
  ];
}
