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

/** Parts that are read in the first round; each further round reads twice as many, up to PARTS_OF_ROUND_MAX. */
const PARTS_OF_FIRST_ROUND = 64;
/** Reading and decoding so many takes some 5 ms. */
const PARTS_OF_ROUND_MAX = 1024;

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
  /** Of the next round. */
  count: number;
}

/** By the view of a Complete: what it has read stays as it is. */
const judgedParts = new WeakMap<View, Judged>();

/**
 * The parts that a Complete lists, by number. Its list is judged as far as it has been read: a list in the wrong order
 * reads nothing, and nothing is read behind a part that is missing or has another ETag. `look` does it too, so each part is
 * decoded in the round that has read it, and 10,000 parts do not hold the thread. Each round goes on where the last one ended.
 */
export function* findParts(
  view: View,
  uploadId: UploadId,
  listed: readonly CompletePart[],
): Steps<FoundParts> {
  if (listed.length === 0) return { kind: 'invalid-part', partNumber: 1 };
  const isOrdered = listed.every(({ partNumber }, at) => partNumber > (listed[at - 1]?.partNumber ?? 0));
  if (!isOrdered) return { kind: 'invalid-part-order' };
  const judged = judgedParts.get(view) ?? { parts: [], sizeBytes: 0, count: PARTS_OF_FIRST_ROUND };
  judgedParts.set(view, judged);
  const { parts } = judged;
  while (parts.length < listed.length) {
    const group = listed.slice(parts.length, parts.length + judged.count);
    const values: (Uint8Array | undefined)[] = [];
    let isRead = true;
    for (const { partNumber } of group) {
      const row = partRow(uploadId, partNumber);
      isRead &&= view.has(row);
      values.push(view.row(row));
    }
    if (!isRead) return { kind: 'found', parts };
    const found: Readonly<PartRecord>[] = [];
    let sizeBytes = judged.sizeBytes;
    for (const [at, { partNumber, etag }] of group.entries()) {
      const value = values[at];
      const part = value && decodePart(value);
      if (value === undefined || part?.etag !== etag) return { kind: 'invalid-part', partNumber };
      found.push(part);
      sizeBytes += value.length;
    }
    if (sizeBytes > LIMITS.uploadPartsBytesMax) return { kind: 'too-many-segments' };
    parts.push(...found);
    judged.sizeBytes = sizeBytes;
    judged.count = Math.min(2 * judged.count, PARTS_OF_ROUND_MAX);
    yield;
  }
  return { kind: 'found', parts };
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
