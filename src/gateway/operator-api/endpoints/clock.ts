// The operator's word on a clock that has jumped (protocol R19).
import type { FastifyInstance } from 'fastify';
import { AppError } from '../../../types/errors.ts';
import { inputOf, numberOf, objectOf } from '../../http/json-schemas.ts';
import type { OperatorContext } from '../operator-context.ts';

export async function clock(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  const { timeJumps } = context;
  app.get(
    '/clock',
    {
      schema: {
        operationId: 'GetClock',
        summary: 'See how far the clock has jumped',
        tags: ['clock'],
        response: {
          200: {
            description: 'What waits for the word of the operator.',
            ...objectOf<{ jumpMs: number }>({ jumpMs: numberOf('0: there is no jump.') }),
          },
        },
      },
    },
    async () => ({ jumpMs: await timeJumps.unacceptedMs() }),
  );
  app.post<{ Body: { jumpMs: number } }>(
    '/clock/accept',
    {
      schema: {
        operationId: 'AcceptClock',
        summary: 'Say that the clock is right after it has jumped',
        tags: ['clock'],
        body: inputOf<{ jumpMs: number }>({
          jumpMs: {
            type: 'integer',
            minimum: 0,
            description: 'The jump that was shown, or more: one that is larger by now is not accepted.',
          },
        }),
        response: {
          200: {
            description: 'What was accepted.',
            ...objectOf<{ acceptedJumpMs: number }>({ acceptedJumpMs: numberOf('0: there was no jump.') }),
          },
        },
      },
      config: { errors: ['OperationAborted'] },
    },
    async ({ body }) => {
      const { acceptedMs: acceptedJumpMs, grownMs } = await timeJumps.accept(body.jumpMs);
      if (grownMs === 0) return { acceptedJumpMs };
      throw new AppError('OperationAborted', {
        message: `The clock has jumped by ${grownMs} ms by now, which is more than what is to be accepted.`,
      });
    },
  );
}
