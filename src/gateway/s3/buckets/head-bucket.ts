// HeadBucket: whether the bucket is there for the caller, and where.
import { bucketArn, defineOperation } from '../operation.ts';
import { REGION } from '../request/vendor.ts';
import { presentBucket } from './present-bucket.ts';

export const headBucket = defineOperation({
  name: 'HeadBucket',
  match: { method: 'HEAD', on: 'bucket' },
  logName: 'REST.HEAD.BUCKET',
  body: 'none',
  errors: [],
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:ListBucket', resource]],
  async run(context) {
    await presentBucket(context);
    return { status: 200, headers: { 'x-amz-bucket-region': REGION, 'Content-Type': 'application/xml' } };
  },
});
