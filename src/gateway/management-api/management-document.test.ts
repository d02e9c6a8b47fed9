// The OpenAPI document of /api/v1 drives the server: requests are made of its parameters and bodies, right, nearly right and
// wrong; each answer must be one that the document has, and none is a fault of the server.
import { Validator } from '@seriousme/openapi-schema-validator';
import fc from 'fast-check';
import fastify from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ManagementAnswer,
  type ManagementWorld,
  openManagementWorld,
} from '../../../tests/support/accounts/management-world.ts';
import { usageId } from '../../accounts/usage-book.ts';

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
interface Call {
  operationId: string;
  summary: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Call>>;
  components: { schemas: Record<string, Schema> };
}

let world: ManagementWorld;
let document: Document;
let calls: { path: string; method: string; call: Call }[];
beforeAll(async () => {
  world = await openManagementWorld();
  document = world.document as unknown as Document;
  calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, call]) => ({ path, method: method.toUpperCase(), call })),
  );
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});

test('it is valid OpenAPI 3.1, and has the calls of service 4.3', async () => {
  expect(document.openapi).toBe('3.1.0');
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never);
  expect([valid, errors]).toEqual([true, undefined]);
  expect(calls.map(({ path, method }) => `${method} ${path}`).toSorted()).toEqual(CALLS.toSorted());
  for (const { call } of calls) {
    expect([call.summary, call.tags]).toEqual([expect.stringMatching(/^[A-Z]/), [expect.any(String)]]);
    expect(Object.keys(call.responses)).toEqual(
      expect.arrayContaining(['200', '400', '401', '403', '429', '500']),
    );
  }
});

const CALLS = [
  'GET /api/v1/control-accounts',
  'GET /api/v1/control-accounts/{id}',
  'POST /api/v1/sub-accounts',
  'GET /api/v1/sub-accounts',
  'PUT /api/v1/sub-accounts/{id}',
  'GET /api/v1/sub-accounts/{id}',
  'DELETE /api/v1/sub-accounts/{id}',
  'POST /api/v1/members',
  'GET /api/v1/members',
  'PUT /api/v1/members/{id}',
  'GET /api/v1/members/{id}',
  'DELETE /api/v1/members/{id}',
  'GET /api/v1/invoices',
  'GET /api/v1/invoices/{id}',
  'GET /api/v1/sub-accounts/{subAccountId}/buckets',
  'GET /api/v1/usages',
  'GET /api/v1/usages/{id}',
];

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

/** Fields that hardly any other value fits. */
const HINTS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  subAccountId: fc.integer({ min: 10, max: 20 }),
  controlAccountId: fc.constantFrom(2, 3),
  memberRole: fc.constantFrom('Root', 'full_access', 'ADMINISTRATOR', 'Read Only'),
  name: fc.string({ minLength: 3, maxLength: 40 }),
  wasabiAccountEmail: fc.integer({ min: 1, max: 1e6 }).map((at) => `a${at}@example.com`),
  ...Object.fromEntries(
    ['from', 'to', 'periodEnd'].map((name) => [name, fc.constantFrom('2026-01-31', '2026/02/01')]),
  ),
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

const value = (name: string, schema: Schema) =>
  fc.oneof({ weight: 40, arbitrary: HINTS[name] ?? fitting(schema) }, { weight: 1, arbitrary: ODD });

function record(
  schemas: Record<string, Schema>,
  required: readonly string[],
): fc.Arbitrary<Record<string, unknown>> {
  const known = Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, value(name, schema)]),
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

const KNOWN = ['2', '3', '7', '10', '11', '12', '13', '100', '101', '102', '103'];
/** Of sub-account 10: its first day, which lasts as long as none is closed. */
const KNOWN_USAGES = [0, 1].map((more) => String(usageId(10, Math.floor(Date.now() / 86_400_000) + more)));
/** Others are left for the other calls. */
const DELETABLE = ['13', '103', '14', '104', '15', '105'];

function idsOf(method: string, path: string): string[] {
  if (path.includes('/usages/')) return KNOWN_USAGES;
  return method === 'DELETE' ? DELETABLE : KNOWN;
}

