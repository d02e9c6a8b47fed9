// The doors beside S3, on hosts that name no bucket: health, metrics, the operator API. Small answers,
// whole bodies. What the operator API does is gateway/operator-api/operator-api.ts; here it is read, verified and answered.
import { hash } from 'node:crypto';
import type { FairShare } from '../../base/async/fair-share.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { authenticate, findClaimed, type SigningRules } from '../auth/authenticate.ts';
import type { SignedHosts } from '../auth/authentication-request.ts';
import type { Identities } from '../auth/identities.ts';
import {
  errorAnswer,
  OPERATOR_BODY_BYTES_MAX,
  OPERATOR_PREFIX,
  type OperatorAnswer,
  type OperatorRequest,
} from '../operator-api/operator-api.ts';
import { parseTarget } from '../s3/request/target.ts';
import { sendAnswer } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { redact, redactOptional } from './redact.ts';
import { requireSingleHeaders } from './request-headers.ts';
import type { RequestIds } from './request-ids.ts';
import type { Shedding } from './shedding.ts';

export interface ServiceDependencies {
  identities: Identities;
  clock: ClockPort;
  ids: RequestIds;
  log: Logger;
  /** True while requests can be served; false makes load balancers look elsewhere. */
  isReady(): boolean;
  readMetrics(): Promise<{ contentType: string; text: string }>;
  /** Of answers of /metrics that are under way, by address. */
  readonly metricsAnswers: FairShare;
  readonly shedding: Shedding;
  answerOperator(request: OperatorRequest): Promise<OperatorAnswer>;
  hostsOf(exchange: Exchange): SignedHosts;
  /** Of bodies that are read before it is known whether their sender has the secret: bytes, by address. */
  readonly unverifiedBodies: FairShare;
}

interface SmallAnswer {
  status: number;
  contentType: string;
  text: string;
  headers?: Readonly<Record<string, string>>;
}

/** What the log says of a request beside what its answer shows. */
interface DoorRecord {
  readonly requestId: string;
  accountId?: string;
  accessKey?: string;
  errorCode?: string;
}

type Door = (deps: ServiceDependencies, exchange: Exchange, record: DoorRecord) => Promise<SmallAnswer>;

const JSON_TYPE = 'application/json';
/** A service name of its own, so that no signature made for S3 opens it; SigV2 names none. */
const OPERATOR_RULES: SigningRules = { service: 'holdfast', takesSigV2: false };
const OPERATOR_ROOM = '/holdfast-admin';

/** The door that a path leads to; undefined: it is S3's. */
export function findDoor(uri: string): Door | undefined {
  const path = pathOf(uri);
  if (path === '/health/live') return readOnly(answerHealth(() => true));
  if (path === '/health/ready') return readOnly(answerHealth((deps) => deps.isReady()));
  if (path === '/metrics') return readOnly(answerMetrics);
  if (isWithin(path, '/health') || isWithin(path, '/metrics')) return answerNotFound;
  return isWithin(path, OPERATOR_ROOM) ? answerOperator : undefined;
}

export async function serveDoor(deps: ServiceDependencies, exchange: Exchange, door: Door): Promise<void> {
  const record: DoorRecord = { requestId: deps.ids.next().requestId };
  const answer = await door(deps, exchange, record).catch((error: unknown) => refusal(deps, error, record));
  const headers = ['x-amz-request-id', record.requestId, 'Content-Type', answer.contentType];
  headers.push(...Object.entries(answer.headers ?? {}).flat());
  const isBare = exchange.request.method === 'HEAD' || answer.status === 204;
  const body = isBare ? undefined : ({ kind: 'bytes', bytes: answer.text } as const);
  await sendAnswer(exchange, { status: answer.status, headers, body }, deps.clock);
  logRequest(deps, exchange, { record, status: answer.status });
}

