// Health and metrics of a process that serves nothing else over HTTP: a metadata or storage node. Small answers to GET and
// HEAD; whatever else is asked is refused, no body is read, and everything a stranger may use up is bounded.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { cacheReading } from '../../base/async/cache-reading.ts';
import { createSharedPlaces, type SharedPlaces } from '../../base/async/shared-places.ts';
import { Refusal } from '../../base/refusal.ts';
import { hostPortText } from '../../base/text/host-port.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { ADDRESS_WEIGHTS, addressGroupOf } from '../../types/tenant.ts';
import { FEW_AT_ONCE } from '../few-at-once.ts';

export interface HealthServerOptions {
  listen: { host: string; port: number };
  /** Whether the process can do its work now. */
  isReady(): boolean;
  readMetrics(): Promise<{ contentType: string; text: string }>;
  log: Logger;
  clock: Pick<ClockPort, 'monotonicMs'>;
}

export interface HealthServer {
  /** `host:port`, with the port that was had. */
  readonly address: string;
  /** Ends connections at once. */
  close(): Promise<void>;
}

interface Answer {
  status: number;
  contentType: string;
  text: string;
}

/** Rejects with {@link Refusal} when the address cannot be had. */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const { listen } = options;
  const routes = createRoutes(options);
  const places = createPlaces();
  const server = createServer(
    {
      ...FEW_AT_ONCE,
      maxHeaderSize: LIMITS.peerHeaderBytesMax,
      headersTimeout: LIMITS.healthHeaderMaxMs,
      requestTimeout: LIMITS.healthRequestMaxMs,
      keepAliveTimeout: LIMITS.healthRequestMaxMs,
      connectionsCheckingInterval: LIMITS.healthHeaderMaxMs / 2,
    },
    (request, response) => {
      // It is the last to go now.
      places.setIdle(request.socket, true);
      void serve(routes, request, response);
    },
  );
  server.on('connection', (socket) => {
    const address = addressGroupOf(socket.remoteAddress ?? '');
    places.add(socket, [address]);
    socket.once('close', () => places.remove(socket));
  });
  // One whose answer is not taken holds its connection no longer than one whose question does not come.
  server.setTimeout(2 * LIMITS.healthRequestMaxMs, (socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'another program listens there' : error.message;
      reject(new Refusal(`cannot listen on ${hostPortText(listen)} for health: ${why}`));
    });
    server.listen(listen.port, listen.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: hostPortText({ host: listen.host, port }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Places of connections. A new connection always finds one: of the address that has most, the connection whose last question is
 * longest ago goes, answered or not. One address alone has most of them, and never those that others need.
 */
function createPlaces(): SharedPlaces<Socket> {
  const limit = LIMITS.healthConnectionsMax;
  return createSharedPlaces({ limit, weights: ADDRESS_WEIGHTS, end: (socket) => socket.destroy() });
}

type Routes = ReadonlyMap<string, () => Promise<Answer>>;

function createRoutes({ isReady, readMetrics, log, clock }: HealthServerOptions): Routes {
  // A scrape walks all shards.
  const readOnce = cacheReading(readMetrics, {
    cachedMs: LIMITS.metricsKeptMs,
    nowMs: () => clock.monotonicMs(),
  });
  return new Map<string, () => Promise<Answer>>([
    ['/health/live', async () => healthAnswer(true)],
    ['/health/ready', async () => healthAnswer(isReady())],
    [
      '/metrics',
      () =>
        readOnce().then(
          ({ contentType, text }) => ({ status: 200, contentType, text }),
          (error: unknown) => {
            log.warn({ err: error }, 'metrics-not-read');
            return jsonAnswer(500, { status: 'failed' });
          },
        ),
    ],
  ]);
}

async function serve(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url = '' } = request;
  const route = routes.get(url.split('?', 1)[0] ?? '');
  const isReading = method === 'GET' || method === 'HEAD';
  const answer =
    route === undefined
      ? jsonAnswer(404, { status: 'not found' })
      : isReading
        ? await route()
        : jsonAnswer(405, { status: 'not allowed' });
  const hasBody = request.headers['transfer-encoding'] !== undefined || request.headers['content-length'];
  response.writeHead(answer.status, {
    'Content-Type': answer.contentType,
    'Content-Length': Buffer.byteLength(answer.text),
    ...(answer.status === 405 && { Allow: 'GET, HEAD' }),
    // What was sent with it is not read.
    ...(hasBody && { Connection: 'close' }),
  });
  response.end(method === 'HEAD' ? undefined : answer.text);
}

function healthAnswer(isWell: boolean): Answer {
  return jsonAnswer(isWell ? 200 : 503, { status: isWell ? 'ok' : 'unavailable' });
}

function jsonAnswer(status: number, body: object): Answer {
  return { status, contentType: 'application/json', text: JSON.stringify(body) };
}
