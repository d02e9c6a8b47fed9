// Gives the current version of an object, or the one that is named, these tags instead of those it has.

import { requireFactorUnderRules } from '../buckets/factor-under-rules.ts';
import { defineOperation } from '../operation.ts';
import { parseTaggingBody } from '../request/tagging.ts';
import { parseVersionAddress } from './find-version.ts';
import { setTags } from './set-tags.ts';

export const putObjectTagging = defineOperation({
  name: 'PutObjectTagging',
  match: { method: 'PUT', on: 'object', query: ['tagging'] },
  logName: 'REST.PUT.OBJECT_TAGGING',
  body: 'xml',
  parameters: ['versionId'],
  errors: [
    'BadDigest',
    'InvalidArgument',
    'InvalidTag',
    'MalformedXML',
    'MethodNotAllowed',
    'MissingRequestBodyError',
    'NoSuchKey',
    'NoSuchVersion',
  ],
  differences: 'More than 10 tags are InvalidTag, not BadRequest. No digest of the body is demanded.',
  parse: parseVersionAddress,
  // What the tags are may decide: the caller is judged once they are read, if it can be allowed anything at all.
  keyActions: ['s3:PutObjectTagging', 's3:PutObjectVersionTagging'],
  access: () => [],
  parseDocument: parseTaggingBody,
  documentAccess: ({ resource, versionId }, tags) => [
    [
      versionId === undefined ? 's3:PutObjectTagging' : 's3:PutObjectVersionTagging',
      resource,
      undefined,
      { versionId, givenTags: tags },
    ],
  ],
  decidesInRun: true,
  async run(context, input, tags) {
    await requireFactorUnderRules(context, 'tags');
    return { status: 200, headers: await setTags(context, { ...input, tags }) };
  },
});
