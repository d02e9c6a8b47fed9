// What compositions alone keep, for `holdfast composed`: a page, from a shard's beginning or behind a blob.
import type { FastifyInstance } from 'fastify';
import {
  type ComposedPlace,
  type ComposedReport,
  readComposed,
} from '../../../metadata/blobs/read-composed.ts';
import type { BlobId } from '../../../types/names.ts';
import { listOf, named, numberOf, objectOf, optional, textOf } from '../../http/json-schemas.ts';
import type { OperatorContext } from '../operator-context.ts';

const SHARD = { type: 'string', pattern: '^\\d{1,5}$', description: 'Number of a shard.' };
const BLOB = { type: 'string', pattern: '^[0-9a-f]{32}$', description: 'Id of a blob.' };

export const COMPOSITIONS = objectOf<ComposedReport>({
  buckets: listOf(
    objectOf<ComposedReport['buckets'][number]>({
      bucketId: textOf(),
      name: textOf('Its id where it is open no more.'),
      sizeBytes: numberOf(),
      blobCount: numberOf(),
    }),
    'In a page a bucket is there once, in several pages as often: add them up.',
  ),
  missingShard: optional(numberOf('This shard does not answer: the page is to be asked for again.')),
  next: optional({
    ...objectOf<ComposedPlace>({ shard: numberOf(), after: optional(textOf()) }),
    description: 'Where the next page begins. Absent behind the last one.',
  }),
});

export async function compositions(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  const shared = {
    tags: ['compositions'],
    response: { 200: { description: 'A page.', ...named('Compositions') } },
  };
  const config = { errors: ['NoSuchEntity'], absent: 'There is no such page.' } as const;
  app.get<{ Params: { shard: string } }>(
    '/composed/:shard',
    {
      schema: {
        operationId: 'GetComposed',
        summary: 'Count data that compositions alone keep',
        ...shared,
        params: { type: 'object', properties: { shard: SHARD }, required: ['shard'] },
      },
      config,
    },
    ({ params }) => readComposed(context.metadata, { shard: Number(params.shard) }),
  );
  app.get<{ Params: { shard: string; after: BlobId } }>(
    '/composed/:shard/:after',
    {
      schema: {
        operationId: 'GetComposedBehind',
        summary: 'Go on counting behind a blob',
        ...shared,
        params: { type: 'object', properties: { shard: SHARD, after: BLOB }, required: ['shard', 'after'] },
      },
      config,
    },
    ({ params }) => readComposed(context.metadata, { shard: Number(params.shard), after: params.after }),
  );
}
