// Takes all tags from the current version of an object, or from the one that is named.

import { defineOperation } from '../operation.ts';
import { parseVersionAddress } from './find-version.ts';
import { setTags } from './set-tags.ts';

export const deleteObjectTagging = defineOperation({
  name: 'DeleteObjectTagging',
  match: { method: 'DELETE', on: 'object', query: ['tagging'] },
  logName: 'REST.DELETE.OBJECT_TAGGING',
  body: 'none',
  parameters: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  parse: parseVersionAddress,
  access: ({ resource, versionId }) => [
    [
      versionId === undefined ? 's3:DeleteObjectTagging' : 's3:DeleteObjectVersionTagging',
      resource,
      undefined,
      { versionId },
    ],
  ],
  run: async (context, input) => ({ status: 204, headers: await setTags(context, { ...input, tags: null }) }),
});
