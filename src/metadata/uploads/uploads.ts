// An open upload and its parts as commands see them, and how both end: by Complete, by Abort, or by age.

import type { Steps } from '../../base/async/steps.ts';
import { decodeOnce } from '../../base/record-codec.ts';
import type { CompletePart } from '../../ports/metadata/uploads.ts';
import type { RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, ObjectKey, UploadId } from '../../types/names.ts';
import { type PartRecord, partCodec, type UploadRecord, uploadCodec } from '../../types/records/rows.ts';
import {
  endedUploadRow,
  PRESENT,
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

/** Parts that are read in the first round. A row may have LIMITS.partSegmentsMax segments, and 250 KiB. */
const PARTS_OF_FIRST_ROUND = 8;
/** And in each further one: by what those before have shown. */
const PARTS_OF_ROUND_MAX = 128;
const ROUND_BYTES = 512 * 1024;
/** Decoding so much takes some 5 ms. */
const STEP_BYTES = 128 * 1024;

const decodePart = decodeOnce(partCodec);

export type FoundParts =
  | { kind: 'found'; parts: Readonly<PartRecord>[] }
  | { kind: 'invalid-part-order' }
  | { kind: 'invalid-part'; partNumber: number }
  /** They are more than one entry may hold, which takes many parts that are copies of many pieces. */
  | { kind: 'too-many-segments' };

/** Parts of a list that have been read and are right. */
interface Judged {
  parts: Readonly<PartRecord>[];
  sizeBytes: number;
  /** Of the list: those that have been asked for. */
  askedCount: number;
  /** Of the last one. */
  rowBytes: number;
}

/** By the view of a Complete: what it has read stays as it is. */
const judgedParts = new WeakMap<View, Judged>();

/**
 * The parts that a Complete lists, by number. Its list is judged as far as it has been read: a list in the wrong order
 * reads nothing, and nothing is read behind a part that is missing or has another ETag. `look` does it too, a step at a time, so
 * each part is decoded soon after it was read, and neither 10,000 parts nor those of many pieces hold the thread. Each round and
 * each step goes on where the last one ended.
 */
export function* findParts(
  view: View,
  uploadId: UploadId,
  listed: readonly CompletePart[],
): Steps<FoundParts> {
  if (listed.length === 0) return { kind: 'invalid-part', partNumber: 1 };
  const isOrdered = listed.every(({ partNumber }, at) => partNumber > (listed[at - 1]?.partNumber ?? 0));
  if (!isOrdered) return { kind: 'invalid-part-order' };
  const judged = judgedParts.get(view) ?? { parts: [], sizeBytes: 0, askedCount: 0, rowBytes: 0 };
  judgedParts.set(view, judged);
  const { parts } = judged;
  let stepBytes = 0;
  while (parts.length < listed.length) {
    if (parts.length === judged.askedCount) judged.askedCount += roundOf(judged);
    const group = listed.slice(parts.length, judged.askedCount);
    const rows = group.map(({ partNumber }) => partRow(uploadId, partNumber));
    // A round is read as a whole.
    const isRead = rows[0] !== undefined && view.has(rows[0]);
    const values = rows.map((row) => view.row(row));
    if (!isRead) return { kind: 'found', parts };
    for (const [at, { partNumber, etag }] of group.entries()) {
      const value = values[at];
      const part = value && decodePart(value);
      if (value === undefined || part?.etag !== etag) return { kind: 'invalid-part', partNumber };
      judged.sizeBytes += value.length;
      if (judged.sizeBytes > LIMITS.uploadPartsBytesMax) return { kind: 'too-many-segments' };
      judged.rowBytes = value.length;
      parts.push(part);
      stepBytes += value.length;
      if (stepBytes < STEP_BYTES) continue;
      yield;
      stepBytes = 0;
    }
  }
  return { kind: 'found', parts };
}

/** How many parts are read together. */
function roundOf({ parts, rowBytes }: Judged): number {
  if (parts.length === 0) return PARTS_OF_FIRST_ROUND;
  return Math.max(1, Math.min(PARTS_OF_ROUND_MAX, Math.floor(ROUND_BYTES / rowBytes)));
}

/** Whether the upload may have parts that are not listed. For `look`, and again for `decide`. */
export function mayHaveOtherParts(view: View, uploadId: UploadId, listed: readonly CompletePart[]): boolean {
  const after = listed.at(-1)?.partNumber ?? 0;
  return view.range(partRange({ uploadId, after, limit: 1 })).length > 0 || after > listed.length;
}

/**
 * Ends the upload, of whose parts those that are listed go into an object with their links. Others go afterwards with theirs,
 * some at a time (release-parts).
 */
export function endUpload(name: UploadName, others: { mayBe: boolean; nowMs: number }): RowPut[] {
  const { uploadId } = name;
  return [
    ...closeUpload(name),
    ...(others.mayBe ? [put(endedUploadRow(others.nowMs, uploadId), PRESENT)] : []),
  ];
}

/** Ends the upload for clients. However many parts it has, they go afterwards, some at a time (release-parts). */
export function endUploadWithParts(name: UploadName, nowMs: number): RowPut[] {
  return [...closeUpload(name), put(endedUploadRow(nowMs, name.uploadId), PRESENT)];
}

function closeUpload({ bucketId, key, uploadId }: UploadName): RowPut[] {
  return [remove(uploadRow(bucketId, key, uploadId)), remove(uploadTimeRow(uploadId))];
}
