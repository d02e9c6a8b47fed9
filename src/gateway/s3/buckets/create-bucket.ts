// CreateBucket: the name is reserved in the system shard, the bucket made in its home, the name opened (R41). Each step
// may be repeated, and the outbox finishes what a gateway leaves behind.
import type { Steps } from '../../../base/async/steps.ts';
import { childrenOf, textOf, type XmlElement } from '../../../base/xml/parse-xml.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import { type CommandOf, type OutcomeOf, SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import type { Grant } from '../../../types/acl.ts';
import type { CreationSettings } from '../../../types/bucket-config.ts';
import { AppError } from '../../../types/errors.ts';
import type { AccountId, BucketName } from '../../../types/names.ts';
import type { BucketRecord, NameRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { ACL_HEADERS, isPrivate, parseAclHeaders } from '../request/acl-headers.ts';
import { parseBoolean } from '../request/arguments.ts';
import { resolveAcl } from '../sharing/resolve-acl.ts';
import { readXmlBody } from '../xml/xml-body.ts';

const LOCK_HEADER = 'x-amz-bucket-object-lock-enabled';

export const createBucket = defineOperation({
  name: 'CreateBucket',
  match: { method: 'PUT', on: 'bucket' },
  logName: 'REST.PUT.BUCKET',
  body: 'xml',
  needsBucket: false,
  options: [...ACL_HEADERS, LOCK_HEADER],
  errors: [
    'BucketAlreadyExists',
    'BucketAlreadyOwnedByYou',
    'InvalidArgument',
    'InvalidRequest',
    'MalformedACLError',
    'MalformedXML',
    'OperationAborted',
    'TooManyBuckets',
    'UnresolvableGrantByEmailAddress',
  ],
  differences:
    'LocationConstraint is read and ignored. Creating an own bucket again is 200 and changes nothing; asked for with an object lock, one that has none is 409 BucketAlreadyOwnedByYou. ObjectOwnership may be ObjectWriter only, which is how all buckets are.',
  parse: ({ bucket, headers }) => ({
    name: bucket,
    resource: bucketArn(bucket),
    acl: parseAclHeaders(headers),
    hasLock: parseBoolean(headers, LOCK_HEADER),
  }),
  access: ({ resource, acl, hasLock }) => {
    const actions: string[] = [];
    if (!isPrivate(acl)) actions.push('s3:PutBucketAcl');
    if (hasLock) actions.push('s3:PutBucketObjectLockConfiguration', 's3:PutBucketVersioning');
    return [
      ['s3:CreateBucket', resource, undefined, { isBeforeDocument: true }],
      ...actions.map((action): AccessPair => [action, resource]),
    ];
  },
  *parseDocument(xmlBody): Steps<{ location: string | undefined }> {
    if (xmlBody.length === 0) return { location: undefined };
    return yield* readXmlBody(xmlBody, 'CreateBucketConfiguration', readConfiguration);
  },
  documentAccess: ({ resource }, { location }) => {
    const values = location === undefined ? {} : { 's3:locationconstraint': location };
    return [['s3:CreateBucket', resource, undefined, { values }]];
  },
  async run(context, { name, acl, hasLock }) {
    const owner = context.account().accountId;
    const grants = await resolveAcl(context, acl, { owner });
    await createNamed(context, { name, owner, settings: settingsOf({ grants, hasLock }) });
    return { status: 200, headers: { Location: `/${name}` } };
  },
});

/** The location is for conditions of policies alone. */
function readConfiguration(root: XmlElement): { location: string | undefined } {
  const location = textOf(root, 'LocationConstraint');
  // Bucket tagging is not there (service 4.6).
  if (childrenOf(root, 'Tags').some((tags) => tags.children.length > 0)) throw new AppError('NotImplemented');
  return { location };
}

/** What the bucket has from its beginning. undefined: nothing. */
function settingsOf({
  grants,
  hasLock,
}: {
  grants: Grant[] | undefined;
  hasLock: boolean;
}): CreationSettings | undefined {
  if (grants === undefined && !hasLock) return undefined;
  return {
    ...(grants && { acl: { grants } }),
    ...(hasLock && { versioning: { status: 'enabled' }, objectLock: {} }),
  };
}

async function createNamed(
  { metadata }: OperationContext,
  given: { name: BucketName; owner: AccountId; settings: CreationSettings | undefined },
): Promise<void> {
  const { name, owner, settings } = given;
  const hasLock = settings?.objectLock !== undefined;
  const command = { name, owner, ...(settings && { settings }) };
  const outcome = await reserveName(metadata, command);
  const fields = { BucketName: name };
  switch (outcome.kind) {
    case 'owned-already': {
      if (hasLock) requireLocked(await findBucket(metadata, outcome.record), name);
      return;
    }
    case 'taken':
      throw new AppError('BucketAlreadyExists', { fields });
    case 'in-progress':
      throw new AppError('OperationAborted', { fields });
    case 'too-many-buckets':
      throw new AppError('TooManyBuckets');
    case 'reserved':
      break;
  }
  const { bucketId, homeShard } = outcome;
  // The bucket is there, with all its settings, before its name is: a name that is open always leads somewhere.
  const created = await metadata.execute({ shard: homeShard }, 'create-bucket', { bucketId, ...command });
  const opened = await metadata.execute({ shard: SYSTEM_SHARD }, 'activate-name', { name, bucketId });
  // Made and deleted by another request of the owner's meanwhile.
  if (created.value.kind === 'deleted-already' || opened.value.kind === 'gone')
    throw new AppError('OperationAborted', { fields });
  if (hasLock) requireLocked(created.value.bucket, name);
}

/**
 * BucketAlreadyOwnedByYou unless the bucket has an object lock: whoever asks for one must not take it for locked. Another
 * request of the owner's may have made it without one.
 */
function requireLocked(bucket: BucketRecord | null, name: BucketName): void {
  if (bucket?.objectLock !== undefined) return;
  throw new AppError('BucketAlreadyOwnedByYou', { fields: { BucketName: name } });
}

async function findBucket(
  metadata: OperationContext['metadata'],
  { bucketId, homeShard }: NameRecord,
): Promise<BucketRecord | null> {
  const { value } = await metadata.query({ shard: homeShard }, 'get-bucket', { bucketId, kinds: [] });
  return value.bucket;
}

/** A name whose bucket was deleted by a request that could not free it any more is freed first. */
async function reserveName(
  metadata: OperationContext['metadata'],
  command: CommandOf<'reserve-name'>,
): Promise<OutcomeOf<'reserve-name'>> {
  const system = { shard: SYSTEM_SHARD };
  const { value } = await metadata.execute(system, 'reserve-name', command);
  if (value.kind !== 'owned-already') return value;
  const state = (await findBucket(metadata, value.record))?.state;
  // Whether it will be there in a moment is being decided (force_delete).
  if (state === 'closing') return { kind: 'in-progress' };
  if (state !== 'deleted') return value;
  const { name, owner } = command;
  await metadata.execute(system, 'forget-name', { name, owner, bucketId: value.record.bucketId });
  return (await metadata.execute(system, 'reserve-name', command)).value;
}
