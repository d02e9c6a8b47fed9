// The operator API, /holdfast-admin/v1: a fastify application with one plugin for each topic. It describes itself: its
// OpenAPI document is made of the schemas by which requests are checked and answers written. Who calls has been checked
// before (operator-service.ts).
import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import { must } from '../../base/assert.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import { ERRORS, type ErrorCode } from '../../types/errors.ts';
import { mapOf, named, objectOf, textOf } from '../http/json-schemas.ts';
import { createJsonService } from '../http/json-service.ts';
import type { JsonError } from '../http/serve-route.ts';
import { authorizeAction } from '../identity-api/authorize-action.ts';
import { ACCESS_KEY, accessKeys } from './endpoints/access-keys.ts';
import { ACCOUNT, accounts } from './endpoints/accounts.ts';
import { bucketCompliance } from './endpoints/bucket-compliance.ts';
import { clock } from './endpoints/clock.ts';
import { COMPOSITIONS, compositions } from './endpoints/compositions.ts';
import { events } from './endpoints/events.ts';
import { fsck } from './endpoints/fsck.ts';
import { invoices } from './endpoints/invoices.ts';
import { jobs } from './endpoints/jobs.ts';
import { lifecycle } from './endpoints/lifecycle.ts';
import { mails } from './endpoints/mails.ts';
import { KEY_ROTATION, masterKeys } from './endpoints/master-keys.ts';
import { PARTNER, PARTNER_USER, partners } from './endpoints/partners.ts';
import { quotas } from './endpoints/quotas.ts';
import { status } from './endpoints/status.ts';
import { tenants } from './endpoints/tenants.ts';
import { usages } from './endpoints/usages.ts';
import type { OperatorCaller, OperatorContext } from './operator-context.ts';

export const OPERATOR_PREFIX = '/holdfast-admin/v1';

/** Bytes of a request body at most, where its digest is not in the head: the largest but one has a few short fields. */
export const OPERATOR_BODY_BYTES_MAX = 64 * 1024;
/** Where it is: the largest there is has a document of lifecycle rules, as a string of JSON. */
export const OPERATOR_SIGNED_BODY_BYTES_MAX = 768 * 1024;

const TOPICS = [
  accounts,
  partners,
  tenants,
  mails,
  accessKeys,
  masterKeys,
  clock,
  status,
  jobs,
  compositions,
  events,
  bucketCompliance,
  lifecycle,
  quotas,
  usages,
  invoices,
  fsck,
];

export function createOperatorApi(
  context: OperatorContext,
): ReturnType<typeof createJsonService<OperatorCaller>> {
  return createJsonService({
    bodyBytesMax: OPERATOR_SIGNED_BODY_BYTES_MAX,
    async plugin(app) {
      for (const [$id, schema] of Object.entries(NAMED)) app.addSchema({ $id, ...schema });
      await app.register(swagger, DOCUMENT);
      app.addHook('onRequest', requirePermission);
      app.addHook('preHandler', requireSecondActions);
      for (const topic of TOPICS) {
        await nextTurn();
        await app.register(topic, { prefix: OPERATOR_PREFIX, context });
      }
      await app.register(openApi, { prefix: OPERATOR_PREFIX });
    },
  });
}

/** Every endpoint is an action that policies may name: `holdfast:` and its operation id. Throws AccessDenied. */
async function requirePermission(request: FastifyRequest): Promise<void> {
  const { schema } = request.routeOptions;
  // A path without an endpoint is refused by itself.
  if (schema === undefined) return;
  const operationId = must(schema.operationId, 'every endpoint has a name');
  const { asker } = request.getDecorator<OperatorCaller>('caller');
  const action = `holdfast:${operationId}`;
  asker.record.action = action;
  await requireAction(asker, action);
}

/** Beside it, what a request asks for that shows secrets, or writes where the endpoint reads. Throws AccessDenied. */
async function requireSecondActions(request: FastifyRequest): Promise<void> {
  const { asker } = request.getDecorator<OperatorCaller>('caller');
  for (const name of request.routeOptions.config.needsToo?.(request) ?? [])
    await requireAction(asker, `holdfast:${name}`);
}

async function requireAction(asker: OperatorCaller['asker'], action: string): Promise<void> {
  await authorizeAction(asker, {
    action,
    resource: '*',
    resourceAccount: asker.account.accountId,
    contextOf: () => undefined,
  });
}

async function openApi(app: FastifyInstance): Promise<void> {
  app.route({
    method: 'GET',
    url: '/openapi.json',
    schema: {
      operationId: 'GetOpenApi',
      summary: 'Read the OpenAPI document',
      tags: ['document'],
      response: {
        200: { description: 'An OpenAPI 3.1 document.', type: 'object', additionalProperties: true },
      },
    },
    handler: async () => app.swagger(),
  });
}

const ERROR = objectOf<JsonError>({
  error: objectOf<JsonError['error']>({
    code: textOf('One of docs/errors.md.'),
    message: textOf('For people.'),
    fields: {
      description: 'What is wrong, by the name of the field.',
      ...mapOf({ type: ['string', 'number'] }),
    },
  }),
  requestId: textOf('As in the header x-amz-request-id, and in the log of the server.'),
});

/** What several answers share. All are added here: a plugin with schemas of its own would compile with an ajv of its own. */
const NAMED = {
  Error: ERROR,
  Account: ACCOUNT,
  AccessKey: ACCESS_KEY,
  KeyRotation: KEY_ROTATION,
  Compositions: COMPOSITIONS,
  Partner: PARTNER,
  PartnerUser: PARTNER_USER,
};

const DOCUMENT: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast operator API',
      version: '1',
      description:
        'What the holdfast command line tool calls. Only the root account may call it. Bodies are JSON objects; fields ' +
        'that are not known are refused.',
    },
    components: {
      securitySchemes: {
        sigV4: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'AWS Signature Version 4 of a request to the service "holdfast", in any region.',
        },
      },
    },
    security: [{ sigV4: [] }],
  },
  refResolver: {
    buildLocalReference: (json: { $id?: unknown }, _base: unknown, _fragment: string, at: number) =>
      typeof json.$id === 'string' ? json.$id : `schema-${at}`,
  },
  transform: withErrors,
};

/** Errors that every call may answer: of authentication, of a body that is not taken, and of the server. */
const OF_EVERY_CALL: readonly ErrorCode[] = [
  'ValidationError',
  'AuthorizationHeaderMalformed',
  'XAmzContentSHA256Mismatch',
  'MaxMessageLengthExceeded',
  'RequestTimeout',
  'AccessDenied',
  'AccountProblem',
  'InvalidAccessKeyId',
  'RequestTimeTooSkewed',
  'SignatureDoesNotMatch',
  'InternalError',
  'SlowDown',
];

/** Adds the errors to the answers that a route documents; the routes themselves throw them. */
function withErrors<Schema extends FastifySchema>({
  schema,
  url,
  route,
}: {
  schema: Schema;
  url: string;
  route: { config?: { errors?: readonly ErrorCode[] } };
}): { schema: Schema; url: string } {
  if ((schema as { hide?: boolean } | undefined)?.hide === true) return { schema, url };
  const codes = [...new Set([...(route.config?.errors ?? []), ...OF_EVERY_CALL])];
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  const errors = [...byStatus].map(([status, some]) => {
    const description = some.map((code) => `${code}: ${ERRORS[code].message}`).join('\n\n');
    return [status, { description, ...named('Error') }];
  });
  const response = { ...(schema.response as object), ...Object.fromEntries(errors) };
  return { schema: { ...schema, response }, url };
}
