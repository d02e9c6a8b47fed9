// Gives up a multipart upload: its parts go.
import { defineOperation, objectArn } from '../operation.ts';
import { parseUploadId } from '../request/arguments.ts';
import { findUpload, noSuchUpload } from './find-upload.ts';
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
