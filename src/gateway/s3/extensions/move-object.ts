// MOVE of an object, or of all whose keys begin with a prefix (service 2.6, 4.2; extensions 2.1): every version and
// delete marker of a key bears another one from one commit on, and no data is touched.

import type { AccessPair } from '../../../policy/authorize.ts';
import type { IdempotencyToken } from '../../../ports/metadata/jobs.ts';
import type { KeyMove } from '../../../ports/metadata/moves.ts';
import { AppError } from '../../../types/errors.ts';
import { explainMoveRefusal } from '../../../types/move-refusals.ts';
import type { JobId, ObjectKey } from '../../../types/names.ts';
import { OutcomeStoreFull } from '../../../types/outcome-store-full.ts';
import { mayHaveOlderVersions } from '../../../types/versioning.ts';
import { requireFactorUnderRules } from '../buckets/factor-under-rules.ts';
import type { OperationContext } from '../context.ts';
import {
  bucketArn,
  defineOperation,
  type OperationRequest,
  type OperationResult,
  objectArn,
} from '../operation.ts';
import { parseBoolean } from '../request/arguments.ts';
import { copySourceValues } from '../request/copy-source.ts';
import { parseDestination } from '../request/destination.ts';
import { idempotencyToken, parseTokenHeader, TOKEN_HEADER } from '../request/idempotency-token.ts';
import {
  conditionAccess,
  parseTargetConditions,
  parseWriteConditions,
  TARGET_CONDITION_HEADERS,
  targetConditionValues,
  WRITE_CONDITION_HEADERS,
} from '../request/write-conditions.ts';
import { NOT_APPLIED } from './composed-object.ts';
import { moveLargeKey, movePrefix, type PrefixMove, repeatLargeKey } from './move-prefix.ts';
import { MOVE_LOG_NAME, moveBody, moveItem } from './move-result.ts';

type MoveInput = ReturnType<typeof parse> &
  Pick<PrefixMove, 'isPrivateOnly' | 'isNameless'> & { conditions: Omit<KeyMove, 'from' | 'to'> };

export const moveObject = defineOperation({
  name: 'MoveObject',
  match: { method: 'MOVE', on: 'object' },
  logName: MOVE_LOG_NAME,
  body: 'none',
  conditions: WRITE_CONDITION_HEADERS,
  options: ['x-svc-prefix', 'x-svc-quiet', TOKEN_HEADER, ...TARGET_CONDITION_HEADERS],
  errors: [
    'IdempotencyParameterMismatch',
    'InvalidArgument',
    'InvalidRequest',
    'KeyTooLongError',
    'NoSuchKey',
    'ObjectAlreadyExists',
    'PreconditionFailed',
  ],
  differences:
    'Not of AWS: renames an object, or all under a prefix, with every version (docs/extensions.md).',
  parse,
  access: ({ bucket, from, to, isPrefix, overwrites, targetValues, conditions }, row) => {
    const arn = (key: string) => objectArn({ bucket, key: key as ObjectKey });
    const ofSource = { ...(isPrefix && { isPrefix }), values: NOT_APPLIED };
    const ofTarget = { ...ofSource, ...targetOptions({ bucket, from, targetValues }) };
    const pairs: AccessPair[] = [
      ['s3:PutObject', arn(from), undefined, ofSource],
      ['s3:PutObject', arn(to), undefined, ofTarget],
      ['s3:DeleteObject', arn(from), 'unless-denied', ofSource],
      // Else it would be read where it comes to.
      ['s3:GetObject', arn(from), 'unless-denied', ofSource],
      ['s3:GetObjectTagging', arn(from), 'unless-denied', ofSource],
      ['s3:PutObjectTagging', arn(to), 'unless-denied', { ...ofTarget, isOfNewObject: true }],
      ...conditionAccess(arn(from), conditions.sourceConditions),
      ...conditionAccess(arn(to), conditions.targetConditions),
    ];
    if (row === undefined || mayHaveOlderVersions(row.versioning)) {
      const ofVersions = { ...ofSource, isOfVersions: true };
      pairs.push(['s3:GetObjectVersion', arn(from), 'unless-denied', ofVersions]);
      pairs.push(['s3:GetObjectVersionTagging', arn(from), 'unless-denied', ofVersions]);
      // Nor are they any more under the key where they may not be deleted.
      pairs.push(['s3:DeleteObjectVersion', arn(from), 'unless-denied', ofVersions]);
    }
    if (overwrites) pairs.push(['s3:DeleteObject', arn(to), 'unless-denied', ofTarget]);
    return pairs;
  },
  // Who may give no list at the destination may move what has none.
  decidesInRun: true,
  async run(context, input) {
    await requireFactorUnderRules(context, 'prefix');
    const may = (pairs: readonly AccessPair[]) => context.mayAlso(pairs, context.bucket());
    const move: MoveInput = {
      ...input,
      ...(!(await may(listAccess(input))) && { isPrivateOnly: true }),
      ...(input.isPrefix && !(await may(namesAccess(input))) && { isNameless: true }),
    };
    if (input.isPrefix) return movePrefix(context, move);
    const { bucketId } = context.bucket().believed;
    const sourceJudged = context.seen.agreed({ bucketId, key: input.from });
    if (sourceJudged === 'changed') throw new AppError('ServiceUnavailable');
    const conditions = { ...input.conditions, ...(sourceJudged !== undefined && { sourceJudged }) };
    return moveKey(context, { ...move, conditions });
  },
});

