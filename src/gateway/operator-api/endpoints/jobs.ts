// Jobs that shards keep, for `holdfast jobs`.
import type { FastifyInstance } from 'fastify';
import { JOB_KINDS, JOB_STATES } from '../../../types/records/job-record.ts';
import { listOf, numberOf, objectOf, oneOf, optional, textOf } from '../../http/json-schemas.ts';
import { type JobReport, readJobs, type ShownJob } from '../job-report.ts';
import type { OperatorContext } from '../operator-context.ts';

const JOB = objectOf<ShownJob>({
  id: textOf(),
  shard: numberOf(),
  kind: oneOf(...JOB_KINDS),
  bucket: textOf('Its name; its id where the name is not known.'),
  state: oneOf(...JOB_STATES),
  detail: textOf('What it is at, or where it leads.'),
  doneCount: numberOf(),
  totalCount: optional(numberOf('Absent where it is not known before the end.')),
  errorCount: numberOf(),
  ageMs: numberOf('By the clock of its shard.'),
  idleMs: numberOf('Since it was driven on last, or since its end.'),
});

const REPORT = objectOf<JobReport>({
  jobs: listOf(JOB, 'Newest first.'),
  leftOutCount: numberOf('Older ones that are not in the list.'),
  missingShards: listOf(numberOf(), 'Shards that did not answer: what they have is not here.'),
});

export async function jobs(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  app.get(
    '/jobs',
    {
      schema: {
        operationId: 'GetJobs',
        summary: 'List the jobs of all shards',
        tags: ['jobs'],
        response: {
          200: { description: 'Those under way, and of those that have ended what is kept.', ...REPORT },
        },
      },
    },
    () => readJobs(context.metadata),
  );
}
