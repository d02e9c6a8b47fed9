// The HTTP or HTTPS server under the gateway: limits of heads and connections, expectations answered by hand, live
// exchange of certificates. Which protocol a request speaks is decided above (server.ts).
import { constants } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type Server as Acceptor,
  type AddressInfo,
  createServer as createAcceptor,
  type ListenOptions,
  type Socket,
} from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { type HandshakeTurns, paceHandshakes } from '../../base/tls/paced-handshakes.ts';
import { LIMITS } from '../../types/limits.ts';
import { shareOfThread } from '../../types/thread-share.ts';
import { createSlicedParsing, type ParsingTurns } from './parse-in-slices.ts';
import { hasTooManyLines, ParsedRequest } from './parsed-request.ts';

/** PEM texts. */
export interface Certificate {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

export interface ListenerSettings {
  /** Absent: plain HTTP. */
  readonly tls?: Certificate;
  readonly headerTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly connectionsMax: number;
  /** How many gateways, in threads of one process, share its bounds (types/thread-share.ts). Absent: one. */
  readonly threads?: number;
}

/** Of a client over TLS. */
type RecordsOfClients = Pick<HandshakeTurns<Socket>, 'mayShakeHands' | 'mayDecrypt' | 'holdRecords'>;

/** What is asked before and behind what may take the thread. */
export interface ListenerEvents extends ParsingTurns, Required<RecordsOfClients> {
  onRequest(request: IncomingMessage, response: ServerResponse): void;
  /** It is taken, and its address is known; over TLS its hands are still to be shaken. */
  onConnection(socket: Socket): void;
  /** Hands are shaken: requests come on this socket, whose ends are those of the one that was taken. */
  onSecured(socket: Socket): void;
  onClientError(error: Error, socket: Socket): void;
  /** The client has closed its half in the middle of a body. */
  onCutBody(socket: Socket): void;
  /** CONNECT: the connection is no longer the parser's. */
  onTunnel(socket: Socket): void;
  /** A head has more lines than LIMITS.headerLinesMax. The same. */
  onLongHead(socket: Socket): void;
}

/** With TLS 1.2 a client could shake hands again three times, of which no piece would wait for its turn. */
const TLS_OPTIONS = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const;

export function createListener(settings: ListenerSettings, events: ListenerEvents): Server {
  const server = createHttpServer(settings);
  // Node drops those beyond it without a word: a head that has so many is refused (parsed-request.ts).
  server.maxHeadersCount = LIMITS.headerLinesMax + 1;
  server.on('request', events.onRequest);
  // 100 Continue is sent when a handler begins to read (body-intake.ts), other expectations are ignored (s3-behaviour 16).
  server.on('checkContinue', events.onRequest);
  server.on('checkExpectation', events.onRequest);
  // Connections beyond the limit are refused at their first request (live-exchanges.ts); many more are not served at all.
  const takenMax = settings.connectionsMax + shareOfThread(LIMITS.refusedConnectionsMax, settings);
  let takenCount = 0;
  const parsing = createSlicedParsing(events);
  const { mayShakeHands, mayDecrypt, holdRecords } = events;
  const turns = { mayShakeHands, mayDecrypt, holdRecords, helloMaxMs: settings.headerTimeoutMs };
  const shakeHands = settings.tls === undefined ? undefined : paceHandshakes<Socket>(server, turns);
  const begin = (socket: Socket) => {
    parsing.begin(socket);
    // Behind Node's own look at it: of a body behind an upgrade its parser misses no end.
    socket.on('end', () => {
      if (parsing.isInBody(socket)) events.onCutBody(socket);
    });
  };
  server.on('connection', (socket: Socket) => {
    takenCount++;
    socket.once('close', () => takenCount--);
    if (takenCount > takenMax || !hasAddress(socket)) {
      socket.destroy();
      return;
    }
    if (shakeHands === undefined) begin(socket);
    events.onConnection(socket);
    shakeHands?.(socket);
  });
  server.on('secureConnection', (socket: Socket) => {
    if (!hasAddress(socket)) {
      socket.destroy();
      return;
    }
    begin(socket);
    events.onSecured(socket);
  });
  server.on('clientError', (error: Error, socket: Socket) => {
    parsing.end(socket);
    events.onClientError(error, socket);
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    leaveParser(socket);
    events.onTunnel(socket);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    leaveParser(socket);
    if (hasTooManyLines(request)) events.onLongHead(socket);
    // The last answer is on its way out: what still comes is dropped.
    else socket.resume();
  });
  return server;
}

function createHttpServer({ tls, headerTimeoutMs, keepAliveTimeoutMs }: ListenerSettings): Server {
  const options = {
    maxHeaderSize: LIMITS.headerBytesMax,
    headersTimeout: headerTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    // Bodies may take as long as they make progress (live-exchanges.ts).
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, headerTimeoutMs),
    // A request without Host is answered like every other bad one.
    requireHostHeader: false,
    noDelay: true,
    // Plain connections have it anyway.
    allowHalfOpen: true,
    IncomingMessage: ParsedRequest,
    highWaterMark: LIMITS.streamBufferBytes,
  };
  const server =
    tls === undefined
      ? createServer(options)
      : (createTlsServer({
          ...options,
          ...tls,
          ...TLS_OPTIONS,
          handshakeTimeout: headerTimeoutMs,
        }) as unknown as Server);
  // A client that has closed its half behind a whole request gets its answer, however long that takes.
  return Object.assign(server, { httpAllowHalfOpen: true });
}

