// What the operator API makes of any path and any body, and what it says of itself; what its calls do is in tests/api.

import { Validator } from '@seriousme/openapi-schema-validator';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { byteText, nearly } from '../../../tests/support/run/properties.ts';
import { operatorCaller } from '../../../tests/support/servers/operator-caller.ts';
import { OPERATOR_ACTIONS } from '../../policy/actions.ts';
import { compilePolicy } from '../../policy/documents/compile-policy.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { createOperatorApi, OPERATOR_PREFIX } from './operator-api.ts';
import type { OperatorCaller, OperatorContext } from './operator-context.ts';

/** All calls behind the API return nothing: only requests are tested. */
const nothing = new Proxy(() => {}, {
  get: () => nothing,
  apply: () => {
    throw new AppError('NoSuchEntity');
  },
}) as unknown as OperatorContext;
const api = createOperatorApi(nothing);
const routes = await api.routes();

function ask(method: string, url: string, text = '') {
  const body = Buffer.from(text, 'latin1');
  return api.answer({ method, url: OPERATOR_PREFIX + url, body, caller: operatorCaller(body) });
}

const bodies = nearly(
  ['{"name":"a name","email":"a@b.c"}', '{"state":"paid","bucketsMax":5}', '{"readData":true}', '{}', ''],
  [
    '{',
    '}',
    '[',
    '"',
    ':',
    ',',
    '"__proto__":1',
    '"constructor":{}',
    'null',
    '1e999',
    '-',
    '\\u0000',
    '\xff',
    '0'.repeat(400),
  ],
);
const segments = fc.oneof(
  fc.constantFrom('%zz', '%00', '%2F', '', '..', '.', '#', '__proto__', '1', '-1', '1e9'),
  byteText,
);

test("any call is answered, or refused as the caller's mistake", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...routes),
      segments,
      bodies,
      fc.boolean(),
      async ({ method, path }, segment, text, isPlain) => {
        const pattern = path.slice(OPERATOR_PREFIX.length);
        const url = isPlain ? pattern : pattern.replace(/:\w+/g, () => segment);
        const error = await ask(method, url, text).then(
          () => undefined,
          (caught: unknown) => caught,
        );
        if (error === undefined) return;
        if (!(error instanceof AppError)) throw error;
        expect(['NoSuchEntity', 'ValidationError', 'InvalidURI', 'MethodNotAllowed']).toContain(error.code);
      },
    ),
    { numRuns: amountOf({ short: 300, long: 1500 }) },
  );
});

test.each([
  ['a path that nothing has, whatever the body is', 'GET', '/nothing', '{', 'There is no such endpoint.'],
  ['a fixed segment that is encoded', 'GET', '/%61ccounts', '', 'There is no such endpoint.'],
  ['dots, which are not resolved', 'GET', '/nothing/../accounts', '', 'There is no such endpoint.'],
  ['a slash at the end', 'GET', '/status/', '', 'There is no such endpoint.'],
  ['a page of no shard', 'GET', '/composed/one', '', 'There is no such page.'],
  ['a page behind no blob', 'GET', '/composed/1/x', '', 'There is no such page.'],
  ['a comparison without a number', 'DELETE', '/fsck/-1', '', 'There is no such comparison.'],
])('%s: NoSuchEntity', async (_, method, url, text, message) => {
  await expect(ask(method, url, text)).rejects.toMatchObject({ code: 'NoSuchEntity', message });
});

test('another method of a path answers 405 with the allowed ones, before the body is read', async () => {
  const refused = (allow: string) => ({ code: 'MethodNotAllowed', headers: { allow } });
  await expect(ask('PUT', '/accounts', '{')).rejects.toMatchObject(refused('POST, GET'));
  await expect(ask('HEAD', '/keys')).rejects.toMatchObject(refused('GET'));
  await expect(ask('PROPFIND', '/accounts/x')).rejects.toMatchObject(refused('GET, PATCH, DELETE'));
  await expect(ask('GET', '/openapi.json')).resolves.toMatchObject({ status: 200, headers: {} });
});

test.each([
  ['PATCH', '/accounts/x', '{"state": 5, "x": 1}', { x: 'is not a known field', state: 'must be a string' }],
  ['PATCH', '/accounts/x', '{"state": "x"}', { state: 'must be one of trial, paid, suspended' }],
  ['PATCH', '/accounts/x', '{"state": "x", "bucketsMax": "5"}', { bucketsMax: 'must be a number' }],
  ['PATCH', '/accounts/x/keys/y', '{"state": "x"}', { state: 'must be active or disabled' }],
  ['PATCH', '/accounts/x/keys/y', '{"state": null}', { state: 'must be a string' }],
  ['PATCH', '/accounts/x/keys/y', '', { state: 'is required' }],
  ['POST', '/fsck', '{"readData": "yes"}', { readData: 'must be a boolean' }],
  ['POST', '/keys/rotate', '{"b": 1, "a": 2}', { b: 'is not a known field', a: 'is not a known field' }],
  ['GET', '/status', '{"a": 1}', { a: 'is not a known field' }],
])('%s %s of %s is refused with a message for each field', async (method, url, text, fields) => {
  const message = Object.entries(fields)
    .map((problem) => problem.join(' '))
    .join('; ');
  await expect(ask(method, url, text)).rejects.toMatchObject({ code: 'ValidationError', message, fields });
});

