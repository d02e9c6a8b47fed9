// Routes a metadata node's calls to itself directly: the background work of a shard runs where its primary is.
import type { NodeId } from '../ports/replication.ts';
import type { ShardCallHandler, ShardCallPort } from '../ports/shard-calls.ts';

export function callOwnNode(parts: {
  nodeId: NodeId;
  handler: ShardCallHandler;
  others: ShardCallPort;
}): ShardCallPort {
  const { nodeId, handler, others } = parts;
  return {
    call(to, call, signal) {
      if (to !== nodeId) return others.call(to, call, signal);
      return handler.handle({ ...call, ticket: handler.ticket() });
    },
  };
}
