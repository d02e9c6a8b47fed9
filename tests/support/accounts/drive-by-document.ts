// Drives a server by the OpenAPI document of its /api/v1: requests are made of the parameters and bodies that it has, right,
// nearly right and wrong. Each answer must be one that the document has, and none is a fault of the server.
import fc from 'fast-check';
import fastify from 'fastify';
import { expect } from 'vitest';

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  minimum?: number;
  maximum?: number;
}
interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  schema: Schema;
}
export interface Call {
  operationId: string;
  summary: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}
export interface Document {
  openapi: string;
  paths: Record<string, Record<string, Call>>;
  components: { schemas: Record<string, Schema> };
}

export interface DocumentCall {
  path: string;
  method: string;
  call: Call;
}

export interface DrivenAnswer {
  status: number;
  json: unknown;
}

/** What hardly any other value fits, by the name of the field. */
export type Hints = Readonly<Record<string, fc.Arbitrary<unknown>>>;

export interface Driven {
  document: Document;
  /** `path`: with its query. */
  send(request: { method: string; path: string; body: unknown; as: string }): Promise<DrivenAnswer>;
  /** Who asks. */
  logins: readonly string[];
  /** Ids that are there, for a path; others are tried as well. */
  idsOf(method: string, path: string): readonly string[];
  hints: Hints;
}

export function callsOf(document: Document): DocumentCall[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, call]) => ({ path, method: method.toUpperCase(), call })),
  );
}

/** Values that no schema asks for, or that parsers stumble over. */
const ODD = fc.constantFrom<unknown>(
  null,
  true,
  'true',
  '',
  ' ',
  '0',
  -1,
  0,
  1.5,
  2 ** 53,
  1e308,
  '2026-02-30',
  '2026/02/01',
  '\u0000',
  'ẞ東\u202e',
  "' OR 1=1 --",
  '__proto__',
  'x'.repeat(3000),
  [],
  ['a'],
  {},
  { constructor: 1 },
);

/** The highest that is no wrong value. */
const ID_MAX = String(Number.MAX_SAFE_INTEGER);

/** Of any server. */
const HINTS: Hints = {
  memberRole: fc.constantFrom('Root', 'full_access', 'ADMINISTRATOR', 'Read Only'),
  name: fc.string({ minLength: 3, maxLength: 40 }),
  wasabiAccountEmail: fc.integer({ min: 1, max: 1e6 }).map((at) => `a${at}@example.com`),
  password: fc.constantFrom('Lon3ly&Loaf', 'Cr0iss&nts'),
  storageQuotaType: fc.constant('Soft quota'),
  trialQuotaTB: fc.integer({ min: 1, max: 5 }),
  username: fc.integer({ min: 1, max: 1e6 }).map((at) => `user ${at}`),
};

function fitting({ type, enum: values, minimum = -5, maximum = 1000 }: Schema): fc.Arbitrary<unknown> {
  if (values !== undefined) return fc.constantFrom(...values);
  const kinds = [type ?? 'string'].flat().map((one): fc.Arbitrary<unknown> => {
    if (one === 'integer') return fc.integer({ min: minimum, max: Math.min(maximum, minimum + 120) });
    if (one === 'number') return fc.double({ min: minimum, max: Math.min(maximum, 1000), noNaN: true });
    if (one === 'boolean') return fc.boolean();
    if (one === 'null') return fc.constant(null);
    return fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.constantFrom('Full Access', 'Hard quota', 'active', '2026-01-01'),
      fc.integer({ min: 1, max: 40 }).map((at) => `a${at}@example.com`),
    );
  });
  return fc.oneof(...kinds);
}

const value = (name: string, schema: Schema, hints: Hints) =>
  fc.oneof({ weight: 40, arbitrary: hints[name] ?? fitting(schema) }, { weight: 1, arbitrary: ODD });

