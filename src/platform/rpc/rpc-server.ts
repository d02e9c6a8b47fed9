// The listening end of a metadata node: one port for calls and for replicas. With the secret a connection is let in by
// secret-door.ts. Every stream is admitted or refused from its headers (admission.ts) and then handed to call-server.ts or
// peer-server.ts.
import { constants, type Http2Server, type ServerHttp2Stream, type ServerOptions } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { Metadata, Server, type ServerDuplexStream, type StatusObject, status } from '@grpc/grpc-js';
import { must } from '../../base/assert.ts';
import { within } from '../../base/async/within.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { Refusal } from '../../base/refusal.ts';
import { hostPortText } from '../../base/text/host-port.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { NodeId } from '../../ports/replication.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { addressGroupOf } from '../../types/tenant.ts';
import { createPeerPlaces, guardHandshakes, refusalReason } from '../tls/peer-door.ts';
import { checkMember, decideAdmission, type Member } from './admission.ts';
import type { CallServer } from './call-server.ts';
import type { RpcCredentials } from './credentials.ts';
import type { PeerServer } from './peer-server.ts';
import { guardConnections } from './secret-door.ts';
import { CALLS, CONNECTION_OPTIONS, METADATA_SERVICE, REPLICATE, WINDOW_BYTES } from './wire.ts';

export interface RpcServerDeps {
  self: Member;
  /** Port 0 takes a free one. */
  listen: { host: string; port: number };
  /** The address that others get instead of the one that is listened on. */
  advertise?: string | undefined;
  credentials: RpcCredentials;
  calls: CallServer;
  peers: PeerServer;
  clock: ClockPort;
  random: RandomPort;
  log: Logger;
  telemetry: TelemetryPort;
}

export interface RpcServer {
  readonly port: number;
  /** Takes no more calls, lets those under way be answered for a while, and ends all connections. */
  close(): Promise<void>;
}

/** Rejects with a {@link Refusal} when the address may not be listened on, or cannot be. */
export async function startRpcServer(deps: RpcServerDeps): Promise<RpcServer> {
  const { listen, credentials, calls, peers, clock } = deps;
  credentials.checkHost(listen.host);
  const server = new Server({
    ...CONNECTION_OPTIONS,
    'grpc.keepalive_time_ms': LIMITS.rpcServerKeepaliveMs,
    'grpc.max_concurrent_streams': LIMITS.rpcStreamsPerConnectionMax,
    'grpc.max_connection_idle_ms': LIMITS.rpcIdleMaxMs,
  });
  let address = deps.advertise ?? '';
  boundResets(server);
  const noteRefusal = createRefusalNotes(deps);
  checkMember(deps.self);
  const admit = createDoor(deps.self, noteRefusal);
  server.addService(METADATA_SERVICE, {
    [CALLS.originalName ?? 'calls']: admit(CALLS.path, (stream, caller) => calls.serve(stream, caller)),
    [REPLICATE.originalName ?? 'replicate']: admit(REPLICATE.path, (stream, from) =>
      peers.serve(stream, from),
    ),
  });
  const port = await bind(server, listen, credentials);
  address = deps.advertise ?? hostPortText({ host: listen.host, port });
  const endStrangers = setUpConnections(server, { ...deps, address: () => address }, noteRefusal);
  return {
    port,
    async close() {
      await within(calls.drain(), LIMITS.rpcDrainMaxMs, clock);
      calls.close();
      peers.close();
      // `forceShutdown` alone leaves connections open; those without a stream end at once, the others are cut.
      server.drain(hostPortText({ host: listen.host, port }), CUT_AFTER_MS);
      server.forceShutdown();
      for (const end of endStrangers) end();
    },
  };
}

/** Streams of one connection that its client may reset at once, and then each second; members keep theirs for long. */
const RESETS_AT_ONCE_MAX = 64;
const RESETS_PER_SECOND_MAX = 16;
/** Streams beyond those of a connection, before it ends. */
const EXCESS_STREAMS_MAX = 16;

/**
 * Streams that are opened and reset in one read are all made, however few may be open: by Node's own bounds a connection full of
 * them held the thread for 0.4 s. The library has no options for this.
 */
function boundResets(server: Server): void {
  const { commonServerOptions } = server as unknown as { commonServerOptions?: ServerOptions };
  Object.assign(must(commonServerOptions, 'the gRPC library keeps the options of its servers there'), {
    streamResetBurst: RESETS_AT_ONCE_MAX,
    streamResetRate: RESETS_PER_SECOND_MAX,
    maxSessionRejectedStreams: EXCESS_STREAMS_MAX,
  } satisfies ServerOptions);
}

