// GetObjectRetention: until when a version may not go, also when that has passed.
import { AppError } from '../../../types/errors.ts';
import { defineOperation } from '../operation.ts';
import { requireObjectLock } from '../request/object-lock.ts';
import { retentionDocument } from '../xml/object-lock-xml.ts';
import { findVersion, parseVersionAddress } from './find-version.ts';

export const getObjectRetention = defineOperation({
  name: 'GetObjectRetention',
  match: { method: 'GET', on: 'object', query: ['retention'] },
  logName: 'REST.GET.OBJECT_LOCK_RETENTION',
  body: 'none',
  parameters: ['versionId'],
  errors: [
    'InvalidArgument',
    'InvalidRequest',
    'MethodNotAllowed',
    'NoSuchKey',
    'NoSuchObjectLockConfiguration',
    'NoSuchVersion',
  ],
  parse: parseVersionAddress,
  access: ({ resource, versionId }) => [['s3:GetObjectRetention', resource, undefined, { versionId }]],
  async run(context, { key, versionId }) {
    await requireObjectLock(context);
    const query = { key, versionId, includeBody: false, refusesMarker: true as const };
    const { retention } = (await findVersion(context, query)).version.protection ?? {};
    if (retention === undefined)
      throw new AppError('NoSuchObjectLockConfiguration', { fields: { Key: key } });
    return { status: 200, body: { kind: 'xml', text: retentionDocument(retention) } };
  },
});
