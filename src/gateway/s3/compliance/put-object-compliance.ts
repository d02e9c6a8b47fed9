// PutObjectCompliance: one object is kept longer than its bucket wants, or put under a legal hold, or released from the
// conditional hold that it was made under (extensions 2.6). The shard decides, in the commit, whether it may be.
import { AppError } from '../../../types/errors.ts';
import { absentVersion, parseVersionAddress, shownVersionId } from '../objects/find-version.ts';
import { defineOperation } from '../operation.ts';
import { noCompliance, parseObjectCompliance, requireNear } from './compliance-xml.ts';

export const putObjectCompliance = defineOperation({
  name: 'PutObjectCompliance',
  match: { method: 'PUT', on: 'object', query: ['compliance'] },
  logName: 'REST.PUT.COMPLIANCE',
  body: 'xml',
  parameters: ['versionId'],
  errors: [
    'InvalidArgument',
    'MalformedXML',
    'MethodNotAllowed',
    'MissingRequestBodyError',
    'NoSuchComplianceConfiguration',
    'NoSuchKey',
    'NoSuchVersion',
  ],
  differences:
    'Not in S3: the compliance settings of an object. A RetentionTime before the one in effect is AccessDenied.',
  parse: parseVersionAddress,
  access: ({ resource, versionId }) => [['s3:PutObjectCompliance', resource, undefined, { versionId }]],
  parseDocument(body) {
    if (body.length === 0) throw new AppError('MissingRequestBodyError');
    return parseObjectCompliance(body);
  },
  async run(context, { key, versionId }, given) {
    const { retainUntilMs } = given;
    if (retainUntilMs !== undefined) requireNear('RetentionTime', retainUntilMs, context.clock.wallMs());
    const { homeShard, believed } = context.bucket();
    const { value } = await context.metadata.execute(
      { shard: homeShard, bucket: believed },
      'set-protection',
      {
        bucketId: believed.bucketId,
        key,
        ...(versionId !== undefined && { versionId }),
        change: { kind: 'compliance', ...given },
      },
    );
    if (value.kind === 'not-enabled') throw noCompliance(believed.name);
    if (value.kind === 'blocked') {
      const message =
        'Access Denied because the object is protected by compliance: RetentionTime must not be before the retention that its bucket and the object itself have already.';
      throw new AppError('AccessDenied', { message });
    }
    if (value.kind === 'other-version' || value.kind === 'retention-passed')
      throw new AppError('ServiceUnavailable');
    if (value.kind !== 'set') throw await absentVersion(context, { key, versionId }, value);
    return {
      status: 200,
      headers: { 'x-amz-version-id': shownVersionId(value.versioning, value.versionId) },
    };
  },
});
