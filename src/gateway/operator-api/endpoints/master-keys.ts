// The master keys: how a rotation stands, and beginning one.
import type { FastifyInstance } from 'fastify';
import type { RotationProgress } from '../../../metadata/master-keys/rotate-keys.ts';
import { booleanOf, listOf, named, numberOf, objectOf, textOf } from '../../http/json-schemas.ts';
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
        summary: 'Make a new master key, and begin to wrap all keys by it',
        tags,
        response: { 202: progress },
      },
      config: { errors: ['OperationAborted', 'NotImplemented'] },
    },
    async (_request, reply) => {
      await rotation.begin();
      wakeRotation();
      return reply.code(202).send(await rotation.progress());
    },
  );
}
