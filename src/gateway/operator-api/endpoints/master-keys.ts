// The master keys: how a rotation stands, beginning one, and ending the use of older keys.
import type { FastifyInstance } from 'fastify';
import type { RotationProgress } from '../../../metadata/master-keys/rotate-keys.ts';
import { booleanOf, listOf, named, numberOf, objectOf, optional, textOf } from '../../http/json-schemas.ts';
import type { OperatorContext } from '../operator-context.ts';

export const KEY_ROTATION = objectOf<RotationProgress>({
  activeKeyId: textOf(),
  olderKeyIds: listOf(
    textOf(),
    'Master keys that stored keys may still be wrapped by. Empty: no rotation is under way.',
  ),
  shardsDone: numberOf('Of the pass that is under way.'),
  shardCount: numberOf(),
  rewrappedCount: numberOf('Keys wrapped anew since the rotation began, or since the process started.'),
  isWaitingForRequests: booleanOf('Requests hold up the removal of older keys, because they began before.'),
  isUnused: optional(
    booleanOf('Of a cluster: no stored key needs the older keys any more, and they may be removed.'),
  ),
  newKeyIds: optional(listOf(textOf(), 'Of a cluster: in the files of gateways, and not used yet.')),
  lacking: optional(
    listOf(
      objectOf<NonNullable<RotationProgress['lacking']>[number]>({
        gateway: textOf('Its address, where it is in the list of members.'),
        keyIds: listOf(textOf()),
      }),
      'Of a cluster: gateways that lack one of all these keys.',
    ),
  ),
});

export async function masterKeys(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  const { rotation, wakeRotation } = context;
  const tags = ['master keys'];
  const progress = { description: 'How the rotation stands.', ...named('KeyRotation') };
  app.get(
    '/keys',
    {
      schema: {
        operationId: 'GetKeys',
        summary: 'Look at the master keys',
        tags,
        response: { 200: progress },
      },
    },
    async () => rotation.progress(),
  );
  app.post(
    '/keys/rotate',
    {
      schema: {
        operationId: 'RotateKeys',
        summary:
          'Make a new master key, of a cluster take the one that all gateways have, and begin to wrap all keys by it',
        tags,
        response: { 202: progress },
      },
      config: { errors: ['OperationAborted'] },
    },
    async (_request, reply) => {
      await rotation.begin();
      wakeRotation();
      return reply.code(202).send(await rotation.progress());
    },
  );
  app.delete<{ Params: { keyId: string } }>(
    '/keys/:keyId',
    {
      schema: {
        operationId: 'RemoveKey',
        summary:
          'Take an older master key of a cluster that nothing needs any more out of use, and out of the files of its gateways',
        tags,
        params: objectOf<{ keyId: string }>({ keyId: textOf('One of `olderKeyIds`.') }),
        response: { 200: progress },
      },
      config: { errors: ['OperationAborted', 'NoSuchEntity'] },
    },
    async ({ params }) => {
      await rotation.remove(params.keyId);
      return rotation.progress();
    },
  );
}
