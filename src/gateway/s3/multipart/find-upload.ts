// The upload that a request is about.

import type { ResultOf } from '../../../ports/metadata/port.ts';
import type { ChecksumAlgorithm } from '../../../types/checksums.ts';
import { AppError } from '../../../types/errors.ts';
import type { ObjectKey, UploadId } from '../../../types/names.ts';
import type { UploadRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';

interface UploadAddress {
  key: ObjectKey;
  uploadId: UploadId;
}

/** The upload, or null when it was aborted, completed, or never was. */
export async function queryUpload(
  context: OperationContext,
  address: UploadAddress,
): Promise<UploadRecord | null> {
  return (await askForUpload(context, address)).upload;
}

/** NoSuchUpload where it was never begun, was aborted, or was completed so long ago that the answer is not kept. */
export async function requireUploadOrAnswer(
  context: OperationContext,
  address: UploadAddress,
): Promise<void> {
  const { upload, wasCompleted } = await askForUpload(context, address);
  if (upload === null && !wasCompleted) throw noSuchUpload(address.uploadId);
}

async function askForUpload(
  context: OperationContext,
  address: UploadAddress,
): Promise<ResultOf<'get-upload'>> {
  const { homeShard, believed } = context.bucket();
  const { value } = await context.metadata.query({ shard: homeShard, bucket: believed }, 'get-upload', {
    bucketId: believed.bucketId,
    ...address,
  });
  return value;
}

/** The upload that is asked for; NoSuchUpload when it is not there. */
export async function findUpload(context: OperationContext, address: UploadAddress): Promise<UploadRecord> {
  const upload = await queryUpload(context, address);
  if (upload === null) throw noSuchUpload(address.uploadId);
  return upload;
}

export function noSuchUpload(uploadId: UploadId): AppError {
  return new AppError('NoSuchUpload', { fields: { UploadId: uploadId } });
}

/** A part brings the checksum that its upload was begun with; without one only where parts need none (AWS UploadPart). */
export function requireUploadChecksum(upload: UploadRecord, sent: ChecksumAlgorithm | undefined): void {
  const expected = upload.checksum;
  if (expected === undefined || expected.algorithm === sent) return;
  if (sent === undefined && expected.type === 'FULL_OBJECT') return;
  throw new AppError('InvalidRequest', {
    message: `Checksum Type mismatch occurred, expected checksum Type: ${expected.algorithm.toLowerCase()}, actual checksum Type: ${sent?.toLowerCase() ?? 'null'}`,
  });
}
