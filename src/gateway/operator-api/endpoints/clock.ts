// The operator's word on a clock that has jumped (protocol R19).
import type { FastifyInstance } from 'fastify';
import { numberOf, objectOf } from '../../http/json-schemas.ts';
import type { OperatorContext } from '../operator-context.ts';

export async function clock(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  const { timeJumps } = context;
  app.post(
    '/clock/accept',
    {
      schema: {
        operationId: 'AcceptClock',
        summary: 'Say that the clock is right after it has jumped',
        tags: ['clock'],
        response: {
          200: {
            description: 'What was accepted.',
            ...objectOf<{ acceptedJumpMs: number }>({ acceptedJumpMs: numberOf('0: there was no jump.') }),
          },
        },
      },
    },
    async () => {
      const acceptedJumpMs = await timeJumps.unacceptedMs();
      await timeJumps.accept();
      return { acceptedJumpMs };
    },
  );
}