function record(
  schemas: Record<string, Schema>,
  required: readonly string[],
  hints: Hints,
): fc.Arbitrary<Record<string, unknown>> {
  const known = Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, value(name, schema, hints)]),
  );
  return fc
    .tuple(
      // Mostly with all that is required.
      fc.oneof(
        { weight: 6, arbitrary: fc.record(known, { requiredKeys: [...required] }) },
        { weight: 1, arbitrary: fc.record(known, { requiredKeys: [] }) },
      ),
      fc.dictionary(fc.string({ maxLength: 8 }), ODD, { maxKeys: 1 }),
    )
    .map(([given, unknown]) => ({ ...unknown, ...given }));
}

function requestOf({ path, method, call }: DocumentCall, driven: Driven) {
  const parameters = call.parameters ?? [];
  const schemasOf = (place: Parameter['in']) =>
    Object.fromEntries(
      parameters.filter((one) => one.in === place).map(({ name, schema }) => [name, schema]),
    );
  const schema = call.requestBody?.content['application/json']?.schema;
  const hints = { ...HINTS, ...driven.hints };
  return fc.record({
    id: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...driven.idsOf(method, path), ID_MAX) },
      { weight: 1, arbitrary: ODD.map(String) },
    ),
    query: record(schemasOf('query'), [], hints),
    body: schema ? record(schema.properties ?? {}, schema.required ?? [], hints) : fc.constant(undefined),
    as: fc.constantFrom(...driven.logins),
  });
}

/** Compiles what the document says of answers, as the server compiles what it says of requests. */
export async function answerChecks(
  document: Document,
): Promise<(call: Call, answer: DrivenAnswer) => unknown> {
  const app = fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allErrors: true } },
  });
  const checks = new Map<string, (data: unknown) => unknown>();
  app.get('/', async (request) => {
    for (const { call } of callsOf(document)) {
      for (const [status, { content }] of Object.entries(call.responses)) {
        const schema = content?.['application/json']?.schema ?? {};
        const whole =
          schema.$ref === '#/components/schemas/Error' ? document.components.schemas.Error : schema;
        const check = request.compileValidationSchema({ ...whole, additionalProperties: false });
        checks.set(`${call.operationId} ${status}`, (data) =>
          check(data as object) ? undefined : check.errors,
        );
      }
    }
  });
  await app.inject('/');
  return ({ operationId }, { status, json }) => {
    const check = checks.get(`${operationId} ${status}`);
    return check === undefined ? `${status} is not in the document` : check(json);
  };
}

/** `count` requests, and more of the calls in which none has succeeded: what nothing succeeds in is not tested. */
export async function driveByDocument(driven: Driven, count: number): Promise<void> {
  const faultOf = await answerChecks(driven.document);
  const calls = callsOf(driven.document);
  const succeeded = new Set<string>();
  const askedOf = (those: readonly DocumentCall[]) =>
    fc.asyncProperty(
      fc
        .constantFrom(...those)
        .chain((asked) => requestOf(asked, driven).map((request) => ({ request, asked }))),
      async ({ request, asked: { call, method, path } }) => {
        const { id, query, body, as } = request;
        const texts = Object.entries(query).map(([name, one]): [string, string] => [name, String(one)]);
        // A path that has other segments is another one.
        const filled = path.replace(/\{\w+\}/, encodeURIComponent(id) || '%20');
        const asked = { method, path: `${filled}?${new URLSearchParams(texts)}`, body, as };
        const answer = await driven.send(asked);
        expect(faultOf(call, answer)).toBeUndefined();
        expect(answer.status).toBeLessThan(500);
        if (answer.status === 200) succeeded.add(call.operationId);
      },
    );
  await fc.assert(askedOf(calls), { numRuns: count });
  const missing = () => calls.filter(({ call }) => !succeeded.has(call.operationId));
  for (let round = 0; round < 20 && missing().length > 0; round++)
    await fc.assert(askedOf(missing()), { numRuns: 50 });
  expect(missing().map(({ call }) => call.operationId)).toEqual([]);
}
