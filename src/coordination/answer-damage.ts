// What a metadata node says of its replicas, with whose data is damaged: the engine of shards knows no objects.
import type { ReplicaStatus, ShardCallHandler } from '../ports/shard-calls.ts';
import type { NamedDamage } from '../types/named-damage.ts';

/** `damageOf`: of a shard that is led here. */
export function answerDamage(
  handler: ShardCallHandler,
  damageOf: (shard: number) => NamedDamage | undefined,
): ShardCallHandler {
  return {
    ticket: () => handler.ticket(),
    async handle(call) {
      const reply = await handler.handle(call);
      if (call.kind !== 'status' || reply.kind !== 'done') return reply;
      const value = (reply.value as ReplicaStatus[]).map((status) => {
        const damage = status.role === 'primary' ? damageOf(status.shard) : undefined;
        return damage === undefined ? status : { ...status, damage };
      });
      return { ...reply, value };
    },
  };
}
