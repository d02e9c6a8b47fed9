// A JSON service: a fastify application whose routes, schemas and plugins are as in any other, but which has no listener.
// The gateway takes the connection, learns who asks and reads the body, each within its limits; then it injects the request
// here and sends what comes out. Of what the client sent only method, target, body and caller come in: no header does.
//
// Added to what fastify does by itself: 405 with Allow for a path that has other methods, the project's errors for what
// does not fit a schema, and paths taken as they stand (dots and "%61" are not resolved). What a schema does not name is
// refused or ignored, as the service wants it.
import { AsyncLocalStorage } from 'node:async_hooks';
import { METHODS } from 'node:http';
import fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyRequest } from 'fastify';
import { must } from '../../base/assert.ts';
import { createFairTurns } from '../../base/async/fair-turns.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import { parseBoundedJson, TooManyValues } from '../../base/text/bounded-json.ts';
import { writeJson } from '../../base/text/write-json.ts';
import type { SecondAction } from '../../policy/actions.ts';
import { AppError, type ErrorCode } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { createLazySchemas } from './lazy-schemas.ts';
import { JSON_TYPE, type JsonRequest, type JsonService, type RouteAnswer } from './service-route.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Errors of the route itself, for its documentation. */
    readonly errors?: readonly ErrorCode[];
    /** Says that nothing is there, where the path's parameters do not fit their schema. */
    readonly absent?: string;
    /** As `isLenient` of a service, of this route alone. */
    readonly isLenient?: boolean;
    /** Of the operator API: actions that a request needs beside the route's own, by what it asks for once it is checked. */
    readonly needsToo?: (request: FastifyRequest) => readonly SecondAction[];
  }
}

/** A schema's failure, as ajv has it. */
interface Failure {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
}

interface Call {
  readonly request: JsonRequest<unknown>;
  failure?: unknown;
  /** What the handler answers. */
  data?: unknown;
}

/** Nothing is coerced, dropped or made up. How large a number may be is for the rules behind to say. */
const CHECKS = {
  allErrors: true,
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  strictNumbers: false,
  // They are ours. To check them against the schema of schemas takes 100 ms of the start.
  validateSchema: false,
};
/** As long as a path may be. */
const PARAMETER_CHARACTERS_MAX = 16 * 1024;
/** Fields that an error names, and the characters that it repeats of each name: a client may have sent thousands. */
const NAMED_MAX = 10;
const NAME_CHARACTERS_MAX = 128;
/** Of headers that fastify sets, those that are the connection's or the gateway's to say. */
const NOT_HANDED_ON = new Set([
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
]);

export interface JsonServiceOptions {
  readonly bodyBytesMax: number;
  /**
   * Parameters of paths and queries are read as the numbers and booleans that their schemas ask for, a wrong one is named, and
   * bodies of routes that take none are ignored. Schemas of the service let unknown fields through. Default false.
   */
  readonly isLenient?: boolean;
  /** The service's routes. */
  readonly plugin: FastifyPluginAsync;
}

/** A route by its method and the pattern of its path. */
export interface JsonRoute {
  readonly method: string;
  readonly path: string;
}

