// How the server is doing, for `holdfast status`.
import type { FastifyInstance } from 'fastify';
import type { NamedDamage } from '../../../types/named-damage.ts';
import { listOf, named, numberOf, objectOf, oneOf, optional, textOf } from '../../http/json-schemas.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { StatusReport } from '../status-report.ts';

const DAMAGE = {
  description: 'Of a single node: whose data is damaged or missing, the first ones. Absent: none is.',
  ...objectOf<NamedDamage>({
    objects: listOf(
      objectOf<NamedDamage['objects'][number]>({
        bucket: optional(textOf()),
        key: optional(textOf()),
        version: optional(textOf()),
        upload: optional(textOf('Of a part of an open upload.')),
        part: optional(numberOf()),
        blob: textOf('Which of its data.'),
      }),
      'What has to be uploaded again; `holdfast fsck --read-data` names all.',
    ),
    unnamed: listOf(
      objectOf<NamedDamage['unnamed'][number]>({
        blob: textOf(),
        why: oneOf('looked-for', 'not-used', 'shard-silent'),
      }),
    ),
    blobCount: numberOf('All that are known.'),
  }),
};

const REPORT = objectOf<StatusReport>({
  version: textOf(),
  endpoint: textOf('As clients on the machine of the server reach it.'),
  startedAt: textOf('ISO 8601.'),
  uptimeMs: numberOf(),
  accountCount: numberOf(),
  bucketCount: numberOf(),
  objectCount: numberOf(),
  objectBytes: numberOf('As clients see them, before encryption.'),
  chunkCount: numberOf(),
  chunkBytes: numberOf(),
  pendingReclaimBytes: numberOf('Deleted, but not yet given back to the file system.'),
  diskFreeBytes: numberOf(),
  diskTotalBytes: numberOf(),
  largeWrites: optional(oneOf('direct', 'buffered')),
  diskFullBelowBytes: optional(numberOf('Of a single node: with less room it takes no new chunks.')),
  diskScarceBelowBytes: optional(numberOf('Of a single node: with less room it will soon be full.')),
  damagedChunkCount: optional(
    numberOf('Of a single node: chunks of live data that are known to be damaged.'),
  ),
  missingChunkCount: optional(
    numberOf('Of a single node: chunks of live data that are known to be missing.'),
  ),
  damage: optional(DAMAGE),
  alarms: optional(listOf(textOf(), 'Of a single node: what is wrong, in sentences. Empty: nothing is.')),
  clockJumpMs: numberOf('How far the clock has jumped at a start, and waits for its acceptance; else 0.'),
  keys: named('KeyRotation'),
  lastErrors: listOf(
    objectOf<StatusReport['lastErrors'][number]>({
      at: textOf('When it came last, ISO 8601.'),
      event: textOf(),
      message: textOf(),
      count: numberOf(),
    }),
    'Newest first; each once.',
  ),
});

export async function status(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  app.get(
    '/status',
    {
      schema: {
        operationId: 'GetStatus',
        summary: 'Look at how the server is doing',
        tags: ['status'],
        response: {
          200: { description: 'The state of the process that answers, and what it knows of all.', ...REPORT },
        },
      },
    },
    () => context.readStatus(),
  );
}
