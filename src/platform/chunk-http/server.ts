// Serves the chunks of one node's disks to members of its cluster (design "Chunks over machines"): node:http, bodies with
// their length and checksum. A stranger gets nothing, not even the name of what is wrong. Memory is bounded by gates of each
// disk: bytes being received or stored, and chunks being read and sent. Which chunks live is not its business.
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createByteGate } from '../../base/async/byte-gate.ts';
import { within } from '../../base/async/within.ts';
import { Refusal } from '../../base/refusal.ts';
import { hostPortText } from '../../base/text/host-port.ts';
import type { ChunkServerPort, RunningChunkServer, ServedDisks } from '../../ports/chunk-server.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { FEW_AT_ONCE } from '../few-at-once.ts';
import { createPeerPlaces, guardHandshakes, refusalReason } from '../tls/peer-door.ts';
import { Deadlines } from './deadlines.ts';
import { ChunkExchange, type DiskGates, type ExchangeParts, type TakeMemory } from './exchange.ts';
import { createProver, type PeerCredentials, refuseSecretBeyondLoopback, tlsOptions } from './peer-proof.ts';
import { takeBodiesAsRead } from './receive-body.ts';

export interface ChunkServerOptions {
  /** Port 0: any that is free. */
  listen: { host: string; port: number };
  /** The announced address, if it is not the one that is listened on. */
  advertise?: string;
  clusterId: string;
  credentials: PeerCredentials;
  clock: ClockPort;
  log: Logger;
  takeMemory?: TakeMemory;
}

/** Of clients: who closes an idle connection last does not break the request that was just sent over it. */
const IDLE_MARGIN_MS = 5000;
const STRANGERS_LOGGED_EVERY_MS = 10_000;

export function createChunkServer(options: ChunkServerOptions): ChunkServerPort {
  refuseSecretBeyondLoopback(options.listen.host, options.credentials);
  return { serve: (disks) => listen(options, disks) };
}

async function listen(options: ChunkServerOptions, disks: ServedDisks): Promise<RunningChunkServer> {
  const { credentials, clock, log, listen: where } = options;
  const exchanges = new Set<Promise<void>>();
  let isStopping = false;
  const onStranger = limitStrangers(clock, log);
  let address = '';
  const parts: ExchangeParts = {
    disks,
    clock,
    log,
    onStranger,
    onMember: (socket) => places.prove(socket),
    clusterId: options.clusterId,
    address: () => options.advertise ?? address,
    startedAtMs: clock.monotonicMs(),
    isStopping: () => isStopping,
    prover: credentials.kind === 'secret' ? createProver(credentials.secret) : undefined,
    takeMemory: options.takeMemory ?? ((sizeBytes) => ({ bytes: Buffer.allocUnsafeSlow(sizeBytes) })),
    deadlines: new Deadlines(clock),
    gatesOf: createGates(),
  };
  const server = createHttpServer(credentials);
  const places = createPeerPlaces({
    connectionsMax: LIMITS.chunkServerConnectionsMax,
    onYield: (remote) => onStranger({ remote, reason: 'another connection needs its place' }),
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const exchange = new ChunkExchange(parts, request, response).run();
    exchanges.add(exchange);
    exchange.finally(() => exchanges.delete(exchange));
  });
  if (credentials.kind === 'tls')
    guardHandshakes(server, { places, clock, helloMaxMs: LIMITS.chunkConnectMaxMs });
  takeBodiesAsRead(server, {
    isTls: credentials.kind === 'tls',
    mayTake: (socket) => places.take(socket),
  });
  server.on('tlsClientError', (error: Error, socket: TLSSocket) =>
    onStranger({ remote: socket.remoteAddress, reason: refusalReason(error, socket) }),
  );
  await bind(server, where);
  const { port } = server.address() as AddressInfo;
  address = hostPortText({ host: where.host, port });
  return {
    address,
    async stop() {
      isStopping = true;
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      places.endStrangers();
      const hasEnded = new AbortController();
      clock.sleep(LIMITS.drainMaxMs, hasEnded.signal).then(() => server.closeAllConnections());
      await closed;
      hasEnded.abort();
      parts.deadlines.clear();
      // The connection is gone, but a disk may still be at work for it.
      await within(Promise.allSettled(exchanges), LIMITS.storeCloseMaxMs, clock);
    },
  };
}

/** For disks that are served: others are refused before. */
function createGates(): ExchangeParts['gatesOf'] {
  const gates = new Map<DiskId, DiskGates>();
  return (diskId) => {
    const known = gates.get(diskId);
    if (known !== undefined) return known;
    const made = {
      received: createByteGate(LIMITS.chunkPutsBytesMax),
      asked: createByteGate(LIMITS.chunkOrdersBytesMax),
      reads: createByteGate(LIMITS.chunkReadsInFlightMax),
    };
    gates.set(diskId, made);
    return made;
  };
}

/** Rejects with {@link Refusal} when the address cannot be had. */
async function bind(server: Server, { host, port }: ChunkServerOptions['listen']): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'another program listens there' : message;
    throw new Refusal(`cannot listen on ${hostPortText({ host, port })}: ${why}`);
  }
}

function createHttpServer(credentials: PeerCredentials): Server {
  const options = {
    ...FEW_AT_ONCE,
    maxHeaderSize: LIMITS.peerHeaderBytesMax,
    headersTimeout: LIMITS.chunkRequestMaxMs,
    requestTimeout: LIMITS.chunkRequestMaxMs,
    keepAliveTimeout: LIMITS.chunkIdleMaxMs + IDLE_MARGIN_MS,
    connectionsCheckingInterval: 1000,
    noDelay: true,
  };
  return credentials.kind === 'secret' ? createServer(options) : createMutualTls(options, credentials);
}

function createMutualTls(options: ServerOptions, credentials: PeerCredentials & { kind: 'tls' }): Server {
  const server = createTlsServer({
    ...options,
    ...tlsOptions(credentials),
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: LIMITS.chunkConnectMaxMs,
  });
  // For new connections; those that stand are not cut.
  credentials.follow?.((now) => server.setSecureContext(tlsOptions(now)));
  return server as unknown as Server;
}

/** One line for many: a stranger must not fill the log. */
function limitStrangers(clock: ClockPort, log: Logger): (fields: object) => void {
  let refusedCount = 0;
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  return (fields) => {
    refusedCount++;
    if (clock.monotonicMs() - loggedAtMs < STRANGERS_LOGGED_EVERY_MS) return;
    log.warn({ ...fields, refusedCount }, 'stranger-refused');
    loggedAtMs = clock.monotonicMs();
    refusedCount = 0;
  };
}
