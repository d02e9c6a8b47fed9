// The tags of an object's current version, or of the one that is named: GetObjectTagging, PutObjectTagging and
// DeleteObjectTagging.

import type { Tag } from '../../../types/tags.ts';
import type { OperationContext } from '../context.ts';
import { defineOperation } from '../operation.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';
import { parseTaggingBody, readTagsAccess, taggingDocument } from '../request/tagging.ts';
import {
  absentVersion,
  findVersion,
  parseVersionAddress,
  shownVersionId,
  type VersionAddress,
} from './find-version.ts';

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

// Gives the current version of an object, or the one that is named, these tags instead of those it has.

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
  access: ({ resource, versionId }) => [
    [versionId === undefined ? 's3:PutObjectTagging' : 's3:PutObjectVersionTagging', resource],
  ],
  parseDocument: parseTaggingBody,
  run: async (context, input, tags) => ({ status: 200, headers: await setTags(context, { ...input, tags }) }),
});

// Takes all tags from the current version of an object, or from the one that is named.

export const deleteObjectTagging = defineOperation({
  name: 'DeleteObjectTagging',
  match: { method: 'DELETE', on: 'object', query: ['tagging'] },
  logName: 'REST.DELETE.OBJECT_TAGGING',
  body: 'none',
  parameters: ['versionId'],
  errors: ['InvalidArgument', 'MethodNotAllowed', 'NoSuchKey', 'NoSuchVersion'],
  parse: parseVersionAddress,
  access: ({ resource, versionId }) => [
    [versionId === undefined ? 's3:DeleteObjectTagging' : 's3:DeleteObjectVersionTagging', resource],
  ],
  run: async (context, input) => ({ status: 204, headers: await setTags(context, { ...input, tags: null }) }),
});

// What PutObjectTagging and DeleteObjectTagging do: one command to the bucket's shard, and which version it met.

/** The answer's headers. NoSuchKey, NoSuchVersion, MethodNotAllowed for a delete marker, AccessDenied as a GET. */
export async function setTags(
  context: OperationContext,
  { key, versionId, tags }: VersionAddress & { tags: Tag[] | null },
): Promise<AnswerHeaders> {
  const { homeShard, believed } = context.bucket();
  const { value } = await context.metadata.execute({ shard: homeShard, bucket: believed }, 'set-tags', {
    bucketId: believed.bucketId,
    key,
    ...(versionId !== undefined && { versionId }),
    tags,
  });
  if (value.kind !== 'tagged') throw await absentVersion(context, { key, versionId }, value);
  return { 'x-amz-version-id': shownVersionId(value.versioning, value.versionId) };
}
