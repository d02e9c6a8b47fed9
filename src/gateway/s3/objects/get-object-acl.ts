// GetObjectAcl: who may do what with the current version of an object, or with the one that is named.

import { defineOperation } from '../operation.ts';
import { aclXml } from '../xml/acl-xml.ts';
import { findVersion, parseVersionAddress, shownVersionId } from './find-version.ts';

export const getObjectAcl = defineOperation({
  name: 'GetObjectAcl',
  match: { method: 'GET', on: 'object', query: ['acl'] },
  logName: 'REST.GET.ACL',
  body: 'none',
  parameters: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  parse: parseVersionAddress,
  access: ({ resource, versionId }) => [
    [
      versionId === undefined ? 's3:GetObjectAcl' : 's3:GetObjectVersionAcl',
      resource,
      undefined,
      { versionId },
    ],
  ],
  async run(context, { key, versionId }) {
    const { version } = await findVersion(context, { key, versionId, includeBody: false });
    const { versioning } = context.bucket().record;
    return {
      status: 200,
      headers: { 'x-amz-version-id': shownVersionId(versioning, version.versionId) },
      body: { kind: 'xml', text: await aclXml(context, { owner: version.owner, grants: version.acl }) },
    };
  },
});
