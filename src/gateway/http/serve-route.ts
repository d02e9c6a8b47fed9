// Serves a request for another service than S3: begins the record, learns who asks, answers, logs. What answers is the
// service's own (Service).
import { AppError } from '../../types/errors.ts';
import type { AccountId } from '../../types/names.ts';
import { sendAnswer } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { redact, redactError, redactOptional } from './redact.ts';
import { refusalFields } from './refusal-fields.ts';
import {
  type AuthenticationPolicy,
  JSON_TYPE,
  pathOf,
  type RequestRecord,
  type RouteAnswer,
  type RouteRules,
  type Service,
  type ServiceDependencies,
  type ServiceRoute,
} from './service-route.ts';

/** Anybody may ask, and is not asked who it is. */
export const anybody: AuthenticationPolicy<undefined> = { name: 'none', authenticate: async () => undefined };

/** The body of an error: `fields` has a message for each field of the request that is wrong, and details of others. */
export interface JsonError {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly fields: Readonly<Record<string, string | number>>;
  };
  readonly requestId: string;
}

/** How a service that has no form of its own says an error. */
export function renderJsonError(error: AppError, requestId: string): RouteAnswer {
  const { code, status, headers } = error;
  const { message, fields } = redactError(error);
  const json: JsonError = { error: { code, message, fields }, requestId };
  return { status, contentType: JSON_TYPE, body: JSON.stringify(json), headers };
}

/** The row of a service. */
export function serviceRow<Authenticated>(
  name: string,
  rules: RouteRules,
  service: Service<Authenticated>,
): ServiceRoute {
  return {
    ...rules,
    name,
    authentication: service.authentication.name,
    serve: ({ services }, exchange) => serveRoute(services, exchange, service),
  };
}

async function serveRoute<Authenticated>(
  deps: ServiceDependencies,
  exchange: Exchange,
  service: Service<Authenticated>,
): Promise<void> {
  const { requestId } = deps.ids.next();
  const record: RequestRecord = { requestId };
  const answer = await answerOf(deps, exchange, { service, record });
  const headers = ['x-amz-request-id', requestId, 'Content-Type', answer.contentType];
  headers.push(...Object.entries(answer.headers ?? {}).flat());
  const isBare = exchange.request.method === 'HEAD' || answer.status === 204;
  const body = isBare ? undefined : ({ kind: 'bytes', bytes: answer.body } as const);
  await sendAnswer(exchange, { status: answer.status, headers, body }, deps.clock);
  if (service.isMetered) meterCall(deps, exchange, { record, status: answer.status });
  deps.log[service.logLevel](lineOf(deps, exchange, { record, status: answer.status }), 'request');
}

function meterCall(
  { traffic }: ServiceDependencies,
  { body, sentBytes }: Exchange,
  { record: { accountId }, status }: { record: RequestRecord; status: number },
): void {
  if (accountId === undefined || status >= 500) return;
  const bytes = { uploadBytes: body.receivedBytes, downloadBytes: sentBytes };
  const charged = { accountId: accountId as AccountId };
  traffic.note(charged, { kind: 'other', ...bytes, wroteBytes: 0, readBytes: 0, deleteBytes: 0 });
}

async function answerOf<Authenticated>(
  deps: ServiceDependencies,
  exchange: Exchange,
  { service, record }: { service: Service<Authenticated>; record: RequestRecord },
): Promise<RouteAnswer> {
  const { requestId } = record;
  try {
    const caller = await service.authentication.authenticate(deps, exchange, record);
    return await service.answer({ deps, exchange, caller, record });
  } catch (error) {
    if (!(error instanceof AppError)) deps.log.error({ requestId, err: error }, 'request-failed');
    const appError = error instanceof AppError ? error : new AppError('InternalError', { cause: error });
    record.errorCode = appError.code;
    return service.renderError(appError, requestId);
  }
}

/** Fields of the line that a request leaves in the log. */
function lineOf(
  { clock }: ServiceDependencies,
  exchange: Exchange,
  { record, status }: { record: RequestRecord; status: number },
): Record<string, unknown> {
  const { request, uri, client, body, sentBytes, isAborted, headers, startedAtMs } = exchange;
  return {
    requestId: record.requestId,
    account: record.accountId,
    path: redact(pathOf(uri)),
    accessKey: record.accessKey,
    action: record.action,
    status,
    errorCode: record.errorCode,
    ...refusalFields(record),
    isAborted: isAborted || undefined,
    receivedBytes: body.receivedBytes,
    sentBytes,
    totalMs: Math.round((clock.monotonicMs() - startedAtMs) * 1000) / 1000,
    method: request.method,
    remoteAddress: client.remoteAddress,
    userAgent: redactOptional(headers.values['user-agent']),
  };
}
