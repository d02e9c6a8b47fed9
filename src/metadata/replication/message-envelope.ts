// Adds sender, recipient and epoch to a replica's messages.
import type { NodeId, ReplicaId, ReplicaMessage, ReplicaRef } from '../../ports/replication.ts';

/** What a message says besides who sends it to whom, in which epoch. */
export type Send = (to: ReplicaRef, body: MessageBody) => void;
type HeadField = 'shard' | 'incarnation' | 'epoch' | 'from' | 'to';
export type MessageBody = ReplicaMessage extends infer M
  ? M extends unknown
    ? Omit<M, HeadField>
    : never
  : never;

export function sendAs(
  { shard, send }: { shard: number; send(to: NodeId, message: ReplicaMessage): void },
  { incarnation, replicaId }: { incarnation: number; replicaId: ReplicaId },
  epoch: number,
): Send {
  return (to, body) => {
    const head = { shard, incarnation, epoch, from: replicaId, to: to.replicaId };
    send(to.nodeId, { ...body, ...head } as ReplicaMessage);
  };
}
