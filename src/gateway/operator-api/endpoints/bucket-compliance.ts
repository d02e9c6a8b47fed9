// Compliance settings of buckets, for `holdfast bucket`: what they are, and the end of their lock.
import type { FastifyInstance } from 'fastify';
import { booleanOf, inputOf, listOf, numberOf, objectOf, optional, textOf } from '../../http/json-schemas.ts';
import { readBucketCompliance, type ShownCompliance, unlockBucketCompliance } from '../bucket-compliance.ts';
import { BUCKET_PARAMETER, type OfBucket } from '../find-bucket.ts';
import type { OperatorCaller, OperatorContext } from '../operator-context.ts';

const REASON_CHARACTERS_MAX = 500;

const COMPLIANCE = objectOf<ShownCompliance>({
  bucket: textOf(),
  isEnabled: booleanOf('Whether compliance protects the objects of the bucket.'),
  lockTime: optional(textOf('ISO 8601: from then on nothing is reduced. Absent: off.')),
  isLocked: booleanOf(),
  retentionDays: numberOf(),
  conditionalHold: booleanOf('New objects are put on hold.'),
  deleteAfterRetention: booleanOf('Objects are deleted by the server once they may go.'),
  unlocks: listOf(
    objectOf<ShownCompliance['unlocks'][number]>({
      at: textOf('ISO 8601, by the clock of the shard.'),
      by: textOf('ARN of who asked for it.'),
      reason: textOf(),
    }),
    'When the lock was ended, oldest first: the last 100.',
  ),
});

const OF_BUCKET = {
  tags: ['compliance'],
  params: BUCKET_PARAMETER,
  response: { 200: { description: 'The settings, and when their lock was ended.', ...COMPLIANCE } },
};

export async function bucketCompliance(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  app.get<OfBucket>(
    '/buckets/:bucket/compliance',
    {
      schema: {
        operationId: 'GetBucketCompliance',
        summary: 'See the compliance settings of a bucket',
        ...OF_BUCKET,
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    ({ params }) => readBucketCompliance(context.metadata, params.bucket),
  );
  app.post<OfBucket & { Body: { reason: string } }>(
    '/buckets/:bucket/compliance/unlock',
    {
      schema: {
        operationId: 'UnlockBucketCompliance',
        summary: 'End the lock of the compliance settings of a bucket',
        ...OF_BUCKET,
        body: inputOf<{ reason: string }>({
          reason: {
            type: 'string',
            pattern: '\\S',
            maxLength: REASON_CHARACTERS_MAX,
            description: `For the record: up to ${REASON_CHARACTERS_MAX} characters, and not only blanks.`,
          },
        }),
      },
      config: { errors: ['InvalidBucketState', 'NoSuchEntity', 'ServiceUnavailable'] },
    },
    (request) => {
      const { arn: by } = request.getDecorator<OperatorCaller>('caller').asker.principal;
      return unlockBucketCompliance(context, request.params.bucket, { by, reason: request.body.reason });
    },
  );
}
