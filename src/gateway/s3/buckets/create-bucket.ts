// CreateBucket: the name is reserved in the system shard, the bucket made in its home, the name opened (R41). Each step
// may be repeated, and the outbox finishes what a gateway leaves behind.
import type { Steps } from '../../../base/async/steps.ts';
import { childrenOf, textOf, type XmlElement } from '../../../base/xml/parse-xml.ts';
import { type OutcomeOf, SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import type { Grant } from '../../../types/acl.ts';
import { AppError } from '../../../types/errors.ts';
import type { AccountId, BucketName } from '../../../types/names.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { ACL_HEADERS, isPrivate, parseAclHeaders } from '../request/acl-headers.ts';
import { resolveAcl } from '../sharing/resolve-acl.ts';
import { readXmlBody } from '../xml/xml-body.ts';

export const createBucket = defineOperation({
  name: 'CreateBucket',
  match: { method: 'PUT', on: 'bucket' },
  logName: 'REST.PUT.BUCKET',
  body: 'xml',
  needsBucket: false,
  options: ACL_HEADERS,
  errors: [
    'BucketAlreadyExists',
    'InvalidArgument',
    'InvalidRequest',
    'MalformedACLError',
    'MalformedXML',
    'OperationAborted',
    'TooManyBuckets',
    'UnresolvableGrantByEmailAddress',
  ],
  differences:
    'LocationConstraint is read and ignored. Creating an own bucket again is 200 and changes nothing. ObjectOwnership may be ObjectWriter only, which is how all buckets are.',
  parse: ({ bucket, headers }) => ({
    name: bucket,
    resource: bucketArn(bucket),
    acl: parseAclHeaders(headers),
  }),
  access: ({ resource, acl }) => [
    ['s3:CreateBucket', resource, undefined, { isBeforeDocument: true }],
    ...(isPrivate(acl) ? [] : [['s3:PutBucketAcl', resource] as const]),
  ],
  *parseDocument(xmlBody): Steps<{ location: string | undefined }> {
    if (xmlBody.length === 0) return { location: undefined };
    return yield* readXmlBody(xmlBody, 'CreateBucketConfiguration', readConfiguration);
  },
  documentAccess: ({ resource }, { location }) => {
    const values = location === undefined ? {} : { 's3:locationconstraint': location };
    return [['s3:CreateBucket', resource, undefined, { values }]];
  },
  async run(context, { name, acl }) {
    const owner = context.account().accountId;
    await createNamed(context, { name, owner, grants: await resolveAcl(context, acl, { owner }) });
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

async function createNamed(
  context: OperationContext,
  { name, owner, grants }: { name: BucketName; owner: AccountId; grants: Grant[] | undefined },
): Promise<void> {
  const system = { shard: SYSTEM_SHARD };
  const outcome = await reserveName(context, { name, owner });
  const fields = { BucketName: name };
  switch (outcome.kind) {
    case 'owned-already':
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
  if (grants !== undefined) {
    const document = { kind: 'acl' as const, document: { grants } };
    await context.metadata.execute({ shard: homeShard }, 'set-bucket-config', { bucketId, ...document });
  }
  const opened = await context.metadata.execute(system, 'activate-name', { name, bucketId });
  // Made and deleted by another request of the owner's meanwhile.
  if (opened.value.kind === 'gone') throw new AppError('OperationAborted', { fields });
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
  const found = await metadata.query({ shard: homeShard }, 'get-bucket', { bucketId });
  const state = found.value.bucket?.state;
  // Whether it will be there in a moment is being decided (force_delete).
  if (state === 'closing') return { kind: 'in-progress' };
  if (state !== 'deleted') return value;
  await metadata.execute(system, 'forget-name', { ...command, bucketId });
  return (await metadata.execute(system, 'reserve-name', command)).value;
}