/** What operators do is logged like every S3 request; what probes and scrapers ask every few seconds only for debugging. */
function logRequest(
  deps: ServiceDependencies,
  exchange: Exchange,
  { record, status }: { record: DoorRecord; status: number },
): void {
  const { request, uri, client, body, sentBytes, isAborted, headers, startedAtMs } = exchange;
  const path = pathOf(uri);
  const fields = {
    requestId: record.requestId,
    account: record.accountId,
    path: redact(path),
    accessKey: record.accessKey,
    status,
    errorCode: record.errorCode,
    isAborted: isAborted || undefined,
    receivedBytes: body.receivedBytes,
    sentBytes,
    totalMs: Math.round((deps.clock.monotonicMs() - startedAtMs) * 1000) / 1000,
    method: request.method,
    remoteAddress: client.remoteAddress,
    userAgent: redactOptional(headers.values['user-agent']),
  };
  if (isWithin(path, OPERATOR_ROOM)) deps.log.info(fields, 'request');
  else deps.log.debug(fields, 'request');
}

function pathOf(uri: string): string {
  return uri.split('?', 1)[0] ?? '';
}

function isWithin(path: string, room: string): boolean {
  return path === room || path.startsWith(`${room}/`);
}

function refusal(deps: ServiceDependencies, error: unknown, record: DoorRecord): SmallAnswer {
  const { requestId } = record;
  if (!(error instanceof AppError)) deps.log.error({ requestId, err: error }, 'request-failed');
  const appError = error instanceof AppError ? error : new AppError('InternalError', { cause: error });
  record.errorCode = appError.code;
  return { ...errorAnswer(appError, requestId), contentType: JSON_TYPE, headers: appError.headers };
}

function readOnly(door: Door): Door {
  return (deps, exchange, record) => {
    const { method } = exchange.request;
    if (method === 'GET' || method === 'HEAD') return door(deps, exchange, record);
    return Promise.reject(new AppError('MethodNotAllowed', { headers: { Allow: 'GET, HEAD' } }));
  };
}

function answerHealth(isWell: (deps: ServiceDependencies) => boolean): Door {
  return async (deps) => {
    const isOk = isWell(deps);
    const text = JSON.stringify({ status: isOk ? 'ok' : 'unavailable' });
    return { status: isOk ? 200 : 503, contentType: JSON_TYPE, text };
  };
}

/**
 * Not for who comes through a proxy: that is anybody, and a proxy cannot tell this path from a key of a bucket in the host.
 * The answer is large and for anybody, so that those under way are bounded, by address too.
 */
async function answerMetrics(deps: ServiceDependencies, exchange: Exchange): Promise<SmallAnswer> {
  if (exchange.client.isProxied) return answerNotFound();
  takePlace(deps, deps.metricsAnswers, { exchange, units: 1, until: exchange.closed });
  return { status: 200, ...(await deps.readMetrics()) };
}

/** SlowDown where the client's address has used up its share. What is taken is given back when `until` has resolved. */
function takePlace(
  deps: ServiceDependencies,
  places: FairShare,
  { exchange, units, until }: { exchange: Exchange; units: number; until: Promise<void> },
): void {
  const path = [exchange.tenant.address];
  if (!places.mayTake(path, units)) {
    throw deps.shedding.refuse({ reason: 'unproved', share: places.usedUp(units) }, exchange.tenant);
  }
  places.take(path, units);
  void until.then(() => places.giveBack(path, units));
}

async function answerNotFound(): Promise<SmallAnswer> {
  throw new AppError('NoSuchEntity');
}

async function answerOperator(
  deps: ServiceDependencies,
  exchange: Exchange,
  record: DoorRecord,
): Promise<SmallAnswer> {
  const { uri, request } = exchange;
  const method = request.method ?? '';
  requireSingleHeaders(exchange.headers);
  if (!uri.startsWith(`${OPERATOR_PREFIX}/`)) {
    throw new AppError('NoSuchEntity', { message: 'There is no such endpoint.' });
  }
  const { account, body } = await takeOperatorRequest(deps, exchange, record);
  const answer = await deps.answerOperator({
    ...{ method, url: uri, body, account },
    accessKey: record.accessKey ?? '',
  });
  return { ...answer, contentType: JSON_TYPE };
}

