// Holds back the answers of commands that revoke rights until gateways know of the change (R46). It stands before the
// metadata node's own handler, and treats calls to the system shard only.

import type { Revocation } from '../ports/metadata/accounts.ts';
import type { QueryOf, ResultOf } from '../ports/metadata/port.ts';
import { SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { ShardCall, ShardCallHandler, ShardReply } from '../ports/shard-calls.ts';
import type { RevocationWait } from './revocation-wait.ts';

export function delayRevocations(handler: ShardCallHandler, wait: RevocationWait): ShardCallHandler {
  async function answerQuestion(call: ShardCall): Promise<ShardReply> {
    const { gateway, since } = call.body as QueryOf<'identity-changes'>;
    wait.hasAsked(gateway);
    const reply = await handler.handle(call);
    if (reply.kind !== 'done' || since === undefined) return reply;
    const { kind } = reply.value as ResultOf<'identity-changes'>;
    if (kind === 'changes') wait.hasApplied(gateway, since.seq);
    return reply;
  }

  /**
   * Whether this node may still answer, as for a read (R10): another primary may have answered something newer meanwhile
   * (I3).
   */
  async function mayAnswer({ envelope: { shard }, budgetMs }: ShardCall): Promise<boolean> {
    const ticket = handler.ticket();
    const query = { kind: 'query', envelope: { shard }, name: 'get-history', body: {} } as const;
    const { kind } = await handler.handle({ ...query, ticket, budgetMs });
    return kind === 'done';
  }

  return {
    ticket: () => handler.ticket(),
    async handle(call) {
      if (call.envelope.shard !== SYSTEM_SHARD) return handler.handle(call);
      if (call.name === 'identity-changes') return answerQuestion(call);
      const reply = await handler.handle(call);
      if (call.kind !== 'execute' || reply.kind !== 'done') return reply;
      const { revokedSeq } = reply.value as Revocation;
      if (revokedSeq === undefined) return reply;
      await wait.untilApplied(revokedSeq);
      return (await mayAnswer(call)) ? reply : { kind: 'unknown' };
    },
  };
}
