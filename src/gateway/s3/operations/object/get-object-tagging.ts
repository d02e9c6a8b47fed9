// GetObjectTagging: the empty set. No object can bear tags yet (PutObjectTagging and x-amz-tagging are refused), and the
// AWS CLI asks for the tags of every source that it copies in parts.

import { parseVersionId } from '../../arguments.ts';
import { findVersion } from '../../find-version.ts';
import { defineOperation, objectArn } from '../../operation.ts';
import { s3Document } from '../../vendor.ts';

export const getObjectTagging = defineOperation({
  name: 'GetObjectTagging',
  match: { method: 'GET', on: 'object', query: ['tagging'] },
  logName: 'REST.GET.OBJECT_TAGGING',
  body: 'none',
  claims: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  differences: 'Always an empty set: tags cannot be set.',
  parse: ({ bucket, key, query }) => ({
    key,
    resource: objectArn({ bucket, key }),
    versionId: parseVersionId(query.get('versionId')),
  }),
  access: ({ resource, versionId }) => [
    [versionId === undefined ? 's3:GetObjectTagging' : 's3:GetObjectVersionTagging', resource],
  ],
  async run(context, { key, versionId }) {
    const { version } = await findVersion(context, { key, versionId, includeBody: false });
    const isVersioned = context.bucket().record.versioning !== 'unversioned';
    return {
      status: 200,
      headers: { 'x-amz-version-id': isVersioned ? version.versionId : undefined },
      body: { kind: 'xml', text: s3Document('Tagging', '<TagSet></TagSet>') },
    };
  },
});
