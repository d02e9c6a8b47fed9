// /api/v1 as a service of the gateway: credentials (extensions 1.1), rates, bodies, and the documents that anybody may read.

import type { ApiCaller } from '../../accounts/tenancy.ts';
import { must } from '../../base/assert.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { ownSigner } from '../../types/tenant.ts';
import { withAnswerMemory } from '../http/answer-memory.ts';
import type { Exchange } from '../http/exchange.ts';
import { readProved } from '../http/read-whole.ts';
import { anybody } from '../http/serve-route.ts';
import {
  type AuthenticationPolicy,
  JSON_TYPE,
  pathOf,
  type RequestRecord,
  type RouteAnswer,
  type Service,
  type ServiceDependencies,
} from '../http/service-route.ts';
import { takePlaces } from '../http/shedding.ts';
import { readDocsFile } from './docs-page.ts';
import { renderEnvelopeError } from './envelope.ts';
import { MANAGEMENT_BODY_BYTES_MAX, MANAGEMENT_PREFIX, type ManagementApi } from './management-api.ts';
import { payerOf } from './management-context.ts';
import { IDEMPOTENCY_HEADER } from './repeated-posts.ts';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from './wire-forms.ts';

interface ManagementCaller {
  readonly caller: ApiCaller;
  readonly apiKey: string;
  readonly body: Buffer;
}

/** Characters of login and API key together. */
const CREDENTIALS_CHARACTERS_MAX = 1024;
const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i;

function apiOf({ managementApi }: ServiceDependencies): ManagementApi {
  return must(managementApi, 'without it none of its rows is in use');
}

const basicCredentials: AuthenticationPolicy<ManagementCaller> = {
  name: 'Basic, login and API key',
  async authenticate(deps, exchange, record) {
    deps.requireRoom(exchange);
    requirePrivate(deps, exchange);
    refuseForeignPages(exchange);
    const given = credentialsIn(exchange.headers.values.authorization);
    const { address } = exchange.tenant;
    const authenticate = async () =>
      given && exchange.inTime(apiOf(deps).authenticate({ ...given, address }));
    const caller = await authenticate();
    if (given === undefined || caller === undefined) throw wrongCredentials();
    noteCaller(record, exchange, caller);
    exchange.proveAccount(payerOf(caller), ownSigner(caller.keyId));
    apiOf(deps).rates.take(caller.keyId, exchange.request.method ?? '');
    deps.requireShare(exchange);
    const isThere = exchange.body.isAtEnd;
    const body = await bodyOf(deps, exchange);
    if (isThere) return { caller, apiKey: given.apiKey, body };
    // The client has taken its time for the body, also for the end of an empty one: its key may be gone since.
    const present = await authenticate();
    if (present === undefined) throw wrongCredentials();
    return { caller: present, apiKey: given.apiKey, body };
  },
};

/** An API key must not be read by others on its way: the rule is that of keys of customers. */
function requirePrivate({ takesSecretsOverHttp }: ServiceDependencies, { client }: Exchange): void {
  if (client.isPrivate || takesSecretsOverHttp) return;
  const message =
    'API keys are taken over HTTPS only. The request was refused before anything of it was looked at.';
  throw new AppError('InvalidRequest', { message });
}

/**
 * Browsers send the login that somebody has once given with whatever a page of another site asks for: a form there may hold any
 * text as its body. Browsers say so by Sec-Fetch-Site (W3C Fetch Metadata), older ones by Origin; other programs send neither.
 */
function refuseForeignPages({ request, headers, client }: Exchange): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  const { origin, 'sec-fetch-site': site } = headers.values;
  const isOwn = site === undefined ? isOriginOf(client.host, origin) : OWN_SITES.has(site);
  if (isOwn) return;
  throw new AppError('AccessDenied', { message: 'Pages of other sites may not change anything here.' });
}

const OWN_SITES: ReadonlySet<string> = new Set(['same-origin', 'none']);

