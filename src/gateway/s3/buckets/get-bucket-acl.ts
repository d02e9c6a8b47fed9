// GetBucketAcl: who may do what with the bucket, as PutBucketAcl or CreateBucket have set it.

import { bucketArn, defineOperation } from '../operation.ts';
import { aclXml } from '../xml/acl-xml.ts';
import { presentAcl } from './present-bucket.ts';

export const getBucketAcl = defineOperation({
  name: 'GetBucketAcl',
  match: { method: 'GET', on: 'bucket', query: ['acl'] },
  logName: 'REST.GET.ACL',
  body: 'none',
  errors: [],
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetBucketAcl', resource]],
  run: async (context) => ({
    status: 200,
    body: { kind: 'xml', text: await aclXml(context, await presentAcl(context)) },
  }),
});
