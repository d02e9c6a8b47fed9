// The tags of an object's current version, or of the one that is named.
import { parseVersionId } from '../../arguments.ts';
import { findVersion } from '../../find-version.ts';
import { defineOperation, objectArn } from '../../operation.ts';
import { readTagsAccess, taggingDocument } from '../../tagging.ts';

export const getObjectTagging = defineOperation({
  name: 'GetObjectTagging',
  match: { method: 'GET', on: 'object', query: ['tagging'] },
  logName: 'REST.GET.OBJECT_TAGGING',
  body: 'none',
  claims: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  parse: ({ bucket, key, query }) => ({
    key,
    resource: objectArn({ bucket, key }),
    versionId: parseVersionId(query.get('versionId')),
  }),
  access: ({ resource, versionId }) => [readTagsAccess(resource, versionId)],
  async run(context, { key, versionId }) {
    const { version } = await findVersion(context, { key, versionId, includeBody: false });
    const isVersioned = context.bucket().record.versioning !== 'unversioned';
    return {
      status: 200,
      headers: { 'x-amz-version-id': isVersioned ? version.versionId : undefined },
      body: { kind: 'xml', text: taggingDocument(version.tags ?? []) },
    };
  },
});
