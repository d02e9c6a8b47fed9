// MoveBucket (service 4.1, extensions 2.2): the system shard lets both names lead to the bucket, its home changes
// the name that it bears, the system shard drops the old one (R43). Each step may be repeated, and the outbox finishes
// what a gateway leaves behind. All that a bucket has hangs on its id, so nothing else moves.

import { type OutcomeOf, SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import { AppError } from '../../../types/errors.ts';
import { type BucketName, parseBucketName } from '../../../types/names.ts';
import type { BucketRecord } from '../../../types/records/rows.ts';
import { presentBucket } from '../buckets/present-bucket.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation, type OperationRequest } from '../operation.ts';
import { invalidArgument, parseBoolean } from '../request/arguments.ts';
import { TOKEN_HEADER } from '../request/idempotency-token.ts';
import { TARGET_CONDITION_HEADERS, WRITE_CONDITION_HEADERS } from '../request/write-conditions.ts';

type Begun = OutcomeOf<'begin-rename'>;

/** What only a MOVE of an object or a prefix takes: of these true, and any value of the others. */
const OPTIONS_OF_OBJECTS = ['x-svc-prefix', 'overwrite', 'x-svc-quiet'];
const VALUES_OF_OBJECTS = [TOKEN_HEADER, ...WRITE_CONDITION_HEADERS, ...TARGET_CONDITION_HEADERS];

const SYSTEM = { shard: SYSTEM_SHARD };

export const moveBucket = defineOperation({
  name: 'MoveBucket',
  match: { method: 'MOVE', on: 'bucket' },
  logName: 'REST.MOVE.BUCKET',
  body: 'none',
  // Refused by name: they are of objects and prefixes.
  conditions: WRITE_CONDITION_HEADERS,
  options: ['x-svc-prefix', 'x-svc-quiet', TOKEN_HEADER, ...TARGET_CONDITION_HEADERS],
  errors: [
    'BucketAlreadyExists',
    'BucketAlreadyOwnedByYou',
    'InvalidArgument',
    'InvalidBucketName',
    'InvalidRequest',
    'OperationAborted',
  ],
  differences: 'Not in S3: renames the bucket to the name in the header Destination. Only its owner may.',
  parse(request) {
    const { bucket: from, headers } = request;
    // A client that left out the source's key would rename the whole bucket.
    const isOfObjects =
      OPTIONS_OF_OBJECTS.some((name) => parseBoolean(headers, name)) ||
      VALUES_OF_OBJECTS.some((name) => headers[name] !== undefined);
    if (isOfObjects) {
      throw new AppError('InvalidRequest', {
        message:
          'Conditions, tokens and the options of a MOVE are of objects and prefixes, which stand behind their bucket.',
      });
    }
    return { from, to: parseDestination(request) };
  },
  access: ({ from, to }) => [
    ['s3:CreateBucket', bucketArn(to), 'new-bucket'],
    // Else who may make buckets of some names could take over all others of the account, by such a name.
    ['s3:CreateBucket', bucketArn(from)],
    ['s3:DeleteBucket', bucketArn(from), 'owner-only', { renamedTo: to }],
    // Its policy and its list come along, by whomever they were put; another request may put them before it has moved.
    ['s3:PutBucketPolicy', bucketArn(to), 'new-name'],
    ['s3:PutBucketAcl', bucketArn(to), 'new-name'],
  ],
  async run(context, { to }) {
    const before = await presentBucket(context);
    const { bucketId, name: from } = before;
    if (before.state !== 'open') throw aborted(from);
    const begun = await beginRename(context, before, to);
    if (begun.kind !== 'begun') throw refusalOf(begun, { from, to });
    const names = { bucketId, from, to };
    // From here on whatever is cached of either name may be wrong.
    for (const name of [from, to]) context.forgetBucket(name);
    const home = { shard: begun.homeShard };
    const rename = { ...names, nameEpoch: begun.nameEpoch };
    const { value: verdict } = await context.metadata.execute(home, 'rename-bucket', rename);
    const end = { ...names, itemId: begun.itemId, verdict: verdict.kind };
    await context.metadata.execute(SYSTEM, 'end-rename', end);
    for (const name of [from, to]) context.forgetBucket(name);
    if (verdict.kind === 'refused' && verdict.because === 'policy-too-long') {
      const message =
        'Under the new name the policy of the bucket would become too long. Put a shorter one, with fewer wildcards for the name.';
      throw new AppError('InvalidRequest', { message });
    }
    // Another request has closed, deleted or renamed it since it was looked at.
    if (verdict.kind === 'refused') throw aborted(from);
    return { status: 200, headers: { Location: `/${to}` } };
  },
});

/** The new name, bare or behind one slash. */
function parseDestination({ bucket, headers }: OperationRequest): BucketName {
  const { destination = '' } = headers;
  if (destination === '') {
    const message = 'The header Destination names the bucket anew.';
    throw invalidArgument({ name: 'Destination', value: destination, message });
  }
  const text = destination.startsWith('/') ? destination.slice(1) : destination;
  const name = parseBucketName(text);
  if (name === undefined) throw new AppError('InvalidBucketName', { fields: { BucketName: text } });
  // As for objects (extensions 2.1): the name is in use, but by nothing that stands in the way.
  if (name === bucket) {
    throw new AppError('InvalidRequest', { message: 'The bucket has the name in the header Destination.' });
  }
  return name;
}

/** A name whose bucket was deleted by a request that could not free it any more is freed first. */
async function beginRename(
  { metadata }: OperationContext,
  { bucketId, name: from, nameEpoch, owner }: BucketRecord,
  to: BucketName,
): Promise<Begun> {
  const command = { bucketId, from, to, nameEpoch };
  const { value } = await metadata.execute(SYSTEM, 'begin-rename', command);
  if (value.kind !== 'owned-already') return value;
  const { record } = value;
  const { value: other } = await metadata.query({ shard: record.homeShard }, 'get-bucket', {
    bucketId: record.bucketId,
    kinds: [],
  });
  if (other.bucket?.state !== 'deleted') return value;
  await metadata.execute(SYSTEM, 'forget-name', { name: to, bucketId: record.bucketId, owner });
  return (await metadata.execute(SYSTEM, 'begin-rename', command)).value;
}

function refusalOf(
  { kind }: Exclude<Begun, { kind: 'begun' }>,
  { from, to }: { from: BucketName; to: BucketName },
): AppError {
  switch (kind) {
    case 'taken':
      return new AppError('BucketAlreadyExists', { fields: { BucketName: to } });
    case 'owned-already':
      return new AppError('BucketAlreadyOwnedByYou', { fields: { BucketName: to } });
    // `no-such-name`: renamed or deleted since its home was asked, by a request beside this one.
    case 'no-such-name':
    case 'in-progress':
      return aborted(from);
  }
}

function aborted(name: BucketName): AppError {
  return new AppError('OperationAborted', { fields: { BucketName: name } });
}
