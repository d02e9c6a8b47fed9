// CreateBucket: the name is reserved in the system shard, the bucket made in its home, the name opened (R41). Each step
// may be repeated, and the outbox finishes what a gateway leaves behind.
import type { Steps } from '../../../base/async/steps.ts';
import { childrenOf, textOf, type XmlElement } from '../../../base/xml/parse-xml.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import { type OutcomeOf, SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import type { Grant } from '../../../types/acl.ts';
import { AppError } from '../../../types/errors.ts';
import type { AccountId, BucketName } from '../../../types/names.ts';
import type { NameRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { ACL_HEADERS, isPrivate, parseAclHeaders } from '../request/acl-headers.ts';
import { parseBoolean } from '../request/arguments.ts';
import { resolveAcl } from '../sharing/resolve-acl.ts';
import { readXmlBody } from '../xml/xml-body.ts';
import type { BucketDocument } from './set-bucket-document.ts';

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
    await createNamed(context, { name, owner, hasLock, documents: documentsOf({ grants, hasLock }) });
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

/** What the bucket has from its beginning, in an order in which each fits to those before it. */
function documentsOf({
  grants,
  hasLock,
}: {
  grants: Grant[] | undefined;
  hasLock: boolean;
}): BucketDocument[] {
  const documents: BucketDocument[] = [];
  if (grants !== undefined) documents.push({ kind: 'acl', document: { grants } });
  if (hasLock) {
    documents.push({ kind: 'versioning', document: { status: 'enabled' } });
    documents.push({ kind: 'objectLock', document: {} });
  }
  return documents;
}

async function createNamed(
  context: OperationContext,
  given: { name: BucketName; owner: AccountId; hasLock: boolean; documents: BucketDocument[] },
): Promise<void> {
  const { name, owner, hasLock, documents } = given;
  const system = { shard: SYSTEM_SHARD };
  const outcome = await reserveName(context, { name, owner });
  const fields = { BucketName: name };
  switch (outcome.kind) {
    case 'owned-already':
      if (hasLock) await requireLocked(context, { name, record: outcome.record });
      return;
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
  // The bucket is there before its name is: a name that is open always leads somewhere.
  await context.metadata.execute({ shard: homeShard }, 'create-bucket', { bucketId, name, owner });
  for (const document of documents) {
    const command = { bucketId, ...document };
    const set = await context.metadata.execute({ shard: homeShard }, 'set-bucket-config', command);
    // The outbox has opened the name meanwhile, and the bucket was deleted or configured otherwise.
    if (set.value.kind !== 'changed') throw new AppError('OperationAborted', { fields });
  }
  const opened = await context.metadata.execute(system, 'activate-name', { name, bucketId });
  // Made and deleted by another request of the owner's meanwhile.
  if (opened.value.kind === 'gone') throw new AppError('OperationAborted', { fields });
}

/**
 * BucketAlreadyOwnedByYou unless the bucket has an object lock: whoever asks for one must not take it for locked. That may be
 * one that the outbox has opened after its gateway had stopped between the steps.
 */
async function requireLocked(
  { metadata }: OperationContext,
  { name, record: { bucketId, homeShard } }: { name: BucketName; record: NameRecord },
): Promise<void> {
  const { value } = await metadata.query({ shard: homeShard }, 'get-bucket', { bucketId, kinds: [] });
  if (value.bucket?.objectLock !== undefined) return;
  throw new AppError('BucketAlreadyOwnedByYou', { fields: { BucketName: name } });
}

/** A name whose bucket was deleted by a request that could not free it any more is freed first. */
async function reserveName(
  { metadata }: OperationContext,
  command: { name: BucketName; owner: AccountId },
): Promise<OutcomeOf<'reserve-name'>> {
  const system = { shard: SYSTEM_SHARD };
  const { value } = await metadata.execute(system, 'reserve-name', command);
  if (value.kind !== 'owned-already') return value;
  const { bucketId, homeShard } = value.record;
  const found = await metadata.query({ shard: homeShard }, 'get-bucket', { bucketId, kinds: [] });
  const state = found.value.bucket?.state;
  // Whether it will be there in a moment is being decided (force_delete).
  if (state === 'closing') return { kind: 'in-progress' };
  if (state !== 'deleted') return value;
  await metadata.execute(system, 'forget-name', { ...command, bucketId });
  return (await metadata.execute(system, 'reserve-name', command)).value;
}
