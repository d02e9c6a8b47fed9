// Gives up a multipart upload: its parts go.
import { AppError } from '../../../types/errors.ts';
import type { ObjectKey, UploadId } from '../../../types/names.ts';
import type { UploadRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';
import { defineOperation, objectArn } from '../operation.ts';
import { parseUploadId } from '../request/arguments.ts';
import { isOfBucketsAccount, requireOwnUpload } from './own-upload.ts';

export const abortMultipartUpload = defineOperation({
  name: 'AbortMultipartUpload',
  match: { method: 'DELETE', on: 'object', query: ['uploadId'] },
  logName: 'REST.DELETE.UPLOAD',
  body: 'none',
  errors: ['NoSuchUpload'],
  parse: ({ bucket, key, query }) => ({
    key,
    resource: objectArn({ bucket, key }),
    uploadId: parseUploadId(query.get('uploadId')),
  }),
  access: ({ resource }) => [['s3:AbortMultipartUpload', resource]],
  async run(context, { key, resource, uploadId }) {
    if (!isOfBucketsAccount(context)) {
      const { initiator } = await findUpload(context, { key, uploadId });
      await requireOwnUpload(context, { action: 's3:AbortMultipartUpload', resource, initiator });
    }
    const { homeShard, believed } = context.bucket();
    const { value } = await context.metadata.execute({ shard: homeShard, bucket: believed }, 'abort-upload', {
      bucketId: believed.bucketId,
      key,
      uploadId,
    });
    if (value.kind === 'no-such-upload') throw noSuchUpload(uploadId);
    return { status: 204 };
  },
});

async function findUpload(
  context: OperationContext,
  { key, uploadId }: { key: ObjectKey; uploadId: UploadId },
): Promise<UploadRecord> {
  const { homeShard, believed } = context.bucket();
  const asked = { bucketId: believed.bucketId, key, uploadId, after: 0, max: 1 };
  const { value } = await context.metadata.query({ shard: homeShard, bucket: believed }, 'list-parts', asked);
  if (value.kind === 'no-such-upload') throw noSuchUpload(uploadId);
  return value.upload;
}

function noSuchUpload(uploadId: UploadId): AppError {
  return new AppError('NoSuchUpload', { fields: { UploadId: uploadId } });
}
