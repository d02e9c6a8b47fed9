// Replica messages between nodes of one process, for tests: through bytes, so that only plain data crosses, and a turn of
// the event loop later, as over a network that loses nothing. What is under way to a node that leaves is lost with it.
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { NodeId, PeerPort, ReplicaMessage } from '../../ports/replication.ts';
import { LIMITS } from '../../types/limits.ts';

export interface MemoryPeers {
  /** The port of one node; of two with one id the later one receives. */
  join(node: NodeId): MemoryPeer;
  /** Frames handed over so far. */
  frameCount(): number;
}

export interface MemoryPeer extends PeerPort {
  leave(): void;
}

type Listener = (from: NodeId, message: ReplicaMessage) => void;

export function createMemoryPeers(): MemoryPeers {
  const listeners = new Map<NodeId, { listener?: Listener }>();
  let frameCount = 0;

  function handOver(from: NodeId, to: NodeId, payloads: readonly Uint8Array[]): void {
    const there = listeners.get(to);
    if (there === undefined) return;
    frameCount++;
    for (const payload of payloads) there.listener?.(from, unpackPlain(payload) as ReplicaMessage);
  }

  function join(node: NodeId): MemoryPeer {
    const here: { listener?: Listener } = {};
    listeners.set(node, here);
    const frames = new Map<NodeId, { payloads: Uint8Array[]; bytes: number }>();

    function flush(to: NodeId): void {
      const frame = frames.get(to);
      frames.delete(to);
      if (frame !== undefined && listeners.get(node) === here) handOver(node, to, frame.payloads);
    }

    return {
      send(to, message) {
        const payload = packPlain(message);
        if (!listeners.has(to) || payload.length > LIMITS.rpcMessageBytesMax) return;
        const frame = frames.get(to) ?? { payloads: [], bytes: 0 };
        if (frame.bytes > 0 && frame.bytes + payload.length > LIMITS.peerQueueBytesMax) return;
        if (!frames.has(to)) {
          frames.set(to, frame);
          setImmediate(flush, to);
        }
        frame.payloads.push(payload);
        frame.bytes += payload.length;
      },
      listen(onMessage) {
        here.listener = onMessage;
      },
      leave() {
        if (listeners.get(node) === here) listeners.delete(node);
      },
    };
  }

  return { join, frameCount: () => frameCount };
}