/** What comes to the destination comes from the source, and brings its tags along, as a copy does. */
function targetOptions({ bucket, from, targetValues }: Pick<MoveInput, 'bucket' | 'from' | 'targetValues'>) {
  return {
    values: { ...targetValues, ...copySourceValues({ bucket, key: from }) },
    bringsTags: true,
  };
}

/** What objects need that bring an access control list along: which one they have, policies do not see. */
function listAccess({ bucket, from, to, isPrefix, targetValues }: MoveInput): readonly AccessPair[] {
  const options = {
    ...(isPrefix && { isPrefix }),
    ...targetOptions({ bucket, from, targetValues }),
    bringsAcl: true,
  };
  const arn = objectArn({ bucket, key: to as ObjectKey });
  return [
    ['s3:PutObject', arn, undefined, options],
    ['s3:PutObjectAcl', arn, 'unless-denied', { ...options, isOfNewObject: true }],
  ];
}

/** The answer of a prefix lists what is below it. */
function namesAccess({ bucket, from }: MoveInput): readonly AccessPair[] {
  return [['s3:ListBucket', bucketArn(bucket), 'unless-denied', { values: { 's3:prefix': from } }]];
}

function parse(request: OperationRequest) {
  const { bucket, key: from, headers } = request;
  const to = parseDestination(headers, bucket);
  const isPrefix = parseBoolean(headers, 'x-svc-prefix');
  const overwrites = parseBoolean(headers, 'overwrite');
  const isQuiet = parseBoolean(headers, 'x-svc-quiet');
  const token = parseTokenHeader(headers);
  // The source is what the URL names, so the usual conditions are about it (RFC 9110 13.1).
  const sourceConditions = parseWriteConditions(headers);
  const targetConditions = parseTargetConditions(headers);
  const conditions = {
    ...(sourceConditions && { sourceConditions }),
    ...(targetConditions && { targetConditions }),
  };
  if (isPrefix && Object.keys(conditions).length > 0) {
    throw new AppError('InvalidRequest', { message: 'A prefix is renamed without conditions.' });
  }
  if (from === to) {
    throw new AppError('InvalidRequest', { message: 'The source and the Destination are the same.' });
  }
  const asked = ['MoveObject', from, to, isPrefix, overwrites, conditions];
  return {
    bucket,
    from,
    to,
    isPrefix,
    overwrites,
    isQuiet,
    conditions,
    targetValues: { ...NOT_APPLIED, ...targetConditionValues(headers) },
    token: idempotencyToken(token, asked),
  };
}

async function moveKey(context: OperationContext, input: MoveInput): Promise<OperationResult> {
  const { from, to, overwrites, isPrivateOnly, isQuiet, conditions, token } = input;
  const { homeShard, believed } = context.bucket();
  const { bucketId } = believed;
  const command = {
    bucketId,
    move: { from, to, ...conditions },
    overwrites,
    ...(isPrivateOnly && { isPrivateOnly }),
    ...(token && { token }),
  };
  const { value } = await context.metadata
    .execute({ shard: homeShard, bucket: believed }, 'move-key', command)
    .catch(async (error: unknown) => ({ value: await findBegun(context, token, error) }));
  if (value.kind === 'token-reused') throw new AppError('IdempotencyParameterMismatch');
  if (value.kind === 'too-much-kept') throw new OutcomeStoreFull();
  if (value.kind === 'began-before') return repeatLargeKey(context, input, value.jobId);
  const { versioning } = value;
  let { result } = value;
  if (!Array.isArray(result) && result.kind === 'too-many-versions') {
    const large = await moveLargeKey(context, input);
    if (!('refusal' in large)) return large;
    result = large.refusal;
  }
  const moved = { from, to, result };
  const refusal = Array.isArray(result) ? undefined : result;
  // Conflicts at either end are reported by an entry, as in the answer of a prefix.
  if (refusal !== undefined && refusal.kind !== 'exists' && refusal.kind !== 'blocked')
    throw refusalOf(refusal);
  const item = moveItem(moved);
  context.record.item(item);
  if (item.errorCode !== undefined) context.record.errorCode = item.errorCode;
  return { status: item.status, body: moveBody(moved, { isQuiet, versioning }) };
}

/**
 * The job that the request's token has begun, where the shard refuses the keys because that job has not ended. Throws
 * `error` for all else.
 */
async function findBegun(
  context: OperationContext,
  token: IdempotencyToken | undefined,
  error: unknown,
): Promise<{ kind: 'began-before'; jobId: JobId } | { kind: 'token-reused' }> {
  if (token === undefined || !(error instanceof AppError) || error.code !== 'OperationAborted') throw error;
  const { homeShard, believed } = context.bucket();
  const query = { bucketId: believed.bucketId, token };
  const { value } = await context.metadata.query(
    { shard: homeShard, bucket: believed },
    'get-kept-outcome',
    query,
  );
  if (value.kind === 'token-reused') return value;
  const { jobId } = (value.kind === 'repeated' ? value.outcome : {}) as { jobId?: JobId };
  if (jobId === undefined) throw error;
  return { kind: 'began-before', jobId };
}

function refusalOf(refusal: Parameters<typeof explainMoveRefusal>[0]): AppError {
  const { code, message } = explainMoveRefusal(refusal);
  if (refusal.kind === 'source-condition')
    return new AppError(code, { fields: { Condition: refusal.condition } });
  if (refusal.kind === 'target-condition') {
    return new AppError(code, { fields: { Condition: `X-Svc-Destination-${refusal.condition}` } });
  }
  return new AppError(code, { message });
}
