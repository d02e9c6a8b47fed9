// GetBucketPolicy: the text, byte for byte as it was put (s3-behaviour 20).
import { AppError } from '../../../types/errors.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { presentConfig } from './present-bucket.ts';
import { requireOwnAccount } from './set-bucket-document.ts';

export const getBucketPolicy = defineOperation({
  name: 'GetBucketPolicy',
  match: { method: 'GET', on: 'bucket', query: ['policy'] },
  logName: 'REST.GET.BUCKETPOLICY',
  body: 'none',
  errors: ['MethodNotAllowed', 'NoSuchBucketPolicy'],
  parse: ({ bucket }) => ({ bucket, resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetBucketPolicy', resource]],
  async run(context, { bucket }) {
    requireOwnAccount(context);
    const policy = await presentConfig(context, 'policy');
    if (policy === undefined) throw new AppError('NoSuchBucketPolicy', { fields: { BucketName: bucket } });
    const bytes = Buffer.from(policy.text);
    return { status: 200, headers: { 'Content-Type': 'application/json' }, body: { kind: 'bytes', bytes } };
  },
});
