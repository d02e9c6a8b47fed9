// How a replica speaks to another: what it says, with who says it to whom in front.
import type { NodeId, ReplicaId, ReplicaMessage, ReplicaRef } from '../../ports/replication.ts';

/** What a message says besides who sends it to whom, in which epoch. */
export type Say = (to: ReplicaRef, body: MessageBody) => void;
type HeadField = 'shard' | 'incarnation' | 'epoch' | 'from' | 'to';
export type MessageBody = ReplicaMessage extends infer M
  ? M extends unknown
    ? Omit<M, HeadField>
    : never
  : never;

export function sayAs(
  { shard, send }: { shard: number; send(to: NodeId, message: ReplicaMessage): void },
  { incarnation, replicaId }: { incarnation: number; replicaId: ReplicaId },
  epoch: number,
): Say {
  return (to, body) => {
    const head = { shard, incarnation, epoch, from: replicaId, to: to.replicaId };
    send(to.nodeId, { ...body, ...head } as ReplicaMessage);
  };
}
