// Holds back the answers of commands that revoke rights until gateways know of the change (R46): for some seconds on the
// metadata node, before its own handler, and for the rest, where a gateway cannot be reached, on the gateway that gave the
// command. Calls to the system shard only.

import type { ClockPort } from '../ports/clock.ts';
import type { Revocation } from '../ports/metadata/accounts.ts';
import type { MetadataPort, QueryOf, ResultOf } from '../ports/metadata/port.ts';
import { SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { ShardCall, ShardCallHandler, ShardReply } from '../ports/shard-calls.ts';
import type { RevocationWait } from './revocation-wait.ts';

export function delayRevocations(handler: ShardCallHandler, wait: RevocationWait): ShardCallHandler {
  async function answerQuestion(call: ShardCall): Promise<ShardReply> {
    const { gateway, since, held } = call.body as QueryOf<'identity-changes'>;
    wait.hasAsked(gateway, held);
    const reply = await handler.handle(call);
    if (reply.kind !== 'done' || since === undefined) return reply;
    const { kind } = reply.value as ResultOf<'identity-changes'>;
    if (kind === 'changes') wait.hasApplied(gateway, since.seq);
    return reply;
  }

  async function answerHolders(call: ShardCall): Promise<ShardReply> {
    const reply = await handler.handle(call);
    return reply.kind === 'done'
      ? { ...reply, value: { ...(reply.value as object), ...wait.holders() } }
      : reply;
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
      if (call.name === 'get-master-keys') return answerHolders(call);
      const reply = await handler.handle(call);
      if (call.kind !== 'execute' || reply.kind !== 'done') return reply;
      const { revokedSeq } = reply.value as Revocation;
      if (revokedSeq === undefined) return reply;
      const settlesInMs = await wait.untilApplied(revokedSeq);
      if (!(await mayAnswer(call))) return { kind: 'unknown' };
      if (settlesInMs <= 0) return reply;
      return { ...reply, value: { ...(reply.value as object), settlesInMs } };
    },
  };
}

/** The metadata port of a gateway, whose commands are answered when nobody can use any more what they have revoked (I14). */
export function awaitRevocations(metadata: MetadataPort, clock: Pick<ClockPort, 'sleep'>): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      const reply = await metadata.execute(envelope, name, command);
      if (envelope.shard !== SYSTEM_SHARD || reply.kind !== 'done') return reply;
      const { settlesInMs } = reply.value as Revocation;
      if (settlesInMs !== undefined) await clock.sleep(settlesInMs);
      return reply;
    },
  };
}
