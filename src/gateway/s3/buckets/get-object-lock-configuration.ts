// GetObjectLockConfiguration: that a bucket has an object lock, and what its new versions get by default.
import { AppError } from '../../../types/errors.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { objectLockDocument } from '../xml/object-lock-xml.ts';
import { presentConfig } from './present-bucket.ts';

export const getObjectLockConfiguration = defineOperation({
  name: 'GetObjectLockConfiguration',
  match: { method: 'GET', on: 'bucket', query: ['object-lock'] },
  logName: 'REST.GET.OBJECT_LOCK_CONFIGURATION',
  body: 'none',
  errors: ['ObjectLockConfigurationNotFoundError'],
  differences: 'Of a default that was cleared it shows the elements, with nothing in them.',
  parse: ({ bucket }) => ({ bucket, resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetBucketObjectLockConfiguration', resource]],
  async run(context, { bucket }) {
    const objectLock = await presentConfig(context, 'objectLock');
    if (objectLock === undefined)
      throw new AppError('ObjectLockConfigurationNotFoundError', { fields: { BucketName: bucket } });
    return { status: 200, body: { kind: 'xml', text: objectLockDocument(objectLock) } };
  },
});
