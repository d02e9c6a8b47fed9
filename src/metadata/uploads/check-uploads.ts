// Uploads as fsck sees them: open ones and their times, parts and whose they are, Completes that are remembered.
import { toHex } from '../../base/bytes/bytes.ts';
import type { UploadId } from '../../types/names.ts';
import { completedUploadCodec, partCodec, uploadCodec } from '../../types/records/rows.ts';
import { checkProtection } from '../buckets/check-retention.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { END_OF_TIME_MS, readU48 } from '../schema/key-parts.ts';
import {
  completedTimeRow,
  completedUploadRow,
  deletedBucketRow,
  partNumberOf,
  readUploadTime,
  TABLES,
  timeRange,
  uploadIdOf,
  uploadRow,
  uploadTimeRow,
} from '../schema/keyspace.ts';
import { checkBody } from '../versions/check-manifest.ts';

const QUEUE_ROWS = 1000;

export const checkUpload: RowCheck = async (row, scan) => {
  const { bucketId, key, uploadId, kek, protection } = uploadCodec.decode(row.value);
  const bucket = await scan.bucket(bucketId);
  const place = { bucket: bucket?.name ?? bucketId, key, upload: uploadId };
  if (toHex(uploadRow(bucketId, key, uploadId).key) !== toHex(row.key)) {
    scan.found('broken-row', { ...place, table: 'uploads', note: toHex(row.key) });
  }
  scan.checkKey(kek, place);
  checkProtection(scan, { protection, bucket, place });
  await scan.expectRow(uploadTimeRow(uploadId), 'index-missing', place);
  if (bucket === undefined) scan.found('bucket-missing', place);
  else if (bucket.state === 'deleted') {
    await scan.expectRow(deletedBucketRow(bucketId), 'queue-missing', place);
  }
};

export const checkUploadTime: RowCheck = async (row, scan) => {
  const upload = toHex(row.key) as UploadId;
  const { bucketId, key } = readUploadTime(row.value);
  await scan.expectRow(uploadRow(bucketId, key, upload), 'index-orphaned', { upload, table: 'uploadTimes' });
};

export const checkPart: RowCheck = async (row, scan) => {
  const upload = uploadIdOf(row.key);
  const part = partCodec.decode(row.value);
  const { partNumber, sizeBytes } = part;
  const place = { upload, part: partNumber };
  if (partNumberOf(row.key) !== partNumber) {
    scan.found('broken-row', { ...place, table: 'parts', note: toHex(row.key) });
  }
  const isOpen = (await scan.row(uploadTimeRow(upload))) !== undefined;
  if (!isOpen && !(await hasEnded(scan, upload))) scan.found('upload-missing', place);
  await checkBody(scan, { body: part, sizeBytes, place });
};

/** Whether the upload waits for its parts to be released. */
async function hasEnded(scan: CheckScan, upload: UploadId): Promise<boolean> {
  for (let after: { table: typeof TABLES.endedUploads; key: Uint8Array } | undefined; ; ) {
    const range = { table: TABLES.endedUploads, after, toMs: END_OF_TIME_MS, limit: QUEUE_ROWS };
    const rows = await scan.view.range(timeRange(range));
    if (rows.some(({ key }) => toHex(key.subarray(6)) === upload)) return true;
    const last = rows.at(-1);
    if (last === undefined || rows.length < QUEUE_ROWS) return false;
    after = { table: TABLES.endedUploads, key: last.key };
  }
}

export const checkCompletedUpload: RowCheck = async (row, scan) => {
  const upload = toHex(row.key) as UploadId;
  const { completedAtMs } = completedUploadCodec.decode(row.value);
  const table = 'completedUploads';
  await scan.expectRow(completedTimeRow(completedAtMs, upload), 'index-missing', { upload, table });
};

export const checkCompletedTime: RowCheck = async (row, scan) => {
  const upload = toHex(row.key.subarray(6)) as UploadId;
  const completed = await scan.row(completedUploadRow(upload));
  const isSame =
    completed !== undefined && completedUploadCodec.decode(completed).completedAtMs === readU48(row.key);
  if (!isSame) scan.found('index-orphaned', { upload, table: 'completedTimes' });
};