/**
 * What the library has no options for: how many connections there may be and whose, and, as its clients have it, the window. Without
 * that a frame of 256 KiB waits four times for its sender to hear that there is room, and messages of 1 MiB travel at half
 * the rate. What it returns ends connections that have proved nothing yet.
 */
function setUpConnections(
  server: Server,
  deps: Pick<RpcServerDeps, 'credentials' | 'random' | 'clock'> & { address(): string },
  noteRefusal: NoteRefusal,
): (() => void)[] {
  const { http2Servers } = server as unknown as { http2Servers?: ReadonlyMap<Http2Server, unknown> };
  const { secret } = deps.credentials;
  return [...must(http2Servers, 'the gRPC library keeps its servers there').keys()].map((listening) => {
    const places = createPeerPlaces({
      connectionsMax: LIMITS.rpcConnectionsMax,
      onYield: (host) => noteRefusal({ host, reason: 'another connection needs its place' }),
    });
    if (secret !== undefined)
      guardConnections(listening, { ...deps, secret, places, onRefused: noteRefusal });
    else guardHandshakes(listening, { ...deps, places, helloMaxMs: LIMITS.rpcConnectMaxMs });
    listening.on('tlsClientError', (error: Error, socket: TLSSocket) =>
      noteRefusal({ host: socket.remoteAddress ?? '', reason: refusalReason(error, socket) }),
    );
    listening.on('session', (session) => {
      session.setLocalWindowSize(WINDOW_BYTES);
      session.settings({ initialWindowSize: WINDOW_BYTES });
    });
    listening.on('stream', endRefused);
    return places.endStrangers;
  });
}

/**
 * A stream whose status came in the headers of its answer has been refused. Its sender need not end it: until then what it
 * sends lies here unread, up to a window, and its connection never counts as idle.
 */
function endRefused(stream: ServerHttp2Stream): void {
  stream.once('finish', () => {
    const isRefused = stream.sentHeaders?.['grpc-status'] !== undefined;
    if (isRefused && !stream.closed) stream.close(constants.NGHTTP2_NO_ERROR);
  });
}

/** Of a connection whose streams have been asked to end. */
const CUT_AFTER_MS = 100;

function bind(
  server: Server,
  { host, port }: RpcServerDeps['listen'],
  credentials: RpcCredentials,
): Promise<number> {
  const address = hostPortText({ host, port });
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials.forServer(), (error, bound) => {
      if (error === null) resolve(bound);
      else {
        const why = error.message.includes('EADDRINUSE') ? 'another program listens there' : error.message;
        reject(new Refusal(`cannot listen on ${address}: ${why}`));
      }
    });
  });
}

/** Refusals of one kind from one group of addresses are written to the log this often. */
const REFUSAL_LOG_EVERY_MS = 60_000;
const REFUSALS_MAX = 256;

type NoteRefusal = (refusal: { host: string; path?: string; reason: string }) => void;

function createRefusalNotes({ clock, log, telemetry }: RpcServerDeps): NoteRefusal {
  const loggedAtMs = new BoundedMap<string, number>(REFUSALS_MAX);
  return (refusal) => {
    telemetry.count('holdfast_rpc_refused_total');
    // Who has a network of IPv6 has addresses at will.
    const key = `${addressGroupOf(refusal.host)} ${refusal.reason}`;
    const nowMs = clock.monotonicMs();
    if (nowMs - (loggedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < REFUSAL_LOG_EVERY_MS) return;
    loggedAtMs.set(key, nowMs);
    log.warn(refusal, 'rpc-refused');
  };
}

function createDoor(self: Member, noteRefusal: NoteRefusal) {
  return <Request, Response>(
    path: string,
    serve: (stream: ServerDuplexStream<Request, Response>, caller: NodeId) => void,
  ) => {
    return (stream: ServerDuplexStream<Request, Response>): void => {
      const decision = decideAdmission(self, stream.metadata);
      if (decision.kind === 'admitted') {
        stream.sendMetadata(decision.headers);
        serve(stream, decision.caller);
        return;
      }
      const { reason } = decision;
      const peer = stream.getPeer();
      noteRefusal({ host: peer.slice(0, peer.lastIndexOf(':')), path, reason });
      const refusal: StatusObject = {
        code: status.FAILED_PRECONDITION,
        details: reason,
        metadata: new Metadata(),
      };
      stream.emit('error', refusal);
    };
  };
}
