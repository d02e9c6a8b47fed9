// Events of buckets, for `holdfast events`: whether they are recorded, and what has happened.
import type { FastifyInstance } from 'fastify';
import { EVENT_TYPES } from '../../../types/events.ts';
import {
  booleanOf,
  inputOf,
  listOf,
  numberOf,
  objectOf,
  oneOf,
  optional,
  textOf,
} from '../../http/json-schemas.ts';
import {
  type BucketEvents,
  type EventPage,
  readBucketEvents,
  readEvents,
  type ShownEvent,
  setBucketEvents,
  takeEvents,
} from '../event-feed.ts';
import { BUCKET_PARAMETER, type OfBucket } from '../find-bucket.ts';
import { NO_CONTENT, type OperatorContext } from '../operator-context.ts';

const EVENT = objectOf<ShownEvent>({
  type: oneOf(...EVENT_TYPES),
  at: textOf('ISO 8601, by the clock of the shard.'),
  bucket: optional(textOf('The name that the bucket had. Absent for what is of an account.')),
  bucketId: optional(textOf('Stays the same when the bucket is renamed.')),
  key: optional(textOf('Absent for what is of no object.')),
  ofAccount: optional(textOf('Id of the account that it is of.')),
  versionId: optional(textOf('Absent where the bucket never kept versions.')),
  sizeBytes: optional(numberOf('Of the version that came or went. Absent for delete markers and tags.')),
  etag: optional(textOf()),
  otherKey: optional(
    textOf('Of a rename, which is two events: the key that the object had before, or has now.'),
  ),
  requestId: optional(textOf('As in the header x-amz-request-id. Absent for work of the server itself.')),
  account: optional(textOf('Id of who asked for it. Absent for anonymous requests.')),
  address: optional(textOf('Of the client.')),
  shard: numberOf(),
  seq: numberOf('Number among the events of the shard. Nothing is missing between two that follow.'),
});

const PAGE = objectOf<EventPage>({
  events: listOf(EVENT, 'By time; those of one shard in the order in which they happened.'),
  cursor: textOf('Where the next page begins.'),
  hasMore: booleanOf('There may be more at once.'),
  lostCount: numberOf('Events of all buckets that were too many to be kept until they were read.'),
  missingShards: listOf(numberOf(), 'Shards that did not answer: what they have comes later.'),
});

interface Asked {
  bucket?: string;
  cursor?: string;
}

const ASKED = inputOf<Asked>({
  bucket: optional(textOf('Name of a bucket; absent: events of all buckets.')),
  cursor: optional(textOf('Of the page before; absent: from the oldest that is kept.')),
});

const BUCKET_EVENTS = objectOf<BucketEvents>({ bucket: textOf(), isRecorded: booleanOf() });

const TAGS = ['events'];
const OF_BUCKET = {
  tags: TAGS,
  params: BUCKET_PARAMETER,
  response: { 200: { description: 'Whether events of the bucket are recorded.', ...BUCKET_EVENTS } },
};

export async function events(
  app: FastifyInstance,
  { context: { metadata } }: { context: OperatorContext },
): Promise<void> {
  app.post<{ Body: Asked }>(
    '/events',
    {
      schema: {
        operationId: 'ReadEvents',
        summary: 'Read what has happened in buckets whose events are recorded',
        tags: TAGS,
        body: ASKED,
        response: { 200: { description: 'A page.', ...PAGE } },
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    ({ body }) => readEvents(metadata, body),
  );
  app.post<{ Body: { cursor: string } }>(
    '/events/take',
    {
      schema: {
        operationId: 'TakeEvents',
        summary: 'Forget the events before a cursor, for all who read them',
        tags: TAGS,
        body: inputOf<{ cursor: string }>({ cursor: textOf('Of a page that was read.') }),
        response: { 204: NO_CONTENT },
      },
      config: { errors: ['ServiceUnavailable'] },
    },
    async ({ body }, reply) => {
      await takeEvents(metadata, body.cursor);
      return reply.code(204).send();
    },
  );
  app.get<OfBucket>(
    '/buckets/:bucket/events',
    {
      schema: {
        operationId: 'GetBucketEvents',
        summary: 'See whether events of a bucket are recorded',
        ...OF_BUCKET,
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    ({ params }) => readBucketEvents(metadata, params.bucket),
  );
  app.put<OfBucket & { Body: { isRecorded: boolean } }>(
    '/buckets/:bucket/events',
    {
      schema: {
        operationId: 'SetBucketEvents',
        summary: 'Record events of a bucket, or record them no more',
        ...OF_BUCKET,
        body: inputOf<{ isRecorded: boolean }>({ isRecorded: booleanOf() }),
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    ({ params, body }) => setBucketEvents(metadata, params.bucket, body.isRecorded),
  );
}
