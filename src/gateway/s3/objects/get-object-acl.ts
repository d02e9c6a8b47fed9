// GetObjectAcl: every version is private, because no list can be set yet (PutObjectAcl is in unsupported.ts).

import { defineOperation } from '../operation.ts';
import { privateAclXml } from '../xml/acl-xml.ts';
import { findVersion, parseVersionAddress, shownVersionId } from './find-version.ts';

export const getObjectAcl = defineOperation({
  name: 'GetObjectAcl',
  match: { method: 'GET', on: 'object', query: ['acl'] },
  logName: 'REST.GET.ACL',
  body: 'none',
  parameters: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  differences: 'Always the list that private means: it cannot be set.',
  parse: parseVersionAddress,
  access: ({ resource, versionId }) => [
    [versionId === undefined ? 's3:GetObjectAcl' : 's3:GetObjectVersionAcl', resource],
  ],
  async run(context, { key, versionId }) {
    const { version } = await findVersion(context, { key, versionId, includeBody: false });
    const { versioning } = context.bucket().record;
    return {
      status: 200,
      headers: { 'x-amz-version-id': shownVersionId(versioning, version.versionId) },
      body: { kind: 'xml', text: await privateAclXml(context, version.owner) },
    };
  },
});
