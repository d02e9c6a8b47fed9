// GetBucketLifecycleConfiguration: the rules as they were put, with the ids that were made up.
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { lifecycleDocument } from '../xml/lifecycle-xml.ts';
import { presentConfig } from './present-bucket.ts';
import { transitionMinimumAnswer } from './put-bucket-lifecycle-configuration.ts';

export const getBucketLifecycleConfiguration = defineOperation({
  name: 'GetBucketLifecycleConfiguration',
  match: { method: 'GET', on: 'bucket', query: ['lifecycle'] },
  logName: 'REST.GET.LIFECYCLE',
  body: 'none',
  errors: ['NoSuchLifecycleConfiguration'],
  parse: ({ bucket }) => ({ bucket, resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetLifecycleConfiguration', resource]],
  memoryBytes: () => LIMITS.documentMemoryFactor * LIMITS.lifecycleBodyBytesMax,
  async run(context, { bucket }) {
    const lifecycle = await presentConfig(context, 'lifecycle');
    if (lifecycle === undefined)
      throw new AppError('NoSuchLifecycleConfiguration', { fields: { BucketName: bucket } });
    const text = await lifecycleDocument(context, lifecycle);
    return { status: 200, headers: transitionMinimumAnswer(lifecycle), body: { kind: 'xml', text } };
  },
});
