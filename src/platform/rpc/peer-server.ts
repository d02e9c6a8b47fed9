// Hears what replicas on other nodes say: streams that rpc-server.ts has admitted. A frame that cannot be read ends its
// stream, as a broken connection does. The sending half is peer-client.ts.
import { type ServerDuplexStream, status } from '@grpc/grpc-js';
import { unpackPlain } from '../../base/record-codec.ts';
import type { NodeId, ReplicaMessage } from '../../ports/replication.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { type MessageFrame, RPC_VERSION, type Silence } from './wire.ts';

export interface PeerServer {
  /** As PeerPort's. `onMessage` does not throw. */
  listen(onMessage: (from: NodeId, message: ReplicaMessage) => void): void;
  /** Reads an admitted stream to its end. */
  serve(stream: ServerDuplexStream<MessageFrame, Silence>, from: NodeId): void;
  /** Ends all streams. */
  close(): void;
}

export function createPeerServer(deps: { log: Logger; telemetry: TelemetryPort }): PeerServer {
  const { log, telemetry } = deps;
  const streams = new Map<NodeId, ServerDuplexStream<MessageFrame, Silence>>();
  let onMessage: ((from: NodeId, message: ReplicaMessage) => void) | undefined;

  function read(frame: MessageFrame): ReplicaMessage[] {
    if (frame.version !== RPC_VERSION) throw new Error(`a frame of version ${frame.version}`);
    telemetry.count('holdfast_rpc_received_frames_total', { kind: 'messages' });
    return frame.payloads.map((payload) => {
      const message = unpackPlain(payload) as ReplicaMessage;
      if (typeof message.kind !== 'string') throw new Error('not a message of a replica');
      return message;
    });
  }

  return {
    listen(listener) {
      onMessage = listener;
    },
    serve(stream, from) {
      // Of two streams of one node the newer counts: the older is of a connection that it has given up.
      const older = streams.get(from);
      streams.set(from, stream);
      if (older !== undefined) {
        log.info({ node: from }, 'replica-stream-replaced');
        older.emit('error', { code: status.ABORTED, details: 'replaced by a newer stream' });
      }
      const forget = () => {
        if (streams.get(from) === stream) streams.delete(from);
      };
      stream.on('data', (frame: MessageFrame) => {
        if (streams.get(from) !== stream) return;
        let messages: ReplicaMessage[];
        try {
          messages = read(frame);
        } catch (error) {
          log.error({ node: from, err: error }, 'replica-frame-unreadable');
          forget();
          stream.emit('error', { code: status.INVALID_ARGUMENT, details: 'the frame cannot be read' });
          return;
        }
        for (const message of messages) onMessage?.(from, message);
      });
      stream.on('end', () => {
        forget();
        stream.end();
      });
      stream.on('cancelled', forget);
    },
    close() {
      onMessage = undefined;
      for (const stream of streams.values()) {
        stream.emit('error', { code: status.UNAVAILABLE, details: 'the node ends' });
      }
      streams.clear();
    },
  };
}