function isOriginOf(host: string, origin: string | undefined): boolean {
  return origin === undefined || origin.replace(/^https?:\/\//, '').toLowerCase() === host.toLowerCase();
}

function credentialsIn(header: string | undefined): { login: string; apiKey: string } | undefined {
  const encoded = BASIC.exec(header?.slice(0, 2 * CREDENTIALS_CHARACTERS_MAX) ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon <= 0 || colon === text.length - 1 || text.length > CREDENTIALS_CHARACTERS_MAX) return undefined;
  return { login: text.slice(0, colon), apiKey: text.slice(colon + 1) };
}

function wrongCredentials(): AppError {
  return new AppError('AccessDenied', {
    status: 401,
    message: 'Send the e-mail address of a user and one of its API keys by HTTP authentication (Basic).',
    headers: { 'WWW-Authenticate': 'Basic realm="Holdfast account management", charset="UTF-8"' },
  });
}

function noteCaller(record: RequestRecord, exchange: Exchange, { keyId }: ApiCaller): void {
  record.accessKey = keyId;
  record.action = `management:${exchange.request.method}`;
}

/** Throws MaxMessageLengthExceeded with status 413, SlowDown. */
async function bodyOf(deps: ServiceDependencies, exchange: Exchange): Promise<Buffer> {
  const bodyBytesMax = MANAGEMENT_BODY_BYTES_MAX;
  try {
    return await readProved(deps, exchange, { bodyBytesMax, bodyMaxMs: LIMITS.operatorBodyMaxMs });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'MaxMessageLengthExceeded') throw error;
    const message = `The body has more than ${bodyBytesMax} bytes.`;
    throw new AppError('MaxMessageLengthExceeded', { status: 413, message });
  }
}

export const managementService: Service<ManagementCaller> = {
  authentication: basicCredentials,
  logLevel: 'info',
  renderError: renderEnvelopeError,
  answer({ deps, exchange, caller: { caller, apiKey, body } }) {
    const { request, uri, headers } = exchange;
    const method = request.method ?? '';
    const payer = payerOf(caller);
    const act = () =>
      apiOf(deps).answer({ method, url: uri, body, caller, payer, gone: () => exchange.signal });
    // Whoever may ask a thousand times a minute may ask for the longest page each time.
    if (method === 'GET')
      return exchange.inTime(withAnswerMemory(deps, { exchange, sizeBytes: pageBytes(uri) }, act));
    const key = headers.values[IDEMPOTENCY_HEADER];
    if (method !== 'POST' || key === undefined) return act();
    const post = { key, keyId: caller.keyId, payer, apiKey, url: uri, body };
    return apiOf(deps).repeats.once(post, act);
  },
};

/** Of as many records as are asked for, each as long as it may be. */
function pageBytes(uri: string): number {
  const size = Number(new URLSearchParams(uri.slice(pathOf(uri).length)).get('size'));
  const { managementPageMemoryBytes, managementRecordMemoryBytes } = LIMITS;
  const records = Math.min(size > 0 ? size : PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX);
  return Math.max(managementPageMemoryBytes, records * managementRecordMemoryBytes);
}

function requireRead({ request }: Exchange): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  throw new AppError('MethodNotAllowed', { headers: { Allow: 'GET, HEAD' } });
}

/** There is nothing in it that is not in the documentation of every Holdfast: anybody may read it. */
export const managementDocument: Service<undefined> = {
  authentication: anybody,
  logLevel: 'debug',
  renderError: renderEnvelopeError,
  async answer({ deps, exchange }): Promise<RouteAnswer> {
    requireRead(exchange);
    const answer = { status: 200, contentType: JSON_TYPE, body: await apiOf(deps).document() };
    return boundPublic(deps, exchange, answer);
  },
};

export const managementDocs: Service<undefined> = {
  authentication: anybody,
  logLevel: 'debug',
  renderError: renderEnvelopeError,
  async answer({ deps, exchange }) {
    requireRead(exchange);
    deps.requireRoom(exchange);
    return boundPublic(deps, exchange, await readDocsFile(exchange.uri, `${MANAGEMENT_PREFIX}/docs`));
  },
};

/** Over a megabyte for a request of some bytes: TLS makes a copy for each that does not take it. SlowDown. */
function boundPublic(
  { shedding, publicAnswers }: ServiceDependencies,
  exchange: Exchange,
  answer: RouteAnswer,
): RouteAnswer {
  takePlaces(shedding, publicAnswers, { exchange, units: answer.body.length, until: exchange.closed });
  return answer;
}