/**
 * The account that has signed, and the body. Who sends its digest is heard only when the signature fits. Of others the
 * head must name an operator's access key at least, and what they hold until their body is there is bounded by address.
 */
async function takeOperatorRequest(
  deps: ServiceDependencies,
  exchange: Exchange,
  record: DoorRecord,
): Promise<Pick<OperatorRequest, 'account' | 'body'>> {
  const sentDigest = exchange.headers.values['x-amz-content-sha256'];
  if (sentDigest !== undefined) {
    const account = await identifyOperator(deps, exchange, { payloadHash: sentDigest, record });
    const body = await readWhole(exchange, deps.clock);
    if (sentDigest.toLowerCase() !== hash('sha256', body)) throw new AppError('XAmzContentSHA256Mismatch');
    return { account, body };
  }
  // Clients of other services than S3 sign the digest without sending it: the body must be read to know.
  await requireOperatorKey(deps, exchange);
  const isRead = Promise.withResolvers<void>();
  const units = bodyBytesOf(exchange);
  takePlace(deps, deps.unverifiedBodies, { exchange, units, until: isRead.promise });
  try {
    const body = await readWhole(exchange, deps.clock);
    const payloadHash = hash('sha256', body);
    return { account: await identifyOperator(deps, exchange, { payloadHash, record }), body };
  } finally {
    isRead.resolve();
  }
}

/** What a body may have at most, by the head. Throws MaxMessageLengthExceeded. */
function bodyBytesOf({ body }: Exchange): number {
  const { declaredBytes = OPERATOR_BODY_BYTES_MAX } = body;
  if (declaredBytes > OPERATOR_BODY_BYTES_MAX) throw new AppError('MaxMessageLengthExceeded');
  return body.isAtEnd ? 0 : declaredBytes;
}

/** AccessDenied unless the head names the access key of an operator; whether its holder has sent it is seen later. */
async function requireOperatorKey(deps: ServiceDependencies, exchange: Exchange): Promise<void> {
  const claimed = await findClaimed(authentication(deps), headOf(deps, exchange));
  if (claimed?.identity.account.isRoot !== true) throw new AppError('AccessDenied');
}

async function identifyOperator(
  deps: ServiceDependencies,
  exchange: Exchange,
  { payloadHash, record }: { payloadHash: string; record: DoorRecord },
): Promise<OperatorRequest['account']> {
  const { caller } = await authenticate(authentication(deps), { ...headOf(deps, exchange), payloadHash });
  if (caller.kind === 'anonymous') throw new AppError('AccessDenied');
  const { account } = caller;
  exchange.proveAccount(account.accountId);
  record.accountId = account.accountId;
  record.accessKey = caller.accessKey;
  // Nothing is read of what others send.
  if (!account.isRoot) throw new AppError('AccessDenied');
  return account;
}

function authentication({ identities, clock }: ServiceDependencies) {
  return { identities, clock, rules: OPERATOR_RULES };
}

function headOf(deps: ServiceDependencies, exchange: Exchange) {
  return {
    method: exchange.request.method ?? '',
    target: parseTarget(exchange.uri, undefined),
    headers: exchange.headers,
    hosts: deps.hostsOf(exchange),
  };
}

/** Throws MaxMessageLengthExceeded, RequestTimeout, and what the body's reader throws. */
async function readWhole(exchange: Exchange, clock: ClockPort): Promise<Buffer> {
  const { body } = exchange;
  if (body.isAtEnd) return Buffer.alloc(0);
  const isDone = new AbortController();
  void clock.sleep(LIMITS.operatorBodyMaxMs, isDone.signal).then(() => {
    if (!isDone.signal.aborted) body.fail(new AppError('RequestTimeout'));
  });
  try {
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    for (;;) {
      const piece = await body.read();
      if (piece === undefined) return Buffer.concat(pieces);
      sizeBytes += piece.length;
      if (sizeBytes > OPERATOR_BODY_BYTES_MAX) throw new AppError('MaxMessageLengthExceeded');
      pieces.push(piece);
    }
  } finally {
    isDone.abort();
  }
}
