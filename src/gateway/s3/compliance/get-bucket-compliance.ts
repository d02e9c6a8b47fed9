// GetBucketCompliance: the settings as the bucket's home has them, and whether they are locked by its time.
import { readPresent } from '../buckets/present-bucket.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { bucketComplianceDocument } from './compliance-xml.ts';

export const getBucketCompliance = defineOperation({
  name: 'GetBucketCompliance',
  match: { method: 'GET', on: 'bucket', query: ['compliance'] },
  logName: 'REST.GET.COMPLIANCE',
  body: 'none',
  errors: [],
  differences: 'Not in S3. A bucket without compliance reads as `disabled`, which is no error.',
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetBucketCompliance', resource]],
  async run(context) {
    const { configs, timeMs } = await readPresent(context, ['compliance']);
    return { status: 200, body: { kind: 'xml', text: bucketComplianceDocument(configs.compliance, timeMs) } };
  },
});
