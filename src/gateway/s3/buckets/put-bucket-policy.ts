// PutBucketPolicy: who may do what with the bucket and its objects, in the language of policies. The text is kept byte for
// byte; whether it is one is decided here.
import type { Steps } from '../../../base/async/steps.ts';
import {
  type CompiledPolicy,
  compileInSteps,
  POLICY_SIZES,
} from '../../../policy/documents/compile-policy.ts';
import { evaluate } from '../../../policy/evaluate.ts';
import { publicStatements } from '../../../policy/public-statements.ts';
import { SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import { AppError } from '../../../types/errors.ts';
import { findPrincipalIds } from '../../auth/principal-ids.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { parseBoolean } from '../request/arguments.ts';
import { requireMayBePublic } from '../sharing/resolve-acl.ts';
import { requireOwnAccount, setBucketDocument } from './set-bucket-document.ts';

const CONFIRM_HEADER = 'x-amz-confirm-remove-self-bucket-access';

export const putBucketPolicy = defineOperation({
  name: 'PutBucketPolicy',
  match: { method: 'PUT', on: 'bucket', query: ['policy'] },
  logName: 'REST.PUT.BUCKETPOLICY',
  body: 'xml',
  bodyBytesMax: POLICY_SIZES.documentCharactersMax,
  errors: ['InvalidArgument', 'MalformedPolicy', 'MethodNotAllowed', 'MissingRequestBodyError'],
  differences:
    'A policy that allows something to everybody is AccessDenied for accounts that may not be public ([access.md](access.md)). A rename of the bucket rewrites its name in the resources.',
  parse: ({ bucket, headers }) => ({
    bucket,
    resource: bucketArn(bucket),
    mayLockOut: parseBoolean(headers, CONFIRM_HEADER),
  }),
  access: ({ resource }) => [['s3:PutBucketPolicy', resource]],
  *parseDocument(body, { bucket }): Steps<{ text: string; policy: CompiledPolicy }> {
    if (body.length === 0) throw new AppError('MissingRequestBodyError');
    const text = readText(body);
    yield;
    const outcome = yield* compileInSteps(text, { type: 'resource', bucket });
    if (outcome.kind === 'compiled') return { text, policy: outcome.policy };
    const { message, detail } = outcome;
    throw new AppError('MalformedPolicy', { message, ...(detail && { fields: { Detail: detail } }) });
  },
  async run(context, { resource, mayLockOut }, { text, policy }) {
    requireOwnAccount(context);
    if (publicStatements(policy).length > 0) await requireMayBePublic(context, context.bucket().record.owner);
    if (!mayLockOut && (await locksOut(context, policy, resource))) {
      throw new AppError('AccessDenied', {
        message: `The policy would keep you from changing it. Send ${CONFIRM_HEADER}: true to put it all the same.`,
      });
    }
    const ids = await findPrincipalIds(policy, async (accountId, keys) => {
      const query = { accountId, keys };
      return (await context.metadata.query({ shard: SYSTEM_SHARD }, 'read-identities', query)).value.rows;
    });
    await setBucketDocument(context, { kind: 'policy', document: { text, ...(ids && { ids }) } });
    return { status: 204 };
  },
});

function readText(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch (cause) {
    throw new AppError('MalformedPolicy', { message: 'This policy contains invalid Json', cause });
  }
}

/** Whether its author could not put another one. An account's root can always repair the policies of its own buckets. */
async function locksOut(
  { caller, bucket, clock }: OperationContext,
  policy: CompiledPolicy,
  resource: string,
): Promise<boolean> {
  if (caller.kind === 'anonymous') return false;
  const { principal } = caller;
  return !evaluate({
    caller: principal.caller,
    policies: await principal.policies(),
    action: 's3:PutBucketPolicy',
    resource,
    resourceAccount: bucket().record.owner,
    resourcePolicy: { policy, name: resource },
    contextOf: principal.valuesAt(clock.wallMs()),
  }).isAllowed;
}
