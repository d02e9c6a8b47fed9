// The tags of an object's current version, or of the one that is named.

import { defineOperation } from '../operation.ts';
import { readTagsAccess, taggingDocument } from '../request/tagging.ts';
import { findVersion, parseVersionAddress, shownVersionId } from './find-version.ts';

export const getObjectTagging = defineOperation({
  name: 'GetObjectTagging',
  match: { method: 'GET', on: 'object', query: ['tagging'] },
  logName: 'REST.GET.OBJECT_TAGGING',
  body: 'none',
  parameters: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  parse: parseVersionAddress,
  access: ({ resource, versionId }) => [readTagsAccess(resource, versionId)],
  async run(context, { key, versionId }) {
    const { version } = await findVersion(context, { key, versionId, includeBody: false });
    const { versioning } = context.bucket().record;
    return {
      status: 200,
      headers: { 'x-amz-version-id': shownVersionId(versioning, version.versionId) },
      body: { kind: 'xml', text: taggingDocument(version.tags ?? []) },
    };
  },
});