/**
 * A client that has reset its connection has no address any more, and what it sent before can still be read: served, it would pass
 * by what is refused to its address. Node keeps the address from here on.
 */
function hasAddress({ remoteAddress }: Socket): boolean {
  return remoteAddress !== undefined;
}

/**
 * Sockets that listen on the port of one server. Of each a turn of the event loop takes one connection (libuv): with one socket
 * a newcomer waits as many turns as there are connections before it. Work of others makes a turn last 25 ms: with 16, whoever
 * opened and cut 700 connections a second kept the queues full, and newcomers out for the seconds after which the kernel tries again.
 */
const ACCEPTORS = 64;
/** Connections that the kernel holds for each of them until they are taken. */
const BACKLOG = 64;

/**
 * Listens until `signal` aborts. Resolves with the address; port 0 takes a free one. Rejects with the system's error where nobody
 * may listen there, and listens no more.
 */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  signal: AbortSignal,
): Promise<AddressInfo> {
  const { allowHalfOpen, highWaterMark } = server as Server & {
    allowHalfOpen: boolean;
    highWaterMark: number;
  };
  const others = Array.from({ length: ACCEPTORS - 1 }, () => {
    const acceptor = createAcceptor({ allowHalfOpen, highWaterMark, noDelay: true });
    acceptor.on('connection', (socket) => server.emit('connection', socket));
    return acceptor;
  });
  const closeAll = () => {
    for (const acceptor of [server, ...others]) acceptor.close();
  };
  signal.addEventListener('abort', closeAll);
  const place = { host, backlog: BACKLOG };
  try {
    // A system that cannot share a port among sockets has one.
    const isShared = await listenOn(server, { ...place, port, reusePort: true }).catch((error) => {
      if (error.code !== 'ENOTSUP') throw error;
      return listenOn(server, { ...place, port }).then(() => false);
    });
    const address = server.address() as AddressInfo;
    for (const acceptor of isShared ? others : []) {
      if (signal.aborted) break;
      await listenOn(acceptor, { ...place, port: address.port, reusePort: true });
      acceptor.on('error', (error) => server.emit('error', error));
    }
    return address;
  } catch (error) {
    closeAll();
    throw error;
  }
}

async function listenOn(server: Acceptor, options: ListenOptions): Promise<true> {
  server.listen(options);
  await once(server, 'listening');
  return true;
}

function leaveParser(socket: Socket): void {
  // Node has taken its own listener away: without one a reset by the client would end the process.
  socket.on('error', () => socket.destroy());
  // And the one by which an answer that is still on its way goes on when there is room for more of it.
  socket.on('drain', () => {
    const { _httpMessage: answer } = socket as { _httpMessage?: ServerResponse };
    if (answer?.writableNeedDrain) answer.emit('drain');
  });
}

/** New connections see the new certificate; nothing happens to those that exist. */
export function exchangeCertificate(server: Server, certificate: Certificate): void {
  (server as unknown as TlsServer).setSecureContext({ ...certificate, ...TLS_OPTIONS });
}
