// An open upload and its parts as commands see them, and how both end: by Complete, by Abort, or by age.

import { LIMITS } from '../model/limits.ts';
import type { BucketId, ObjectKey, UploadId } from '../model/names.ts';
import { type PartRecord, partCodec, type UploadRecord, uploadCodec } from '../model/records/rows.ts';
import type { RowPut, View } from '../ports/state-machine.ts';
import {
  endedUploadRow,
  PRESENT,
  partNumberOf,
  partRange,
  partRow,
  put,
  remove,
  uploadRow,
  uploadTimeRow,
} from './keyspace.ts';

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

/** Rows of parts that are read at once: each may have LIMITS.partSegmentsMax segments. */
const PART_ROWS_MAX = 100;

/**
 * All parts by number, as bytes: `look` has no need to decode them. undefined when they are more than one entry may
 * hold, which takes many parts that are copies of many pieces.
 */
export function lookAtParts(view: View, uploadId: UploadId): Uint8Array[] | undefined {
  const rows: Uint8Array[] = [];
  let sizeBytes = 0;
  for (let after = 0; ; ) {
    const page = view.range(partRange({ uploadId, after, limit: PART_ROWS_MAX }));
    for (const { value } of page) {
      rows.push(value);
      sizeBytes += value.length;
    }
    if (sizeBytes > LIMITS.uploadPartsBytesMax) return undefined;
    const last = page.at(-1);
    if (last === undefined || page.length < PART_ROWS_MAX) return rows;
    after = partNumberOf(last.key);
  }
}

export function loadParts(view: View, uploadId: UploadId): PartRecord[] | undefined {
  return lookAtParts(view, uploadId)?.map((bytes) => partCodec.decode(bytes));
}

/** Takes the upload's rows away. Its parts' links are Complete's, which carries most of them over. */
export function endUpload(name: UploadName, parts: readonly PartRecord[]): RowPut[] {
  return [...closeUpload(name), ...parts.map(({ partNumber }) => remove(partRow(name.uploadId, partNumber)))];
}

/** Ends the upload for clients. However many parts it has, they go afterwards, some at a time (release-parts). */
export function endUploadWithParts(name: UploadName, nowMs: number): RowPut[] {
  return [...closeUpload(name), put(endedUploadRow(nowMs, name.uploadId), PRESENT)];
}

function closeUpload({ bucketId, key, uploadId }: UploadName): RowPut[] {
  return [remove(uploadRow(bucketId, key, uploadId)), remove(uploadTimeRow(uploadId))];
}
