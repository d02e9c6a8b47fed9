// GetBucketLocation: always the one region (service 1).
import { bucketArn, defineOperation } from '../operation.ts';
import { REGION, s3Document } from '../request/vendor.ts';
import { presentBucket } from './present-bucket.ts';

export const getBucketLocation = defineOperation({
  name: 'GetBucketLocation',
  match: { method: 'GET', on: 'bucket', query: ['location'] },
  logName: 'REST.GET.LOCATION',
  body: 'none',
  errors: [],
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetBucketLocation', resource]],
  async run(context) {
    await presentBucket(context);
    return { status: 200, body: { kind: 'xml', text: s3Document('LocationConstraint', REGION) } };
  },
});
