// The calls of gateways to a metadata node, with the answers of commands that take rights away held back until gateways
// have heard of it (R46). It stands before the node's own handler, and looks at the system shard's calls alone.
import type { QueryOf, ResultOf } from '../ports/metadata.ts';
import { SYSTEM_SHARD } from '../ports/metadata.ts';
import type { Revocation } from '../ports/metadata-commands.ts';
import type { ShardCall, ShardCallHandler, ShardReply } from '../ports/shard-calls.ts';
import type { RevocationWait } from './revocation-wait.ts';

export function delayRevocations(handler: ShardCallHandler, wait: RevocationWait): ShardCallHandler {
  async function answerQuestion(call: ShardCall): Promise<ShardReply> {
    const { gateway, since } = call.body as QueryOf<'identity-changes'>;
    wait.hears(gateway);
    const reply = await handler.handle(call);
    if (reply.kind !== 'done' || since === undefined) return reply;
    const { kind } = reply.value as ResultOf<'identity-changes'>;
    if (kind === 'changes') wait.hasDigested(gateway, since.seq);
    return reply;
  }

  /** As a read may be told now (R10): another may have led meanwhile, and have answered what is not so any more (I3). */
  async function mayTell({ envelope: { shard }, budgetMs }: ShardCall): Promise<boolean> {
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
      await wait.settle(revokedSeq);
      return (await mayTell(call)) ? reply : { kind: 'unknown' };
    },
  };
}