/** The service, and the list of its routes for tests and tools. `ready` compiles them. */
export function createJsonService<Authenticated>({
  bodyBytesMax,
  isLenient = false,
  plugin,
}: JsonServiceOptions): JsonService<Authenticated> & { routes(): Promise<readonly JsonRoute[]> } {
  const calls = new AsyncLocalStorage<Call>();
  const callOf = () => must(calls.getStore(), 'requests come through answer()');
  const isLenientAt = ({ routeOptions }: FastifyRequest) => routeOptions.config.isLenient ?? isLenient;
  const schemas = createLazySchemas();
  const app = fastify({
    logger: false,
    schemaController: { compilersFactory: { buildValidator: schemas.buildValidator } },
    // Routes are registered in turns, which take as long as there is other work.
    pluginTimeout: 0,
    bodyLimit: bodyBytesMax,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: PARAMETER_CHARACTERS_MAX },
    ajv: { customOptions: CHECKS },
    // Injection takes a URL, which would resolve dots.
    rewriteUrl: () => callOf().request.url,
  });
  // Schemas of answers are for the document: to compile a writer for each takes longer than all that they would write. Answers
  // are written behind the injection, which would hold several copies of them.
  app.setSerializerCompiler(() => () => '');
  app.setReplySerializer((data) => {
    callOf().data = data;
    return '';
  });
  const turns = createFairTurns();
  const write = async ({ data, request: { payer } }: Call): Promise<string | Buffer> => {
    if (data === undefined) return '';
    const steps = writeJson(data);
    const first = steps.next();
    return first.done ? first.value : turns.finish({ owner: payer, work: 'answers' }, steps);
  };
  for (const method of METHODS) app.addHttpMethod(method, { hasBody: true, overrideExisting: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(JSON_TYPE, { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) =>
    parseObject(body),
  );
  app.decorateRequest('caller', { getter: () => callOf().request.caller });
  app.decorateRequest('gone', { getter: () => callOf().request.gone });
  app.setErrorHandler((error, request, reply) => {
    callOf().failure = toAppError(error, request, isLenientAt(request));
    return reply.code(500).send();
  });
  app.setNotFoundHandler(() => {
    throw noEndpoint();
  });
  app.addHook('onRequest', async (request) => {
    if (request.is404 || !isSpelt(request)) throw noEndpoint();
  });
  app.addHook('preValidation', async (request) => {
    if (isLenientAt(request)) return readParameters(request);
    const takesBody = request.routeOptions.schema?.body !== undefined;
    if (!takesBody) refuseFields(request.body as object);
  });
  const methodsByPath = registerRoutes(app, plugin);
  return {
    async ready() {
      await app.ready();
      await schemas.compileAll();
    },
    async routes() {
      await app.ready();
      return [...methodsByPath].flatMap(([path, methods]) => methods.map((method) => ({ method, path })));
    },
    async answer(request) {
      const call: Call = { request };
      const { method, body } = request;
      const headers = { 'content-type': JSON_TYPE };
      const reply = await calls.run(
        call,
        async () =>
          // Awaited inside: an injection begins when somebody waits for it.
          await app.inject({ method: method as 'GET', url: '/', headers, payload: body }),
      );
      if (call.failure !== undefined) throw call.failure;
      return answerOf(reply, await write(call));
    },
  };
}

function answerOf(
  reply: { statusCode: number; headers: NodeJS.Dict<number | string | string[]> },
  body: string | Buffer,
): RouteAnswer {
  const handedOn = Object.entries(reply.headers).filter(([name]) => !NOT_HANDED_ON.has(name));
  const headers = Object.fromEntries(handedOn.map(([name, value]) => [name, String(value)]));
  return { status: reply.statusCode, contentType: JSON_TYPE, body, headers };
}

/**
 * Registers the plugin, and beside its routes, for each of their paths, one that refuses all other methods. Gives the
 * methods of each path, which are there once the application is ready.
 */
function registerRoutes(
  app: FastifyInstance,
  plugin: FastifyPluginAsync,
): ReadonlyMap<string, readonly string[]> {
  const methodsByPath = new Map<string, string[]>();
  app.addHook('onRoute', ({ url, method, schema }) => {
    if (schema?.hide !== true) methodsByPath.set(url, [...(methodsByPath.get(url) ?? []), method].flat());
  });
  app.register(plugin);
  app.register(async (scope) => {
    for (const [url, allowed] of methodsByPath) {
      await nextTurn();
      scope.route({
        url,
        method: METHODS.filter((method) => !allowed.includes(method)),
        schema: { hide: true },
        onRequest: async () => {
          throw new AppError('MethodNotAllowed', { headers: { allow: allowed.join(', ') } });
        },
        handler: async () => {},
      });
    }
  });
  return methodsByPath;
}

function noEndpoint(): AppError {
  return new AppError('NoSuchEntity', { message: 'There is no such endpoint.' });
}

/** Fixed segments stand as the route has them, nothing of them encoded: what a proxy refuses by path has one spelling. */
function isSpelt({ routeOptions, originalUrl, raw }: FastifyRequest): boolean {
  const sent = (raw.url ?? originalUrl).split('?', 1)[0]?.split('/') ?? [];
  const pattern = routeOptions.url?.split('/') ?? [];
  return pattern.every((segment, at) => segment.startsWith(':') || segment === sent[at]);
}

function parseObject(body: Buffer): object {
  if (body.length === 0) return {};
  let json: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    json = parseBoundedJson(text, LIMITS.jsonValuesMax);
  } catch (cause) {
    if (cause instanceof TooManyValues)
      throw new AppError('ValidationError', {
        message: `The body has more than ${LIMITS.jsonValuesMax} values.`,
        cause,
      });
    throw new AppError('ValidationError', { message: 'The body is not JSON.', cause });
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new AppError('ValidationError', { message: 'The body must be a JSON object.' });
  }
  return json;
}

