// GetObjectRetention and GetObjectLegalHold: no bucket can have an object lock yet, and in such a bucket AWS refuses the
// question, whatever the object. Who builds object lock writes a file for each beside this one, which goes.
import { AppError } from '../../../types/errors.ts';
import { presentBucket } from '../buckets/present-bucket.ts';
import { defineOperation, objectArn } from '../operation.ts';
import { parseVersionId } from '../request/arguments.ts';

function unsetLock<const Name extends string>(row: {
  name: Name;
  query: string;
  logName: string;
  action: string;
}) {
  const { name, query, logName, action } = row;
  return defineOperation({
    name,
    match: { method: 'GET', on: 'object', query: [query] },
    logName,
    body: 'none',
    parameters: ['versionId'],
    errors: ['InvalidArgument', 'InvalidRequest'],
    neverSucceeds: true,
    differences: 'The answer of a bucket without object lock: it cannot be set.',
    parse(request) {
      // The version is not looked for, but what is no version id is refused all the same.
      parseVersionId(request.query.get('versionId'));
      return { resource: objectArn(request) };
    },
    access: ({ resource }) => [[action, resource]],
    async run(context) {
      await presentBucket(context);
      throw new AppError('InvalidRequest', { message: 'Bucket is missing Object Lock Configuration' });
    },
  });
}

export const getObjectRetention = unsetLock({
  name: 'GetObjectRetention',
  query: 'retention',
  logName: 'REST.GET.OBJECT_LOCK_RETENTION',
  action: 's3:GetObjectRetention',
});

export const getObjectLegalHold = unsetLock({
  name: 'GetObjectLegalHold',
  query: 'legal-hold',
  logName: 'REST.GET.OBJECT_LOCK_LEGALHOLD',
  action: 's3:GetObjectLegalHold',
});
