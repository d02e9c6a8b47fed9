// GetObjectAcl: every version is private, because no list can be set yet (PutObjectAcl is in unsupported.ts).
import { privateAclXml } from '../../acl-xml.ts';
import { parseVersionId } from '../../arguments.ts';
import { findVersion } from '../../find-version.ts';
import { defineOperation, objectArn } from '../../operation.ts';

export const getObjectAcl = defineOperation({
  name: 'GetObjectAcl',
  match: { method: 'GET', on: 'object', query: ['acl'] },
  logName: 'REST.GET.ACL',
  body: 'none',
  claims: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  differences: 'Always the list that private means: it cannot be set.',
  parse: ({ bucket, key, query }) => ({
    key,
    resource: objectArn({ bucket, key }),
    versionId: parseVersionId(query.get('versionId')),
  }),
  access: ({ resource, versionId }) => [
    [versionId === undefined ? 's3:GetObjectAcl' : 's3:GetObjectVersionAcl', resource],
  ],
  async run(context, { key, versionId }) {
    const { version } = await findVersion(context, { key, versionId, includeBody: false });
    const isVersioned = context.bucket().record.versioning !== 'unversioned';
    return {
      status: 200,
      headers: { 'x-amz-version-id': isVersioned ? version.versionId : undefined },
      body: { kind: 'xml', text: await privateAclXml(context, version.owner) },
    };
  },
});
