// PutBucketLifecycleConfiguration: the rules by which versions and uploads of the bucket go, instead of those that it has.
import type { Steps } from '../../../base/async/steps.ts';
import { AppError } from '../../../types/errors.ts';
import type { BucketLifecycle } from '../../../types/lifecycle.ts';
import { LIMITS } from '../../../types/limits.ts';
import { bucketArn, defineOperation, type OperationRequest } from '../operation.ts';
import { type GivenRule, LIFECYCLE_ROOT, readRules } from '../xml/lifecycle-xml.ts';
import { readXmlBody } from '../xml/xml-body.ts';
import { checkRules, makeRuleId } from './check-lifecycle.ts';
import { setBucketDocument } from './set-bucket-document.ts';

/** Of moving small objects to other storage classes, which there are not: kept, and said again. */
const TRANSITION_MINIMUM_HEADER = 'x-amz-transition-default-minimum-object-size';
const TRANSITION_MINIMUM_DEFAULT = 'all_storage_classes_128K';

const RULES_OF_TURN = 50;

export const putBucketLifecycleConfiguration = defineOperation({
  name: 'PutBucketLifecycleConfiguration',
  match: { method: 'PUT', on: 'bucket', query: ['lifecycle'] },
  logName: 'REST.PUT.LIFECYCLE',
  body: 'xml',
  bodyBytesMax: LIMITS.lifecycleBodyBytesMax,
  errors: [
    'BadDigest',
    'InvalidArgument',
    'InvalidRequest',
    'InvalidTag',
    'MalformedXML',
    'MissingRequestBodyError',
    'NotImplemented',
  ],
  differences:
    'Transition and NoncurrentVersionTransition are 501 NotImplemented: there is one storage class. NewerNoncurrentVersions above 100 is InvalidArgument. No digest of the body is demanded. In a bucket with MFA delete it needs a code in x-amz-mfa, or credentials that were given with MFA.',
  parse: ({ bucket, headers }) => ({
    resource: bucketArn(bucket),
    transitionMinimum: parseTransitionMinimum(headers),
  }),
  // Rules remove versions for good, which in a bucket with MFA delete nobody may without a second factor.
  access: ({ resource }) => [['s3:PutLifecycleConfiguration', resource, undefined, { removesVersion: true }]],
  *parseDocument(body): Steps<GivenRule[]> {
    if (body.length === 0) throw new AppError('MissingRequestBodyError');
    return yield* readXmlBody(body, LIFECYCLE_ROOT, readRules);
  },
  async run(context, { transitionMinimum }, given) {
    const rules = checkRules(given, () => makeRuleId(context.random));
    const document: BucketLifecycle = { rules, ...(transitionMinimum && { transitionMinimum }) };
    // To check a thousand rules and to store them take some ms each.
    if (rules.length > RULES_OF_TURN) await context.turn();
    await setBucketDocument(context, { kind: 'lifecycle', document });
    return { status: 200, headers: transitionMinimumAnswer(document) };
  },
});

/** Undefined: the default. InvalidRequest for what AWS does not have. */
function parseTransitionMinimum(
  headers: OperationRequest['headers'],
): BucketLifecycle['transitionMinimum'] | undefined {
  const value = headers[TRANSITION_MINIMUM_HEADER] ?? TRANSITION_MINIMUM_DEFAULT;
  if (value === TRANSITION_MINIMUM_DEFAULT) return undefined;
  if (value === 'varies_by_storage_class') return value;
  const message = `Invalid TransitionDefaultMinimumObjectSize found: ${value}`;
  throw new AppError('InvalidRequest', { message });
}

export function transitionMinimumAnswer({ transitionMinimum }: BucketLifecycle): Record<string, string> {
  return { [TRANSITION_MINIMUM_HEADER]: transitionMinimum ?? TRANSITION_MINIMUM_DEFAULT };
}
