// The OpenAPI document of /api/v1: it is valid, and complete. What drives a server by it is tests/api/management-document.test.ts.
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  answerChecks,
  callsOf,
  type Document,
  type DocumentCall,
} from '../../../tests/support/accounts/drive-by-document.ts';
import {
  type ManagementWorld,
  openManagementWorld,
} from '../../../tests/support/accounts/management-world.ts';

let world: ManagementWorld;
let document: Document;
let calls: DocumentCall[];
beforeAll(async () => {
  world = await openManagementWorld();
  document = world.document as unknown as Document;
  calls = callsOf(document);
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

test('an answer that the document does not have is noticed', async () => {
  const faultOf = await answerChecks(document);
  const { call } = calls.find((one) => one.call.operationId === 'GetMember') as (typeof calls)[number];
  expect(faultOf(call, { status: 418, json: {} })).toBe('418 is not in the document');
  expect(faultOf(call, { status: 200, json: { success: true } })).not.toBeUndefined();
  const refusal = { success: false, code: 'RES-E-0404', message: 'm', data: null, errors: null };
  expect(faultOf(call, { status: 404, json: refusal })).toBeUndefined();
  expect(faultOf(call, { status: 404, json: { ...refusal, stack: 'x' } })).not.toBeUndefined();
});
