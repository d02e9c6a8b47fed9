// DeleteBucketLifecycle: also where there are no rules.
import { bucketArn, defineOperation } from '../operation.ts';
import { setBucketDocument } from './set-bucket-document.ts';

export const deleteBucketLifecycle = defineOperation({
  name: 'DeleteBucketLifecycle',
  match: { method: 'DELETE', on: 'bucket', query: ['lifecycle'] },
  logName: 'REST.DELETE.LIFECYCLE',
  body: 'none',
  errors: [],
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  // AWS has no action of its own for it.
  access: ({ resource }) => [['s3:PutLifecycleConfiguration', resource]],
  async run(context) {
    await setBucketDocument(context, { kind: 'lifecycle', document: null });
    return { status: 204 };
  },
});
