// DeleteBucketPolicy: also where there is none.
import { bucketArn, defineOperation } from '../operation.ts';
import { requireOwnAccount, setBucketDocument } from './set-bucket-document.ts';

export const deleteBucketPolicy = defineOperation({
  name: 'DeleteBucketPolicy',
  match: { method: 'DELETE', on: 'bucket', query: ['policy'] },
  logName: 'REST.DELETE.BUCKETPOLICY',
  body: 'none',
  errors: ['MethodNotAllowed'],
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:DeleteBucketPolicy', resource]],
  async run(context) {
    requireOwnAccount(context);
    await setBucketDocument(context, { kind: 'policy', document: null });
    return { status: 204 };
  },
});