type Schema = {
  readonly properties?: Readonly<Record<string, { readonly type?: string | readonly string[] }>>;
};

/** Texts become what the schema asks for, where they are that; what is not is for the schema to refuse. */
function readParameters({ params, query, routeOptions: { schema } }: FastifyRequest): void {
  for (const [values, of] of [
    [params, schema?.params],
    [query, schema?.querystring],
  ] as const) {
    const read = values as Record<string, unknown>;
    for (const [name, { type }] of Object.entries((of as Schema | undefined)?.properties ?? {})) {
      const text = read[name];
      if (typeof text === 'string' && typeof type === 'string') read[name] = parameterOf(type, text);
    }
  }
}

const NUMBER = /^-?\d{1,16}(?:\.\d{1,16})?$/;

function parameterOf(type: string, text: string): unknown {
  if ((type === 'integer' || type === 'number') && NUMBER.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

function toAppError(error: unknown, { routeOptions }: FastifyRequest, isLenient: boolean): unknown {
  const { validation, validationContext } = error as {
    validation?: readonly Failure[];
    validationContext?: string;
  };
  if (validation === undefined) return error;
  if (validationContext === 'params' && !isLenient) {
    const { absent } = routeOptions.config;
    return new AppError('NoSuchEntity', absent === undefined ? {} : { message: absent });
  }
  const { properties = {} } = (routeOptions.schema?.body ?? {}) as { properties?: object };
  return fieldErrors(problemsOf(validation, Object.keys(properties)));
}

/** What is wrong with each field: first the unknown ones, then the known ones in the order of the schema. */
function problemsOf(failures: readonly Failure[], known: readonly string[]): [string, string][] {
  // Values are looked at when all fields are there and of the right kind.
  const kinds = failures.filter(({ keyword }) => keyword !== 'enum');
  const problems = (kinds.length > 0 ? kinds : failures).map(problemOf);
  return problems.toSorted(([a], [b]) => known.indexOf(a) - known.indexOf(b));
}

function problemOf({ keyword, instancePath, params }: Failure): [string, string] {
  const name = instancePath.slice(1).replaceAll('/', '.');
  if (keyword === 'additionalProperties') return unknownField(String(params.additionalProperty));
  if (keyword === 'required') return [String(params.missingProperty), 'is required'];
  if (keyword === 'type') return [name, `must be ${articleOf([params.type].flat().join(' or '))}`];
  const bound = BOUNDS[keyword];
  if (bound !== undefined)
    return [name, `must ${bound} ${params.limit}${keyword.endsWith('Length') ? ' characters' : ''}`];
  if (keyword !== 'enum') return [name, 'is not valid'];
  const values = params.allowedValues as readonly string[];
  return [
    name,
    values.length === 2 ? `must be ${values.join(' or ')}` : `must be one of ${values.join(', ')}`,
  ];
}

/** Of what ajv calls `limit`. */
const BOUNDS: Readonly<Record<string, string>> = {
  minimum: 'be at least',
  maximum: 'be at most',
  exclusiveMinimum: 'be more than',
  minLength: 'have at least',
  maxLength: 'have at most',
};

function articleOf(type: string): string {
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}

function unknownField(name: string): [string, string] {
  return [name, 'is not a known field'];
}

function refuseFields(body: object): void {
  const names = Object.keys(body);
  if (names.length > 0) throw fieldErrors(names.map(unknownField));
}

function fieldErrors(problems: readonly [string, string][]): AppError {
  const named = problems
    .slice(0, NAMED_MAX)
    .map(([name, problem]): [string, string] => [name.slice(0, NAME_CHARACTERS_MAX), problem]);
  const restCount = problems.length - named.length;
  const rest = restCount > 0 ? [`and ${restCount} more`] : [];
  const message = [...named.map((problem) => problem.join(' ')), ...rest].join('; ');
  return new AppError('ValidationError', { message, fields: Object.fromEntries(named) });
}
