// The gateway: takes connections, leads each request to its service (routes.ts), and ends in good order. Fastify carries
// the requests; it parses no body, knows one route, and all that it would answer by itself is answered by us.
import { type IncomingMessage, METHODS, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { assert, must } from '../../base/assert.ts';
import { cacheReading } from '../../base/async/cache-reading.ts';
import { createFairShare } from '../../base/async/fair-share.ts';
import { createFairTurns } from '../../base/async/fair-turns.ts';
import { createPatiences } from '../../base/async/patience.ts';
import { createReadTurns, type ReadTurns } from '../../base/async/read-turns.ts';
import type { ObjectStore } from '../../objects/object-store.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { IdentityFeed } from '../../ports/identity-feed.ts';
import type { KeyringPort } from '../../ports/keyring.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { ADDRESS_WEIGHTS, SHARE_WEIGHTS } from '../../types/tenant.ts';
import { shareOfThread } from '../../types/thread-share.ts';
import type { SignedHosts } from '../auth/authentication-request.ts';
import { createIdentities } from '../auth/identities.ts';
import { createKeyUses } from '../auth/key-uses.ts';
import { createSignatureFailures } from '../auth/signature-failures.ts';
import { createMfaCodes } from '../identity-api/mfa-codes.ts';
import { createPasswords } from '../identity-api/passwords.ts';
import type { ManagementApi } from '../management-api/management-api.ts';
import { createTrafficMeter } from '../metering/traffic-meter.ts';
import type { OperatorCaller } from '../operator-api/operator-context.ts';
import { createBucketCache } from '../s3/buckets/bucket-cache.ts';
import { createDigestPlaces } from '../s3/compliance/digest-places.ts';
import { createMovePlaces } from '../s3/extensions/move-places.ts';
import { createMatcher } from '../s3/matcher.ts';
import type { Operation } from '../s3/operation.ts';
import type { S3Dependencies } from '../s3/pipeline-steps.ts';
import { OPERATIONS } from '../s3/registry.ts';
import { bucketLabelOf } from '../s3/request/target.ts';
import { cacheCapacity, type StoreCapacity } from '../s3/sosapi/capacity.ts';
import { isOfSosapi } from '../s3/sosapi/sos-objects.ts';
import { UNSUPPORTED, type UnsupportedOperation } from '../s3/unsupported.ts';
import { createAdmission } from './admission.ts';
import { READ_BYTES } from './body-intake.ts';
import { createClientViewer } from './client-view.ts';
import { Exchange } from './exchange.ts';
import {
  type Certificate,
  createListener,
  exchangeCertificate,
  type ListenerSettings,
  listen,
} from './listener.ts';
import { LiveExchanges } from './live-exchanges.ts';
import { protocolError, refuseConnection } from './protocol-errors.ts';
import { createRequestIds } from './request-ids.ts';
import { isOfManagement, ROUTES } from './routes.ts';
import { findRoute, type JsonService, type RouteDependencies, type ServiceRoute } from './service-route.ts';
import { createShedding, type Shedding } from './shedding.ts';

const REQUEST_WAITS = { mostMs: LIMITS.requestWaitMaxMs, leastMs: LIMITS.requestWaitLeastMs };
/** Of all bodies, in one turn of the loop: some ms. */
const READ_TURNS = { turnBytesMax: 1024 * 1024, pieceBytesMin: 4096 };
/** Of a read, what takes as long as to parse one chunk of a body. */
const CHUNK_COST_BYTES = 1024;
/** And what takes as long as to decrypt a small record of TLS, which may ask for an answer. */
const RECORD_COST_BYTES = 4096;
/** Of all heads and handshakes, in one turn: some ms. What waits may turn out to be many requests, or none: few of them go on in one. */
const HEAD_TURNS = { turnBytesMax: 512 * 1024, pieceBytesMin: 4096, readBytes: 32 * 1024 };
/** To shake hands takes 0.5 to 1 ms, and 7 with a large RSA key. */
const HANDSHAKE_COST_BYTES = 128 * 1024;

export interface GatewaySettings extends ListenerSettings {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Base domains of virtual-host style. */
  readonly domains: readonly string[];
  readonly publicNames: readonly string[];
  readonly trustedProxies: readonly string[];
  /** S3 requests may be signed by version 2. */
  readonly takesSigV2: boolean;
  /** Whether every bucket has the virtual objects of SOSAPI. */
  readonly answersSosapi: boolean;
  /** Customers' keys are taken over connections that others may read, too. */
  readonly takesSecretsOverHttp: boolean;
  /** How long a connection may stand still in the middle of a request. */
  readonly idleTimeoutMs: number;
  /** S3 requests beyond them are refused; health, metrics and the operator API are not. */
  readonly requestsInFlightMax: number;
  /** Length of a day as lifecycle rules count them. */
  readonly lifecycleDayMs: number;
  /** How often what requests count for is written down. */
  readonly trafficFlushMs: number;
}

/** At the end, for traffic that was not sent yet: longer than a shard that is led may take. */
const LAST_FLUSH_MAX_MS = 5000;
/** From the start on. A command that is first takes the short while itself, and many a server is never asked. */
const APIS_READY_AFTER_MS = 60_000;

export interface GatewayDependencies {
  settings: GatewaySettings;
  metadata: MetadataPort;
  objects: ObjectStore;
  keyring: KeyringPort;
  identityFeed: IdentityFeed;
  clock: ClockPort;
  random: RandomPort;
  log: Logger;
  telemetry: TelemetryPort;
  /** For /health/ready. */
  isReady(): boolean;
  readMetrics(): Promise<{ contentType: string; text: string }>;
  /** Of this program. */
  version: string;
  /** Asked now and then, when somebody wants to know. Rejects when no disk answers. */
  readCapacity(): Promise<StoreCapacity>;
  readonly operatorApi: JsonService<OperatorCaller>;
  /** Absent: there is no /api/v1. */
  readonly managementApi?: ManagementApi;
  /** Of tests; default the registry. */
  operations?: readonly Operation[];
  /** Of tests; default the table. */
  routes?: readonly ServiceRoute[];
}

export interface Gateway {
  /** Resolves when connections are taken. Rejects when the address cannot be had. */
  start(): Promise<{ host: string; port: number }>;
  /** False while S3 requests of all callers are refused. */
  hasRoom(): boolean;
  /** Monotonic ms at which the oldest request under way began; undefined when there is none. */
  oldestRequestMs(): number | undefined;
  /** For new connections (TLS only). */
  setCertificate(certificate: Certificate): void;
  /** Takes no more connections, lets requests end for `timeoutMs` at most, then closes everything. Safe to repeat. */
  drain(timeoutMs: number): Promise<void>;
}

/** Those of SOSAPI are left out where the setting says so. */
function rowsOf({ settings, operations }: GatewayDependencies): (Operation | UnsupportedOperation)[] {
  const offered = settings.answersSosapi ? OPERATIONS : OPERATIONS.filter((row) => !isOfSosapi(row));
  return [...(operations ?? offered), ...UNSUPPORTED];
}

function routesOf({ routes, managementApi }: GatewayDependencies): readonly ServiceRoute[] {
  return routes ?? ROUTES.filter((row) => managementApi !== undefined || !isOfManagement(row));
}

/** Compiles routes and schemas, which takes a while: that is not for the start to wait for, nor for the first caller. */
async function prepareApis(
  { clock, operatorApi, managementApi }: GatewayDependencies,
  stopped: AbortSignal,
): Promise<void> {
  await clock.sleep(APIS_READY_AFTER_MS, stopped);
  for (const api of [operatorApi, managementApi]) {
    if (!stopped.aborted) await api?.ready?.();
  }
}

/** What callers prove themselves by, beside the keys that identities know. */
function credentialChecks(deps: GatewayDependencies) {
  const { threads } = deps.settings;
  return {
    keyUses: createKeyUses(deps),
    failures: createSignatureFailures(deps),
    mfaCodes: createMfaCodes(deps),
    passwords: createPasswords({ ...deps, threads }),
  };
}

function storeFacts({ version, clock, readCapacity }: GatewayDependencies): S3Dependencies['store'] {
  return { version, startedAtMs: clock.wallMs(), readCapacity: cacheCapacity(readCapacity, clock) };
}

export function createGateway(deps: GatewayDependencies): Gateway {
  const { settings, clock, log, telemetry } = deps;
  const ids = createRequestIds(deps.random);
  const viewer = createClientViewer(settings);
  const shedding = createShedding(deps);
  const live = new LiveExchanges({ clock, limits: settings, onYield: shedding.noteYield });
  const newPatience = createPatiences(clock, REQUEST_WAITS);
  const limit = shareOfThread(LIMITS.intakeQueuesBytesMax, settings);
  const queues = createFairShare({ limit, weights: SHARE_WEIGHTS });
  const reads = createReadTurns({ ...READ_TURNS, readBytes: READ_BYTES });
  const turns = createFairTurns({ clock });
  const identities = createIdentities({ ...deps, feed: deps.identityFeed, turns });
  // The longest first: the more special domain takes the bucket's label.
  const domains = settings.domains.map((domain) => domain.toLowerCase()).sort((a, b) => b.length - a.length);
  function hostsOf({ client, headers }: Exchange, label?: string): SignedHosts {
    const sent = headers.values.host ?? '';
    // A signature for one bucket's host opens no other bucket that a header beside it names.
    const mayBeSent = client.host === sent || bucketLabelOf(sent, domains) === label;
    return { mayBeSent, others: () => viewer.otherHosts(client, mayBeSent ? sent : undefined, label) };
  }
  const room = overloadChecks(live, shedding);
  const routes = routesOf(deps);
  const traffic = createTrafficMeter({ ...deps, flushEveryMs: settings.trafficFlushMs });
  const shared = { ...deps, identities, traffic, ...credentialChecks(deps), ...room, turns, ids, hostsOf };
  const s3: S3Dependencies = {
    ...shared,
    signing: { service: 's3', takesSigV2: settings.takesSigV2 },
    buckets: createBucketCache(deps.metadata, deps.clock),
    digests: createDigestPlaces(),
    movePlaces: createMovePlaces(),
    store: storeFacts(deps),
    match: createMatcher(rowsOf(deps)),
    takesSecretsOverHttp: settings.takesSecretsOverHttp,
    lifecycleDayMs: settings.lifecycleDayMs,
    ...formIntake(shedding, settings),
    requestCount: () => live.count,
  };
  const hasRoom = () => live.overload() === undefined;
  const services: RouteDependencies['services'] = {
    ...shared,
    takesSecretsOverHttp: settings.takesSecretsOverHttp,
    shedding,
    isReady: () => deps.isReady() && hasRoom(),
    readMetrics: cacheReading(deps.readMetrics, {
      cachedMs: LIMITS.metricsKeptMs,
      nowMs: () => clock.monotonicMs(),
    }),
    ...serviceShares(settings),
  };

  telemetry.gauge('holdfast_requests_in_flight', live.count);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let exchange: Exchange | undefined;
    try {
      exchange = new Exchange({ request, response, viewer, clock, queues, reads, patience: newPatience() });
      live.begin(exchange);
      telemetry.gauge('holdfast_requests_in_flight', live.count);
      const label = bucketLabelOf(exchange.client.host, domains);
      const { uri, headers } = exchange;
      const [method, hasBucketHost] = [request.method ?? '', label !== undefined];
      const asked = { method, uri, headers: headers.values, hasBucketHost };
      const route = must(findRoute(routes, asked), 'the last route takes every request');
      await route.serve({ s3, services }, exchange, label);
    } catch (error) {
      log.error({ err: error }, 'exchange-failed');
      response.destroy();
    } finally {
      if (exchange !== undefined) live.end(exchange);
      telemetry.gauge('holdfast_requests_in_flight', live.count);
    }
  }

  /** Says on the bare connection, and in the log, what became of bytes that never were a request. */
  function refuse(socket: Socket, error: AppError): void {
    const { remoteAddress } = socket;
    const requestId = refuseConnection(socket, error, ids);
    log.info({ requestId, status: error.status, errorCode: error.code, remoteAddress }, 'request');
  }

  const admit = createAdmission({ live, viewer, clock });
  const app = carrier({ settings, live, refuse, admit, serve, reads });
  /** No connection is taken any more. */
  const closing = new AbortController();
  const stopped = new AbortController();
  let draining: Promise<void> | undefined;

  async function drain(timeoutMs: number): Promise<void> {
    closing.abort();
    await live.drain(timeoutMs);
    stopped.abort();
    await Promise.race([traffic.flush(), clock.sleep(LAST_FLUSH_MAX_MS)]);
    await app.close();
  }

  return {
    async start() {
      await app.ready();
      const { address, port } = await listen(app.server, settings, closing.signal);
      // Connections that could not be taken, for want of file descriptors say: the next ones may.
      app.server.on('error', (error) => log.error({ err: error }, 'listener-failed'));
      void live.watch(stopped.signal);
      void traffic.run(stopped.signal);
      void prepareApis(deps, stopped.signal);
      return { host: address, port };
    },
    hasRoom,
    oldestRequestMs: () => live.oldestStartedAtMs,
    setCertificate(certificate) {
      assert(settings.tls !== undefined, 'only an HTTPS listener has a certificate');
      exchangeCertificate(app.server, certificate);
    },
    drain(timeoutMs) {
      draining ??= drain(timeoutMs);
      return draining;
    },
  };
}