test('of many wrong fields the first ten are named, short, and the others counted', async () => {
  const named = Array.from({ length: 10 }, (_, at) => `${at}`.padEnd(128, 'x'));
  const many = [...named.map((name) => `${name}${'y'.repeat(40_000)}`), ...Array(4000).keys()];
  // Objects have fields of numbers first.
  const body = Object.fromEntries(many.map((name) => [typeof name === 'number' ? `z${name}` : name, 1]));
  for (const [method, url] of [
    ['PATCH', '/accounts/x'],
    ['GET', '/status'],
  ] as const) {
    const refused = await ask(method, url, JSON.stringify(body)).catch((error) => error);
    const texts = named.map((name) => `${name} is not a known field`);
    expect(refused).toMatchObject({
      code: 'ValidationError',
      message: [...texts, 'and 4000 more'].join('; '),
      fields: Object.fromEntries(named.map((name) => [name, 'is not a known field'])),
    });
  }
});

test.each<[name: string, text: string]>([
  ['fields', `{${Array.from({ length: LIMITS.jsonValuesMax + 1 }, (_, at) => `"${at}":0`).join(',')}}`],
  ['items', `{"x":[${Array(LIMITS.jsonValuesMax).fill('0').join(',')}]}`],
  ['lists in lists', `{"x":${'['.repeat(300_000)}`],
])('a body of too many %s is refused before it is parsed', async (_name, text) => {
  await expect(ask('PATCH', '/accounts/x', text)).rejects.toMatchObject({
    code: 'ValidationError',
    message: 'The body has more than 5000 values.',
    fields: {},
  });
});

test('the OpenAPI document is valid and has exactly the routes of the server', async () => {
  const document = JSON.parse(String((await ask('GET', '/openapi.json')).body));
  expect(document.openapi).toBe('3.1.0');
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  expect([valid, errors]).toEqual([true, undefined]);
  const described = Object.entries<Record<string, Described>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, call]) => ({ name: `${method.toUpperCase()} ${path}`, ...call })),
  );
  const names = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
  expect(described.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  expect(described.map(({ operationId }) => operationId).toSorted()).toEqual(OPERATOR_ACTIONS.toSorted());
  for (const { name, summary, tags, parameters = [], responses } of described) {
    expect([name, summary, tags]).toEqual([name, expect.stringMatching(/^[A-Z]/), [expect.any(String)]]);
    const inPath = [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    expect(parameters.filter((one) => one.in === 'path').map((one) => one.name)).toEqual(inPath);
    const statuses = Object.keys(responses);
    expect(statuses.filter((status) => status.startsWith('2'))).toHaveLength(1);
    expect(statuses).toEqual(expect.arrayContaining(['400', '403', '500', '503']));
  }
});

interface Described {
  operationId: string;
  summary?: string;
  tags?: string[];
  parameters?: { name: string; in: string }[];
  responses: Record<string, unknown>;
}

/** A user of the root account. */
function userWith(Action: string | string[], body: Buffer) {
  const Statement = [{ Effect: 'Allow', Action, Resource: '*' }];
  const outcome = compilePolicy(JSON.stringify({ Version: '2012-10-17', Statement }), { type: 'identity' });
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return operatorCaller(body, { identity: [{ name: 'p', policy: outcome.policy }] });
}

test('a user of the root account may call what its policies allow', async () => {
  const caller = userWith('holdfast:GetOpenApi', Buffer.alloc(0));
  const request = { method: 'GET', body: Buffer.alloc(0), caller };
  expect((await api.answer({ ...request, url: `${OPERATOR_PREFIX}/openapi.json` })).status).toBe(200);
  await expect(api.answer({ ...request, url: `${OPERATOR_PREFIX}/accounts` })).rejects.toMatchObject({
    code: 'AccessDenied',
    message: expect.stringContaining('holdfast:ListAccounts'),
  });
  // As the line of the request has it.
  const action = 'holdfast:ListAccounts';
  const rule = 'no identity policy allows it';
  expect(caller.asker.record).toEqual({ action, refusedAccess: { action, resource: '*', rule } });
});

