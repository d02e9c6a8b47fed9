// An open upload and its parts as commands see them, and how both end: by Complete, by Abort, or by age.

import type { Row, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, ObjectKey, UploadId } from '../../types/names.ts';
import { type PartRecord, partCodec, type UploadRecord, uploadCodec } from '../../types/records/rows.ts';
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
} from '../schema/keyspace.ts';

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

/** Rows of parts that are read and decoded at once, in 1 to 2 ms: each may have LIMITS.partSegmentsMax segments. */
const PART_ROWS_MAX = 100;

/**
 * All parts by number. undefined when they are more than one entry may hold, which takes many parts that are copies of
 * many pieces. `look` calls it too: so each page of parts is decoded in the round that has read it, and 10,000 parts do
 * not hold the thread.
 */
export function loadParts(view: View, uploadId: UploadId): PartRecord[] | undefined {
  const parts: PartRecord[] = [];
  let sizeBytes = 0;
  for (let after = 0; ; ) {
    const rows = view.range(partRange({ uploadId, after, limit: PART_ROWS_MAX }));
    const page = decodePage(rows);
    parts.push(...page.parts);
    sizeBytes += page.sizeBytes;
    if (sizeBytes > LIMITS.uploadPartsBytesMax) return undefined;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PART_ROWS_MAX) return parts;
    after = partNumberOf(last.key);
  }
}

interface PartPage {
  readonly parts: readonly PartRecord[];
  /** Of the rows. */
  readonly sizeBytes: number;
}

/** By the rows that they were decoded from. */
const decodedPages = new WeakMap<readonly Row[], PartPage>();

/** Decodes a page once: a command looks at each of them again in every round of reads. */
function decodePage(rows: readonly Row[]): PartPage {
  let page = decodedPages.get(rows);
  if (page === undefined) {
    const parts = rows.map(({ value }) => partCodec.decode(value));
    page = { parts, sizeBytes: rows.reduce((sum, { value }) => sum + value.length, 0) };
    decodedPages.set(rows, page);
  }
  return page;
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