/** What clients of the services beside S3 share. */
function serviceShares({ threads }: ListenerSettings) {
  const metricsMax = shareOfThread(LIMITS.metricsAnswersMax, { threads });
  const unverifiedMax = shareOfThread(LIMITS.unverifiedBodiesBytesMax, {
    threads,
    least: 2 * LIMITS.identityBodyBytesMax,
  });
  const provedMax = shareOfThread(LIMITS.provedBodiesBytesMax, {
    threads,
    least: LIMITS.provedBodiesBytesMax / 4,
  });
  const publicMax = shareOfThread(LIMITS.publicAnswersBytesMax, {
    threads,
    least: LIMITS.publicAnswersBytesMax / 4,
  });
  return {
    metricsAnswers: createFairShare({ limit: metricsMax, weights: ADDRESS_WEIGHTS }),
    publicAnswers: createFairShare({ limit: publicMax, weights: ADDRESS_WEIGHTS }),
    unverifiedBodies: createFairShare({ limit: unverifiedMax, weights: ADDRESS_WEIGHTS }),
    provedBodies: createFairShare({ limit: provedMax, weights: SHARE_WEIGHTS }),
  };
}

/** What bounds forms before it is known who has sent them. */
function formIntake(
  shedding: Shedding,
  settings: ListenerSettings,
): Pick<S3Dependencies, 'shedding' | 'unverifiedForms'> {
  const limit = shareOfThread(LIMITS.unverifiedFormsBytesMax, settings);
  return { shedding, unverifiedForms: createFairShare({ limit, weights: ADDRESS_WEIGHTS }) };
}

