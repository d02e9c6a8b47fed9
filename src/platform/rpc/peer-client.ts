// Sends what replicas say to those on other nodes: one stream to each node, the messages of a turn in one frame (R20).
// Nothing waits and nothing is kept for later: replicas repeat what matters. The receiving half is peer-server.ts.
import { packPlain } from '../../base/record-codec.ts';
import type { NodeId, ReplicaMessage } from '../../ports/replication.ts';
import type { TelemetryPort } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { createFrameSender, type FrameSender, type WriteFrame } from './frame-sender.ts';
import { createNodeLink, type LinkDeps, type NodeLink } from './node-link.ts';
import { type MessageFrame, REPLICATE, RPC_VERSION, type Silence } from './wire.ts';

export interface PeerClientDeps extends LinkDeps {
  telemetry: TelemetryPort;
}

export interface PeerClient {
  /** As PeerPort's. */
  send(to: NodeId, message: ReplicaMessage): void;
  close(): void;
}

interface Peer {
  link: NodeLink;
  /** Of the stream that is open or being opened. */
  sender: FrameSender;
}

export function createPeerClient(deps: PeerClientDeps): PeerClient {
  const { telemetry, log } = deps;
  const peers = new Map<NodeId, Peer>();
  let isClosed = false;
  let messageCount = 0;
  const newSender = () => createFrameSender({ queueBytesMax: LIMITS.peerQueueBytesMax });

  function peerOf(node: NodeId): Peer {
    const known = peers.get(node);
    if (known !== undefined) return known;
    const link = createNodeLink<MessageFrame, Silence>({ node, method: REPLICATE }, deps, {
      onOpen(stream) {
        const write: WriteFrame = ({ payloads }, onTaken) => {
          telemetry.count('holdfast_rpc_frames_total', { kind: 'messages' });
          stream.write({ version: RPC_VERSION, payloads }, onTaken);
        };
        peer.sender.attach(write);
      },
      onFrame: () => undefined,
      onDown() {
        // What had gathered would come too late to be of use.
        peer.sender.close();
        peer.sender = newSender();
      },
    });
    const peer: Peer = { link, sender: newSender() };
    peers.set(node, peer);
    return peer;
  }

  /** Why not, when it was not taken. */
  function give(peer: Peer, to: NodeId, message: ReplicaMessage): string | undefined {
    const payload = packPlain(message);
    if (payload.length > LIMITS.rpcMessageBytesMax) {
      log.error({ node: to, kind: message.kind, sizeBytes: payload.length }, 'replica-message-too-large');
      return 'too-large';
    }
    const isTaken = peer.sender.send(messageCount++, payload, { isUrgent: isPulse(message) });
    return isTaken ? undefined : 'queue-full';
  }

  return {
    send(to, message) {
      if (isClosed) return;
      const peer = peerOf(to);
      const problem = peer.link.wake() ? give(peer, to, message) : 'unreachable';
      if (problem !== undefined) telemetry.count('holdfast_rpc_dropped_messages_total', { reason: problem });
    },
    close() {
      isClosed = true;
      for (const { link, sender } of peers.values()) {
        sender.close();
        link.close();
      }
      peers.clear();
    },
  };
}

/** Leases rest on them, so they do not wait behind the entries of all shards: they may be late, or overtake any other. */
function isPulse(message: ReplicaMessage): boolean {
  return message.kind === 'ack' || (message.kind === 'append' && message.entries.length === 0);
}
