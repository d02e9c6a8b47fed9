// The lifecycle of a bucket, for `holdfast lifecycle`: how its pass stands, and what a set of rules would do.
import type { FastifyInstance } from 'fastify';
import {
  LIFECYCLE_ACTIONS,
  LIFECYCLE_STAGES,
  type LifecycleCounts,
} from '../../../types/records/lifecycle-record.ts';
import {
  booleanOf,
  inputOf,
  listOf,
  mapOf,
  numberOf,
  objectOf,
  oneOf,
  optional,
  textOf,
} from '../../http/json-schemas.ts';
import {
  type LifecyclePreview,
  type LifecycleReport,
  type PreviewAsked,
  type PreviewSum,
  previewLifecycle,
  readLifecycle,
  type ShownItem,
} from '../lifecycle-report.ts';
import type { OperatorContext } from '../operator-context.ts';

const COUNTS = objectOf<LifecycleCounts>({
  examinedCount: numberOf('Versions, delete markers and uploads that were looked at.'),
  keptCount: numberOf('Of them, those that were due and that retention or a hold keeps.'),
  sizeBytes: numberOf('Of versions that went for good.'),
  byAction: mapOf(numberOf()),
});

const TIME = 'ISO 8601.';
const REPORT = objectOf<LifecycleReport>({
  bucket: textOf(),
  enabledRuleCount: numberOf(),
  disabledRuleCount: numberOf(),
  objectCount: numberOf('Of the bucket, all versions.'),
  at: textOf('ISO 8601, by the clock of the shard.'),
  dueAt: optional(
    textOf(
      'When the bucket is looked at next, or when it was due, where that goes on. Absent: nothing is ever due.',
    ),
  ),
  lagMs: numberOf('How long it has been due.'),
  nothingBefore: optional(
    textOf('Nothing is due before, unless something is changed that is there already.'),
  ),
  pass: optional(
    objectOf<NonNullable<LifecycleReport['pass']>>({
      beganAt: textOf(TIME),
      stage: oneOf(...LIFECYCLE_STAGES),
      counts: COUNTS,
    }),
  ),
  last: optional(
    objectOf<NonNullable<LifecycleReport['last']>>({
      beganAt: textOf(TIME),
      endedAt: textOf(TIME),
      counts: COUNTS,
    }),
  ),
});

const ACTION = oneOf(...LIFECYCLE_ACTIONS);
const IS_KEPT = booleanOf('Retention or a hold keeps it.');
const PREVIEW = objectOf<LifecyclePreview>({
  sums: listOf(
    objectOf<PreviewSum>({
      rule: textOf('Its id.'),
      action: ACTION,
      isKept: IS_KEPT,
      count: numberOf(),
      sizeBytes: numberOf('Of versions that would go for good.'),
    }),
    'Of this page: add them up.',
  ),
  examinedCount: numberOf(),
  first: listOf(
    objectOf<ShownItem>({
      rule: textOf(),
      action: ACTION,
      isKept: IS_KEPT,
      key: textOf(),
      versionId: optional(textOf()),
      uploadId: optional(textOf()),
      sizeBytes: numberOf(),
    }),
    'The first of them in this page.',
  ),
  cursor: optional(textOf('Where the next page begins. Absent behind the last one.')),
});

const ASKED = inputOf<PreviewAsked>({
  document: optional(
    textOf(
      'XML as PutBucketLifecycleConfiguration takes it, or JSON as the AWS CLI does; absent: the present rules.',
    ),
  ),
  at: optional(textOf('ISO 8601: what would be due then; absent: now.')),
  cursor: optional(textOf('Of the page before; absent: from the beginning.')),
});

const TAGS = ['lifecycle'];
const BUCKET_PARAMETER = {
  type: 'object',
  properties: { bucket: textOf('Its name.') },
  required: ['bucket'],
} as const;

interface OfBucket {
  Params: { bucket: string };
}

export async function lifecycle(
  app: FastifyInstance,
  { context: { metadata, lifecycleDayMs: dayMs } }: { context: OperatorContext },
): Promise<void> {
  app.get<OfBucket>(
    '/buckets/:bucket/lifecycle',
    {
      schema: {
        operationId: 'GetBucketLifecycleStatus',
        summary: 'See how the lifecycle of a bucket stands',
        tags: TAGS,
        params: BUCKET_PARAMETER,
        response: { 200: { description: 'How it stands.', ...REPORT } },
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    ({ params }) => readLifecycle(metadata, params.bucket),
  );
  app.post<OfBucket & { Body: PreviewAsked }>(
    '/buckets/:bucket/lifecycle/preview',
    {
      schema: {
        operationId: 'PreviewBucketLifecycle',
        summary: 'See what lifecycle rules would do in a bucket, without doing it',
        tags: TAGS,
        params: BUCKET_PARAMETER,
        body: ASKED,
        response: { 200: { description: 'A page.', ...PREVIEW } },
      },
      config: {
        errors: [
          'InvalidArgument',
          'InvalidRequest',
          'InvalidTag',
          'MalformedXML',
          'NoSuchEntity',
          'NoSuchLifecycleConfiguration',
          'NotImplemented',
          'ServiceUnavailable',
        ],
      },
    },
    ({ params, body }) => previewLifecycle(metadata, params.bucket, { ...body, dayMs }),
  );
}