/** Throw SlowDown for a request that the server, or its tenant's share, has no room for. */
function overloadChecks(
  live: LiveExchanges,
  shedding: Shedding,
): Pick<S3Dependencies, 'requireRoom' | 'requireShare' | 'requireTaken'> {
  const refuse = (overload: ReturnType<LiveExchanges['overload']>, exchange: Exchange) => {
    if (overload !== undefined) throw shedding.refuse(overload, exchange.tenant);
  };
  return {
    requireRoom: (exchange) => refuse(live.overload(), exchange),
    requireShare: (exchange) => refuse(live.admit(exchange), exchange),
    requireTaken: (exchange) => refuse(live.untaken(exchange), exchange),
  };
}

/** Fastify, with one route for everything and nothing of its own to say. */
function carrier(options: {
  settings: ListenerSettings;
  live: LiveExchanges;
  refuse(socket: Socket, error: AppError): void;
  /** Calls `begin` when it is the request's turn, and never on a connection that has ended. */
  admit(request: IncomingMessage, response: ServerResponse, begin: RequestListener): void;
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  reads: ReadTurns;
}): FastifyInstance {
  const { settings, live, refuse, admit, serve, reads } = options;
  /** Apart from bodies: a crowd of the one takes nothing from the other. */
  const heads = createReadTurns(HEAD_TURNS);
  /** That wait to be decrypted. */
  const records = createFairShare({
    limit: shareOfThread(LIMITS.intakeQueuesBytesMax, settings),
    weights: SHARE_WEIGHTS,
  });
  const carry = ({ raw: request }: FastifyRequest, reply: FastifyReply) => {
    reply.hijack();
    void serve(request, reply.raw);
  };
  const breakOff = (socket: Socket, error: AppError) => {
    if (!live.breakOff(socket, error)) refuse(socket, error);
  };
  const app = fastify({
    logger: false,
    // Its own would answer JSON beside what we say (onClientError).
    clientErrorHandler: () => {},
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: false },
    // A path that its router cannot read is ours to judge.
    frameworkErrors: (_error, request, reply) => carry(request, reply),
    serverFactory: (onRequest) =>
      createListener(settings, {
        onRequest: (request, response) => admit(request, response, onRequest),
        onConnection: (socket) => live.connections.open(socket),
        onSecured: (socket) => live.connections.secure(socket),
        onClientError(error, socket) {
          const appError = protocolError(error);
          if (appError === undefined) socket.destroy();
          else breakOff(socket, appError);
        },
        onCutBody: (socket) => breakOff(socket, new AppError('IncompleteBody')),
        onTunnel: (socket) => breakOff(socket, new AppError('MethodNotAllowed')),
        onLongHead: (socket) => breakOff(socket, new AppError('RequestHeaderSectionTooLarge')),
        mayParseOn: (socket, pieceCount, goOn) =>
          reads.mayGoOn(live.connections.pathOf(socket), pieceCount * CHUNK_COST_BYTES, goOn),
        mayParseHead: (socket, costBytes, goOn) =>
          heads.mayGoOn(live.connections.pathOf(socket), costBytes, goOn),
        mayShakeHands: (socket, goOn) =>
          heads.mayGoOn(live.connections.pathOf(socket), HANDSHAKE_COST_BYTES, goOn),
        mayDecrypt: (socket, recordCount, goOn) =>
          reads.mayGoOn(live.connections.pathOf(socket), recordCount * RECORD_COST_BYTES, goOn),
        holdRecords(socket, sizeBytes) {
          const path = live.connections.pathOf(socket);
          if (!records.mayTake(path, sizeBytes)) return undefined;
          records.take(path, sizeBytes);
          return () => records.giveBack(path, sizeBytes);
        },
      }),
  });
  // Without a body in its eyes, fastify looks at neither Content-Type nor length: bodies stay unread streams.
  for (const method of METHODS) {
    if (method !== 'CONNECT') app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
  app.all('*', carry);
  app.setNotFoundHandler(carry);
  return app;
}
