// PutBucketCompliance: how long all objects of a bucket are kept, those that are there already too (service 2.5). The home
// decides, in the commit, whether locked settings would be reduced.
import { AppError } from '../../../types/errors.ts';
import { type BucketCompliance, isComplianceLocked } from '../../../types/retention.ts';
import { readPresent } from '../buckets/present-bucket.ts';
import { setBucketDocument } from '../buckets/set-bucket-document.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { NO_CONDITION_VALUES } from '../request/write-conditions.ts';
import { type GivenBucketCompliance, parseBucketCompliance, requireNear } from './compliance-xml.ts';

export const putBucketCompliance = defineOperation({
  name: 'PutBucketCompliance',
  match: { method: 'PUT', on: 'bucket', query: ['compliance'] },
  logName: 'REST.PUT.COMPLIANCE',
  body: 'xml',
  decidesInRun: true,
  errors: ['InvalidArgument', 'InvalidBucketState', 'MalformedXML', 'MissingRequestBodyError'],
  differences:
    'Not in S3: the compliance settings of a bucket. Once they are locked, what would reduce them is AccessDenied. With DeleteAfterRetention it also needs s3:DeleteObject and s3:DeleteObjectVersion on all objects of the bucket and, with MFA delete, a code in x-amz-mfa, or credentials that were given with MFA.',
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:PutBucketCompliance', resource]],
  parseDocument(body) {
    if (body.length === 0) throw new AppError('MissingRequestBodyError');
    return parseBucketCompliance(body);
  },
  // The service would delete every version that nothing keeps: whoever asks for that may delete them, as with force_delete.
  documentAccess: ({ resource }, { deleteAfterRetention }) =>
    deleteAfterRetention
      ? [
          ['s3:DeleteObject', `${resource}/`, undefined, { isPrefix: true, values: NO_CONDITION_VALUES }],
          [
            's3:DeleteObjectVersion',
            `${resource}/`,
            undefined,
            { isPrefix: true, removesVersion: true, values: NO_CONDITION_VALUES },
          ],
        ]
      : [],
  async run(context, _input, given) {
    const { configs, timeMs } = await readPresent(context, ['compliance']);
    const document = settingsOf(given, configs.compliance, timeMs);
    await setBucketDocument(context, { kind: 'compliance', document });
    return { status: 200 };
  },
});

/** `nowMs`: the home's time, which never decreases: settings that are locked now are locked for the command that comes behind. */
function settingsOf(
  { lockTime, ...given }: GivenBucketCompliance,
  before: BucketCompliance | undefined,
  nowMs: number,
): BucketCompliance {
  if (typeof lockTime === 'number') requireNear('LockTime', lockTime, nowMs);
  const lockAtMs = lockAtOf(lockTime, before, nowMs);
  return { ...given, ...(given.isEnabled && lockAtMs !== undefined && { lockAtMs }) };
}

/** A lock stays as it is where the request does not name another time, or asks to lock again what is locked. */
function lockAtOf(
  lockTime: GivenBucketCompliance['lockTime'],
  before: BucketCompliance | undefined,
  nowMs: number,
): number | undefined {
  if (typeof lockTime === 'number') return lockTime;
  const isLocked = before?.isEnabled === true && isComplianceLocked(before, nowMs);
  if (isLocked && lockTime !== 'off') return before.lockAtMs;
  // Of whole seconds, so that clients which know no others give back what they have read.
  return lockTime === 'now' ? Math.floor(nowMs / 1000) * 1000 : undefined;
}
