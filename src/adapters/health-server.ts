// Health and metrics of a process that serves nothing else over HTTP: a metadata or storage node. Small answers to GET and
// HEAD; whatever else is asked is refused, no body is read, and everything a stranger may use up is bounded.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostPortText } from '../lib/host-port.ts';
import { Refusal } from '../lib/refusal.ts';
import { LIMITS } from '../model/limits.ts';
import type { Logger } from '../ports/telemetry.ts';

export interface HealthServerOptions {
  listen: { host: string; port: number };
  /** Whether the process can do its work now. */
  isReady(): boolean;
  readMetrics(): Promise<{ contentType: string; text: string }>;
  log: Logger;
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
  const server = createServer(
    {
      maxHeaderSize: LIMITS.peerHeaderBytesMax,
      headersTimeout: LIMITS.healthRequestMaxMs,
      requestTimeout: LIMITS.healthRequestMaxMs,
      keepAliveTimeout: LIMITS.healthRequestMaxMs,
      connectionsCheckingInterval: LIMITS.healthRequestMaxMs / 2,
    },
    (request, response) => void serve(routes, request, response),
  );
  server.maxConnections = LIMITS.healthConnectionsMax;
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

type Routes = ReadonlyMap<string, () => Promise<Answer>>;

function createRoutes({ isReady, readMetrics, log }: HealthServerOptions): Routes {
  const readOnce = shared(readMetrics);
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

/** Whoever asks while it is being read gets the same: a scrape walks all shards. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
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
