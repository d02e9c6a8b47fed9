// GetObjectLegalHold: whether a version is under one. Of a version that never had one there is nothing to say, as with AWS.
import { AppError } from '../../../types/errors.ts';
import { defineOperation } from '../operation.ts';
import { requireObjectLock } from '../request/object-lock.ts';
import { legalHoldDocument } from '../xml/object-lock-xml.ts';
import { findVersion, parseVersionAddress } from './find-version.ts';

export const getObjectLegalHold = defineOperation({
  name: 'GetObjectLegalHold',
  match: { method: 'GET', on: 'object', query: ['legal-hold'] },
  logName: 'REST.GET.OBJECT_LOCK_LEGALHOLD',
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
  access: ({ resource, versionId }) => [['s3:GetObjectLegalHold', resource, undefined, { versionId }]],
  async run(context, { key, versionId }) {
    await requireObjectLock(context);
    const query = { key, versionId, includeBody: false, refusesMarker: true as const };
    const { legalHold = false, hadLegalHold = false } =
      (await findVersion(context, query)).version.protection ?? {};
    if (!legalHold && !hadLegalHold)
      throw new AppError('NoSuchObjectLockConfiguration', { fields: { Key: key } });
    return { status: 200, body: { kind: 'xml', text: legalHoldDocument({ isOn: legalHold }) } };
  },
});