test('who may read is shown no secret keys, and who may count mends nothing', async () => {
  const control = { id: 2, name: 'C', email: 'c@x.example' };
  const customer = { id: 3, accountId: '1', createdAtMs: 0, control, contact: {}, state: 'paid' };
  const tenancy = {
    listCustomers: async () => ({ items: [customer], total: 1 }),
    getCustomer: async () => customer,
    changeCustomer: async () => customer,
  };
  const metadata = {
    shardCount: 1,
    query: async () => ({ kind: 'done', value: { buckets: [] } }),
  };
  const usageBook = { stored: async () => () => ({ activeBytes: 0, deletedBytes: 0 }) };
  const clock = { monotonicMs: () => 0 };
  const real = createOperatorApi({ tenancy, metadata, usageBook, clock } as unknown as OperatorContext);
  const calls = [
    ['GET', '/sub-accounts', '?includeKeys=true', '', 'ListSubAccounts', 'ShowSecretKeys'],
    ['GET', '/sub-accounts/3', '?includeKeys=true', '', 'GetSubAccount', 'ShowSecretKeys'],
    ['PUT', '/sub-accounts/3', '?includeKeys=true', '{}', 'ChangeSubAccount', 'ShowSecretKeys'],
    ['POST', '/usage/recount', '', '{"repair":true}', 'RecountUsage', 'RepairUsage'],
  ] as const;
  for (const [method, path, query, text, first, second] of calls) {
    const asked = (actions: string | string[], suffix: string, sent: string) => {
      const body = Buffer.from(sent);
      return real.answer({
        method,
        url: OPERATOR_PREFIX + path + suffix,
        body,
        caller: userWith(actions, body),
      });
    };
    const own = `holdfast:${first}`;
    await expect(asked(own, query, text)).rejects.toMatchObject({
      code: 'AccessDenied',
      message: expect.stringContaining(`holdfast:${second}`),
    });
    expect((await asked(own, '', text && '{}')).status).toBe(200);
    expect((await asked([own, `holdfast:${second}`], query, text)).status).toBe(200);
  }
  const readers = ['holdfast:Get*', 'holdfast:List*', 'holdfast:Read*', 'holdfast:Find*'];
  const url = `${OPERATOR_PREFIX}/sub-accounts/3?includeKeys=true`;
  const body = Buffer.alloc(0);
  await expect(
    real.answer({ method: 'GET', url, body, caller: userWith(readers, body) }),
  ).rejects.toMatchObject({ code: 'AccessDenied' });
});

test("no policy lets a user take the second factor of the root of the operator's account away", async () => {
  const body = Buffer.alloc(0);
  const accounts = {
    find: async (name: string) => ({ account: { accountId: name, isRoot: name === 'root' } }),
  };
  const found = { revision: 1, rows: [null], ranges: [] };
  const metadata = { query: async () => ({ kind: 'done', value: found }) };
  const log = { warn() {} };
  const real = createOperatorApi({ accounts, metadata, log } as unknown as OperatorContext);
  const reset = (name: string, caller: OperatorCaller) =>
    real.answer({ method: 'DELETE', url: `${OPERATOR_PREFIX}/accounts/${name}/mfa`, body, caller });
  const user = userWith('holdfast:*', body);
  await expect(reset('root', user)).rejects.toMatchObject({ code: 'AccessDenied' });
  for (const [name, caller] of [
    ['tenant', user],
    ['root', operatorCaller(body)],
  ] as const)
    expect(await reset(name, caller)).toMatchObject({ status: 200 });
});

test("no policy gives a user the keys of the operator's account, or takes them away", async () => {
  const changed: string[] = [];
  const accounts = {
    find: async (name: string) => ({ account: { isRoot: name === 'root' }, accessKeys: [] }),
    keys: async () => ({ keys: [{ accessKey: 'OTHERKEY', createdAtMs: 0 }] }),
    async addKey(name: string) {
      changed.push(`add ${name}`);
      return {
        account: { isRoot: name === 'root' },
        key: { accessKey: 'K', createdAtMs: 0 },
        secretKey: 's',
      };
    },
    async changeKey(name: string, { change }: { change: string }) {
      changed.push(`${change} ${name}`);
    },
  };
  const real = createOperatorApi({ accounts } as unknown as OperatorContext);
  const calls = [
    ['POST', 'keys', '{}'],
    ['PATCH', 'keys/OTHERKEY', '{"state":"disabled"}'],
    ['DELETE', 'keys/OTHERKEY', ''],
  ] as const;
  for (const [method, path, text] of calls) {
    const body = Buffer.from(text);
    const url = (name: string) => `${OPERATOR_PREFIX}/accounts/${name}/${path}`;
    const caller = userWith('holdfast:*', body);
    await expect(real.answer({ method, url: url('root'), body, caller })).rejects.toMatchObject({
      code: 'AccessDenied',
    });
    await real.answer({ method, url: url('tenant'), body, caller });
    await real.answer({ method, url: url('root'), body, caller: operatorCaller(body) });
  }
  expect(changed).toEqual([
    'add tenant',
    'add root',
    'disable tenant',
    'disable root',
    'delete tenant',
    'delete root',
  ]);
});
