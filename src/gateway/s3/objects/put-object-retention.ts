// PutObjectRetention: until when a version may not go. What may be changed of it, and by whom, is types/retention.ts's.
import type { Retention } from '../../../types/protection.ts';
import { defineOperation, type OperationRequest } from '../operation.ts';
import {
  asksBypass,
  BYPASS_HEADER,
  mayBypass,
  requireFuture,
  requireObjectLock,
} from '../request/object-lock.ts';
import { parseRetentionBody } from '../xml/object-lock-xml.ts';
import { parseVersionAddress } from './find-version.ts';
import { setLock } from './set-lock.ts';

export const putObjectRetention = defineOperation({
  name: 'PutObjectRetention',
  match: { method: 'PUT', on: 'object', query: ['retention'] },
  logName: 'REST.PUT.OBJECT_LOCK_RETENTION',
  body: 'xml',
  parameters: ['versionId'],
  options: [BYPASS_HEADER],
  decidesInRun: true,
  errors: [
    'BadDigest',
    'InvalidArgument',
    'InvalidRequest',
    'MalformedXML',
    'MethodNotAllowed',
    'NoSuchKey',
    'NoSuchVersion',
  ],
  differences:
    'Of a caller without s3:BypassGovernanceRetention `x-amz-bypass-governance-retention` is passed over, so what needs no bypass succeeds. No digest of the body is demanded.',
  parse: (request: OperationRequest) => ({
    ...parseVersionAddress(request),
    asksBypass: asksBypass(request.headers),
  }),
  // What the retention is may decide: the caller is judged once it is read, if it can be allowed anything at all.
  access: ({ resource, versionId }) => [
    ['s3:PutObjectRetention', resource, undefined, { versionId, isBeforeDocument: true }],
  ],
  parseDocument: parseRetentionBody,
  documentAccess: ({ resource, versionId }, retention) => [
    ['s3:PutObjectRetention', resource, undefined, { versionId, values: valuesOf(retention) }],
  ],
  async run(context, { key, versionId, resource, ...input }, retention) {
    await requireObjectLock(context);
    if (retention !== null) requireFuture(context, retention, 'RetainUntilDate');
    const bypasses = input.asksBypass && (await mayBypass(context, resource, valuesOf(retention)));
    await setLock(
      context,
      { key, versionId },
      { kind: 'retention', retention, ...(bypasses && { bypassesGovernance: true as const }) },
    );
    return { status: 200 };
  },
});

/** Condition keys. How many days are left follows from the date (policy/authorize.ts). */
function valuesOf(retention: Retention | null): Readonly<Record<string, string>> {
  if (retention === null) return {};
  return {
    's3:object-lock-mode': retention.mode,
    's3:object-lock-retain-until-date': new Date(retention.untilMs).toISOString(),
  };
}
