// Calls of a metadata node to itself go straight to it: the background work of a shard runs where it is led.
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
