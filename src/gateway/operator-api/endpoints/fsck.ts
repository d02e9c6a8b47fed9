// The full comparison of all that is stored: beginning one, looking at it, ending it early.
import type { FastifyInstance } from 'fastify';
import type { FsckReport } from '../../../fsck/fsck.ts';
import type { FsckOptions } from '../../../fsck/run.ts';
import type { Finding, Pending } from '../../../types/findings.ts';
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
import { NO_CONTENT, type OperatorContext } from '../operator-context.ts';

/** Fifteen digits are a safe integer. */
const WHOLE = { type: 'string', pattern: '^\\d{1,15}$' };
const ID = { ...WHOLE, description: 'Number of the comparison.' };
const FROM = { ...WHOLE, description: 'Number of the first finding to tell; 0: from the beginning.' };

const FINDING = objectOf<Finding>({
  kind: textOf('What is wrong (docs/fsck.md).'),
  shard: optional(numberOf()),
  table: optional(textOf()),
  bucket: optional(textOf('Its name; its id where it has none.')),
  key: optional(textOf()),
  version: optional(textOf()),
  upload: optional(textOf()),
  part: optional(numberOf()),
  manifest: optional(textOf()),
  page: optional(numberOf()),
  blob: optional(textOf()),
  link: optional(textOf()),
  chunk: optional(numberOf()),
  account: optional(textOf()),
  note: optional(textOf('What was expected and what is there, or the key of the row in hex.')),
});

const REPORT = objectOf<FsckReport>({
  id: numberOf(),
  state: oneOf('running', 'done', 'cancelled', 'failed'),
  readData: booleanOf('Data is read whole.'),
  tookMs: numberOf(),
  progress: objectOf<FsckReport['progress']>({
    stage: textOf('What is being compared, for people.'),
    rowCount: numberOf(),
    chunkCount: numberOf(),
    bodyCount: numberOf(),
    readBytes: numberOf('Of chunks that were read.'),
  }),
  counts: { ...mapOf(numberOf()), description: 'How many of each kind were found.' },
  findings: listOf(FINDING, 'A page of them.'),
  pending: listOf(
    objectOf<Pending>({
      kind: textOf(),
      count: numberOf(),
      oldestAtMs: numberOf('Time of the oldest, ms since 1970.'),
    }),
    'Work on its way, once all is compared.',
  ),
  problem: optional(textOf('Why it failed.')),
});

const OPTIONS = inputOf<Partial<FsckOptions>>({
  readData: optional(booleanOf('Read all data whole. Absent: no.')),
  fullSpeed: optional(booleanOf('Leave no room to requests. Absent: no.')),
});

export async function fsck(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  const tags = ['fsck'];
  const absent = 'There is no such comparison.';
  app.post<{ Body: Partial<FsckOptions> }>(
    '/fsck',
    {
      schema: {
        operationId: 'BeginFsck',
        summary: 'Begin to compare all that is stored',
        tags,
        body: OPTIONS,
        response: { 202: { description: 'It has begun.', ...objectOf<{ id: number }>({ id: numberOf() }) } },
      },
      config: { errors: ['OperationAborted'] },
    },
    async ({ body: { readData = false, fullSpeed = false } }, reply) =>
      reply.code(202).send({ id: await context.fsck.begin({ readData, fullSpeed }) }),
  );
  app.get<{ Params: { id: string; from: string } }>(
    '/fsck/:id/:from',
    {
      schema: {
        operationId: 'GetFsck',
        summary: 'Look at a comparison, and at a page of its findings',
        tags,
        params: { type: 'object', properties: { id: ID, from: FROM }, required: ['id', 'from'] },
        response: { 200: { description: 'How it stands.', ...REPORT } },
      },
      config: { errors: ['NoSuchEntity'], absent },
    },
    async ({ params }) => context.fsck.look(Number(params.id), Number(params.from)),
  );
  app.delete<{ Params: { id: string } }>(
    '/fsck/:id',
    {
      schema: {
        operationId: 'CancelFsck',
        summary: 'End a comparison early',
        tags,
        params: { type: 'object', properties: { id: ID }, required: ['id'] },
        response: { 204: NO_CONTENT },
      },
      config: { errors: ['NoSuchEntity'], absent },
    },
    async ({ params }, reply) => {
      await context.fsck.cancel(Number(params.id));
      return reply.code(204).send();
    },
  );
}
