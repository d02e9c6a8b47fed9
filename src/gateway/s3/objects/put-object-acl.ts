// PutObjectAcl: the access control list of an object's current version, or of the one that is named (s3-behaviour 8).
import { AppError } from '../../../types/errors.ts';
import type { OperationContext } from '../context.ts';
import { defineOperation } from '../operation.ts';
import { ACL_HEADERS, type GivenAcl, parseAclHeaders } from '../request/acl-headers.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';
import { resolveAcl } from '../sharing/resolve-acl.ts';
import { takeAcl } from '../xml/acl-xml.ts';
import {
  absentVersion,
  findVersion,
  parseVersionAddress,
  shownVersionId,
  type VersionAddress,
} from './find-version.ts';

/** How often another list, other tags or another account's version may take the place of what was read. */
const ATTEMPTS_MAX = 3;

export const putObjectAcl = defineOperation({
  name: 'PutObjectAcl',
  match: { method: 'PUT', on: 'object', query: ['acl'] },
  logName: 'REST.PUT.ACL',
  body: 'xml',
  parameters: ['versionId'],
  options: ACL_HEADERS,
  errors: [
    'InvalidArgument',
    'InvalidRequest',
    'MalformedACLError',
    'MethodNotAllowed',
    'MissingSecurityHeader',
    'NoSuchKey',
    'NoSuchVersion',
    'UnexpectedContent',
    'UnresolvableGrantByEmailAddress',
  ],
  differences: 'As PutBucketAcl.',
  parse: (request) => ({ ...parseVersionAddress(request), header: parseAclHeaders(request.headers) }),
  access: ({ resource, versionId }) => [
    [
      versionId === undefined ? 's3:PutObjectAcl' : 's3:PutObjectVersionAcl',
      resource,
      undefined,
      { versionId },
    ],
  ],
  parseDocument: (xmlBody, { header }) => takeAcl(xmlBody, header),
  run: async (context, input, given) => ({ status: 200, headers: await setAcl(context, input, given) }),
});

/** A list is made for the version's owner, so that is read first. */
async function setAcl(
  context: OperationContext,
  { key, versionId }: VersionAddress,
  given: GivenAcl,
): Promise<AnswerHeaders> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const { version } = await findVersion(context, { key, versionId, includeBody: false });
    const { owner, acl: before = null } = version;
    const bucketOwner = context.bucket().record.owner;
    const grants = await resolveAcl(context, given, { owner, bucketOwner });
    const { homeShard, believed } = context.bucket();
    const judged = context.seen.last({ bucketId: believed.bucketId, key, versionId });
    const { value } = await context.metadata.execute({ shard: homeShard, bucket: believed }, 'set-acl', {
      bucketId: believed.bucketId,
      key,
      ...(versionId !== undefined && { versionId }),
      owner,
      before,
      ...(judged && { tagsBefore: judged.tags }),
      grants: grants ?? null,
    });
    if (value.kind === 'set')
      return { 'x-amz-version-id': shownVersionId(value.versioning, value.versionId) };
    // Another one is there now, with an owner, a list or tags that nobody was judged by.
    if (value.kind !== 'other-owner') throw await absentVersion(context, { key, versionId }, value);
  }
  throw new AppError('OperationAborted');
}
