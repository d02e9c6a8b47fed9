// The account management API, /api/v1 (service 4.3, extensions 1): a fastify application with one plugin for each topic, and
// an OpenAPI document that is made of the schemas by which requests are checked. Who calls, and how often, has been checked
// before (management-service.ts); who may do what is decided in src/accounts.

import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Mails } from '../../accounts/mails.ts';
import type { ApiCaller, Tenancy } from '../../accounts/tenancy.ts';
import { must } from '../../base/assert.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { ERRORS, type ErrorCode } from '../../types/errors.ts';
import { named } from '../http/json-schemas.ts';
import { createJsonService, type JsonRoute } from '../http/json-service.ts';
import type { JsonService } from '../http/service-route.ts';
import { controlAccounts } from './endpoints/control-accounts.ts';
import { invoices } from './endpoints/invoices.ts';
import { members } from './endpoints/members.ts';
import { subAccounts } from './endpoints/sub-accounts.ts';
import { usages } from './endpoints/usages.ts';
import { ERROR_ENVELOPE } from './envelope.ts';
import type { ManagementContext } from './management-context.ts';
import { createRepeatedPosts, IDEMPOTENCY_HEADER, type RepeatedPosts } from './repeated-posts.ts';
import { createRequestRates, type RequestRateLimits, type RequestRates } from './request-rates.ts';

export const MANAGEMENT_PREFIX = '/api/v1';
/** Bytes of a request's body: the largest has some forty short fields. */
export const MANAGEMENT_BODY_BYTES_MAX = 256 * 1024;

const TOPICS = [controlAccounts, subAccounts, members, usages, invoices];

export interface ManagementApi extends JsonService<ApiCaller> {
  readonly authenticate: Tenancy['authenticate'];
  readonly mails: Pick<Mails, 'resetPassword'>;
  readonly rates: RequestRates;
  readonly repeats: RepeatedPosts;
  /** OpenAPI 3.1, as JSON. */
  document(): Promise<string>;
  /** For tests. */
  routes(): Promise<readonly JsonRoute[]>;
}

export interface ManagementDependencies extends ManagementContext {
  readonly mails: Pick<Mails, 'resetPassword'>;
  readonly metadata: MetadataPort;
  readonly clock: Pick<ClockPort, 'monotonicMs'>;
  readonly random: RandomPort;
  readonly log: Pick<Logger, 'warn'>;
  readonly rateLimits: RequestRateLimits;
}

export function createManagementApi(deps: ManagementDependencies): ManagementApi {
  let app: FastifyInstance | undefined;
  const service = createJsonService<ApiCaller>({
    bodyBytesMax: MANAGEMENT_BODY_BYTES_MAX,
    isLenient: true,
    async plugin(scope) {
      app = scope;
      scope.addSchema({ $id: 'Error', ...ERROR_ENVELOPE });
      await scope.register(swagger, DOCUMENT);
      for (const topic of TOPICS) {
        await nextTurn();
        await scope.register(topic, { prefix: MANAGEMENT_PREFIX, context: deps });
      }
    },
  });
  let document: Promise<string> | undefined;
  async function writeDocument(): Promise<string> {
    await service.routes();
    return JSON.stringify(must(app, 'it is ready').swagger());
  }
  return {
    ...service,
    authenticate: (given) => deps.tenancy.authenticate(given),
    mails: deps.mails,
    rates: createRequestRates({ clock: deps.clock, limits: deps.rateLimits }),
    repeats: createRepeatedPosts(deps),
    document: () => {
      document ??= writeDocument();
      return document;
    },
  };
}

const DOCUMENT: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast account management',
      version: '1',
      description:
        'Accounts of customers, their members, and what they are charged. Every answer is an envelope: success, message, data, ' +
        'errors. Fields and parameters that are not known are ignored; a wrong type is refused, and errors names the field. Lists ' +
        'have pages from 1 on. Pages begin at the lowest id, usages and invoices at the newest.',
    },
    tags: [
      { name: 'control accounts', description: 'Resellers.' },
      { name: 'sub-accounts', description: 'Customers: accounts of S3 that somebody is charged for.' },
      { name: 'members', description: 'People of a sub-account.' },
      { name: 'usages', description: 'What was stored and asked for, by day (UTC).' },
      { name: 'invoices', description: 'What a sub-account is charged for a month.' },
    ],
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'basic',
          description: 'The user is the e-mail address of a partner user, the password one of its API keys.',
        },
      },
    },
    security: [{ apiKey: [] }],
  },
  refResolver: {
    buildLocalReference: (json: { $id?: unknown }, _base: unknown, _fragment: string, at: number) =>
      typeof json.$id === 'string' ? json.$id : `schema-${at}`,
  },
  transform: documentCall,
};

/** Errors that every call may answer, by status. */
const OF_EVERY_CALL: Readonly<Record<number, string>> = {
  400: 'A field or parameter is wrong, or the request may be read by others on its way; errors names the field.',
  401: 'The credentials are absent or wrong. WWW-Authenticate is Basic.',
  403: 'The role of the caller does not allow it, or there were too many wrong credentials.',
  429: 'The key has sent too many requests in this minute. Retry-After says when there is room again.',
  500: 'An error of the server.',
  503: 'The server has too much to do. Try again.',
};

/** Adds errors, and the header of requests that may be repeated. */
function documentCall<Schema extends FastifySchema>({
  schema,
  url,
  route,
}: {
  schema: Schema;
  url: string;
  route: { method: string | string[]; config?: { errors?: readonly ErrorCode[] } };
}): { schema: Schema; url: string } {
  if ((schema as { hide?: boolean } | undefined)?.hide === true) return { schema, url };
  const codes = (route.config?.errors ?? []).map((code): [number, string] => [
    code === 'IdempotencyParameterMismatch' ? 409 : ERRORS[code].status,
    code === 'IdempotencyParameterMismatch'
      ? 'The Idempotency-Key was used by another request.'
      : ERRORS[code].message,
  ]);
  const own = Map.groupBy(codes, ([status]) => status);
  const texts = { ...OF_EVERY_CALL };
  for (const [status, some] of own) texts[status] = some.map(([, text]) => text).join('\n\n');
  if (schema.body !== undefined) texts[413] = 'The body is too large.';
  const errors = Object.entries(texts).map(([status, description]) => [
    status,
    { description, ...named('Error') },
  ]);
  const response = { ...(schema.response as object), ...Object.fromEntries(errors) };
  const isRepeatable = route.method === 'POST';
  return { schema: { ...schema, ...(isRepeatable && { headers: REPEATABLE }), response }, url };
}

const REPEATABLE = {
  type: 'object',
  properties: {
    [IDEMPOTENCY_HEADER]: {
      type: 'string',
      minLength: 1,
      maxLength: 255,
      pattern: '^[ -~]+$',
      description:
        'Sent again within a day with the same body, the request is answered as before, and not done again.',
    },
  },
};