function requestOf({ path, method, call }: (typeof calls)[number]) {
  const parameters = call.parameters ?? [];
  const schemasOf = (place: Parameter['in']) =>
    Object.fromEntries(
      parameters.filter((one) => one.in === place).map(({ name, schema }) => [name, schema]),
    );
  const [inPath, inQuery] = [schemasOf('path'), schemasOf('query')];
  const schema = call.requestBody?.content['application/json']?.schema;
  const body = schema && record(schema.properties ?? {}, schema.required ?? []);
  return fc.record({
    method: fc.constant(method),
    ids: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...idsOf(method, path)) },
      { weight: 1, arbitrary: ODD.map(String) },
    ),
    query: record(inQuery, []),
    body: body ?? fc.constant(undefined),
    as: fc.constantFrom('ops@example.com', 'gov@example.com', 'one@example.com', 'viewer@example.com'),
    path: fc.constant(path),
    hasId: fc.constant(Object.keys(inPath).length > 0),
  });
}

/** Compiles what the document says of answers, as the server compiles what it says of requests. */
async function answerChecks(): Promise<(call: Call, answer: ManagementAnswer) => unknown> {
  const app = fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allErrors: true } },
  });
  const checks = new Map<string, (data: unknown) => unknown>();
  app.get('/', async (request) => {
    for (const { call } of calls) {
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

async function seed(): Promise<void> {
  for (let at = 0; at < 10; at++) {
    const account = { name: `Seed ${at}`, wasabiAccountEmail: `seed${at}@example.com`, password: 'Pass-1' };
    const { json } = await world.call({ path: '/sub-accounts', method: 'POST', body: account });
    // The last Root may not be deleted, another one may.
    for (const memberRole of ['Root', 'Read Only']) {
      const person = { firstName: 'A', lastName: 'B', memberRole, password: 'Pass-1' };
      const email = `${memberRole.slice(0, 4)}${at}@example.com`;
      await world.call({
        path: '/members',
        method: 'POST',
        body: { ...person, subAccountId: json.data.id, email },
      });
    }
  }
}

test('whatever is asked, the answer is in the document and is no fault', { timeout: 120_000 }, async () => {
  const faultOf = await answerChecks();
  await seed();
  const succeeded = new Set<string>();
  const askedOf = (those: typeof calls) =>
    fc.asyncProperty(
      fc.constantFrom(...those).chain((asked) => {
        return requestOf(asked).map((request) => ({ request, call: asked.call }));
      }),
      async ({ request, call }) => {
        const { path, ids, query, method, body, as, hasId } = request;
        // A path that has other segments is another one.
        const id = encodeURIComponent(ids) || '%20';
        const texts = Object.entries(query).map(([name, one]): [string, string] => [name, String(one)]);
        const text = new URLSearchParams(texts).toString();
        const below = path.slice('/api/v1'.length);
        const answer = await world.call({
          path: `${hasId ? below.replace(/\{\w+\}/, id) : below}?${text}`,
          method,
          body,
          as,
        });
        expect(faultOf(call, answer)).toBeUndefined();
        expect(answer.status).toBeLessThan(500);
        if (answer.status === 200) succeeded.add(call.operationId);
      },
    );
  await fc.assert(askedOf(calls), { numRuns: 1000 });
  // What nothing succeeds in is not tested: what chance has left out is asked more often.
  const missing = () => calls.filter(({ call }) => !succeeded.has(call.operationId));
  for (let round = 0; round < 20 && missing().length > 0; round++)
    await fc.assert(askedOf(missing()), { numRuns: 100 });
  expect(missing().map(({ call }) => call.operationId)).toEqual([]);
});

test('an answer that the document does not have is noticed', async () => {
  const faultOf = await answerChecks();
  const { call } = calls.find((one) => one.call.operationId === 'GetMember') as (typeof calls)[number];
  const headers = new Headers();
  expect(faultOf(call, { status: 418, headers, json: {} })).toBe('418 is not in the document');
  expect(faultOf(call, { status: 200, headers, json: { success: true } })).not.toBeUndefined();
  const refusal = { success: false, code: 'RES-E-0404', message: 'm', data: null, errors: null };
  expect(faultOf(call, { status: 404, headers, json: refusal })).toBeUndefined();
  expect(faultOf(call, { status: 404, headers, json: { ...refusal, stack: 'x' } })).not.toBeUndefined();
});
