// PutObjectLegalHold: a version may not go while it is ON, whatever its retention.
import { defineOperation } from '../operation.ts';
import { requireObjectLock } from '../request/object-lock.ts';
import { parseLegalHoldBody } from '../xml/object-lock-xml.ts';
import { parseVersionAddress } from './find-version.ts';
import { setLock } from './set-lock.ts';

export const putObjectLegalHold = defineOperation({
  name: 'PutObjectLegalHold',
  match: { method: 'PUT', on: 'object', query: ['legal-hold'] },
  logName: 'REST.PUT.OBJECT_LOCK_LEGALHOLD',
  body: 'xml',
  parameters: ['versionId'],
  errors: [
    'BadDigest',
    'InvalidArgument',
    'InvalidRequest',
    'MalformedXML',
    'MethodNotAllowed',
    'NoSuchKey',
    'NoSuchVersion',
  ],
  differences: 'No digest of the body is demanded.',
  parse: parseVersionAddress,
  // Whether it is ON may decide: the caller is judged once it is read, if it can be allowed anything at all.
  access: ({ resource, versionId }) => [
    ['s3:PutObjectLegalHold', resource, undefined, { versionId, isBeforeDocument: true }],
  ],
  parseDocument: parseLegalHoldBody,
  documentAccess({ resource, versionId }, { isOn }) {
    const values = { 's3:object-lock-legal-hold': isOn ? 'ON' : 'OFF' };
    return [['s3:PutObjectLegalHold', resource, undefined, { versionId, values }]];
  },
  async run(context, { key, versionId }, { isOn }) {
    await requireObjectLock(context);
    await setLock(context, { key, versionId }, { kind: 'legal-hold', isOn });
    return { status: 200 };
  },
});
