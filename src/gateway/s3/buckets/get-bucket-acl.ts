// GetBucketAcl: every bucket is private, because no list can be set yet (PutBucketAcl is in unsupported.ts).

import { bucketArn, defineOperation } from '../operation.ts';
import { privateAclXml } from '../xml/acl-xml.ts';
import { presentBucket } from './present-bucket.ts';

export const getBucketAcl = defineOperation({
  name: 'GetBucketAcl',
  match: { method: 'GET', on: 'bucket', query: ['acl'] },
  logName: 'REST.GET.ACL',
  body: 'none',
  errors: [],
  differences: 'Always the list that private means: it cannot be set.',
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetBucketAcl', resource]],
  async run(context) {
    const { owner } = await presentBucket(context);
    return { status: 200, body: { kind: 'xml', text: await privateAclXml(context, owner) } };
  },
});
