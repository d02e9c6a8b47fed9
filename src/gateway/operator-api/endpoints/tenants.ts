// Sub-accounts and members for operators: the calls of /api/v1 themselves (src/gateway/management-api), by an operator's signature
// instead of an API key. Their answers are the same envelopes, errors are those of the operator API.
import type { FastifyInstance } from 'fastify';
import { members } from '../../management-api/endpoints/members.ts';
import { subAccounts } from '../../management-api/endpoints/sub-accounts.ts';
import type { OperatorContext } from '../operator-context.ts';

export async function tenants(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  app.addHook('onRoute', (route) => {
    // As there: queries have numbers, and what is not known is ignored.
    route.config = { ...route.config, isLenient: true };
  });
  await app.register(subAccounts, { context });
  await app.register(members, { context });
}
