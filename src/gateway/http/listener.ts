// The HTTP or HTTPS server under the gateway: limits of heads and connections, expectations answered by hand, live
// exchange of certificates. Which protocol a request speaks is decided above (server.ts).
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { LIMITS } from '../../types/limits.ts';
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
}

export interface ListenerEvents {
  onRequest(request: IncomingMessage, response: ServerResponse): void;
  /** It is taken; over TLS its hands are still to be shaken. */
  onConnection(socket: Socket): void;
  /** Hands are shaken: requests come on this socket, whose ends are those of the one that was taken. */
  onSecured(socket: Socket): void;
  onClientError(error: Error, socket: Socket): void;
  /** CONNECT: the connection is no longer the parser's. */
  onTunnel(socket: Socket): void;
  /** A head has more lines than LIMITS.headerLinesMax. The same. */
  onLongHead(socket: Socket): void;
}

const TLS_OPTIONS = { minVersion: 'TLSv1.2' } as const;

export function createListener(settings: ListenerSettings, events: ListenerEvents): Server {
  const options = {
    maxHeaderSize: LIMITS.headerBytesMax,
    headersTimeout: settings.headerTimeoutMs,
    keepAliveTimeout: settings.keepAliveTimeoutMs,
    // Bodies may take as long as they make progress (live-exchanges.ts).
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, settings.headerTimeoutMs),
    // A request without Host is answered like every other bad one.
    requireHostHeader: false,
    noDelay: true,
    IncomingMessage: ParsedRequest,
    highWaterMark: LIMITS.streamBufferBytes,
  };
  const server =
    settings.tls === undefined
      ? createServer(options)
      : (createTlsServer({
          ...options,
          ...settings.tls,
          ...TLS_OPTIONS,
          handshakeTimeout: settings.headerTimeoutMs,
        }) as unknown as Server);
  // Node drops those beyond it without a word: a head that has so many is refused (parsed-request.ts).
  server.maxHeadersCount = LIMITS.headerLinesMax + 1;
  // Connections beyond the limit are refused at their first request (live-exchanges.ts); many more are not accepted at all.
  server.maxConnections = settings.connectionsMax + LIMITS.refusedConnectionsMax;
  server.on('request', events.onRequest);
  // 100 Continue is sent when a handler begins to read (body-intake.ts), other expectations are ignored (s3-behaviour 16).
  server.on('checkContinue', events.onRequest);
  server.on('checkExpectation', events.onRequest);
  server.on('connection', events.onConnection);
  if (settings.tls !== undefined) server.on('secureConnection', events.onSecured);
  server.on('clientError', events.onClientError);
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
