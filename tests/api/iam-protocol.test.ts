// The query protocol of IAM itself: who is heard, how parameters are read, the form of answers and errors.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signRequest } from '../../src/cli/sign-request.ts';
import { IAM_ACTIONS } from '../../src/gateway/identity-api/iam-service.ts';
import { ACTIONS } from '../../src/policy/actions.ts';
import { callIam, type IamCall, readAnswer } from '../support/servers/iam-api.ts';
import { presign } from '../support/servers/s3-client.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const call = (parameters: Parameters<typeof callIam>[1], options?: IamCall) =>
  callIam(server, parameters, options);

test('every action is one that policies may name, and stands in the table once', () => {
  const known = new Set(ACTIONS.map(({ action }) => action));
  const names = IAM_ACTIONS.map(({ name }) => `iam:${name}`);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});

test('an answer is XML in the namespace of IAM, with the request id in head and body', async () => {
  const made = await call({ Action: 'CreateUser', UserName: 'protocol', Version: '2010-05-08' });
  expect(made.status).toBe(200);
  expect(made.headers.get('content-type')).toBe('text/xml');
  expect(made.xml).toContain('<CreateUserResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/">');
  expect(made.xml).toMatch(/<CreateUserResult><User>.*<\/User><\/CreateUserResult><ResponseMetadata>/);
  expect(made.text('RequestId')).toBe(made.headers.get('x-amzn-requestid'));
  expect(made.text('UserId')).toMatch(/^AIDA[A-Z2-7]{17}$/);
});

test('an error names its code, and who is to blame', async () => {
  const { status, xml, headers } = await call({ Action: 'GetUser', UserName: 'nobody' });
  expect(status).toBe(404);
  expect(xml).toContain('<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error>');
  expect(xml).toContain(
    '<Type>Sender</Type><Code>NoSuchEntity</Code><Message>The user with name nobody cannot be found.</Message>',
  );
  expect(xml).toContain(`<RequestId>${headers.get('x-amzn-requestid')}</RequestId></ErrorResponse>`);
});

test('a GET asks as well, with its parameters in the query', async () => {
  const root = await call({ Action: 'GetUser' }, { method: 'GET' });
  expect([root.status, root.text('Arn')]).toEqual([200, expect.stringMatching(/^arn:aws:iam::\d{12}:root$/)]);
});

test.each([
  [{}, 'MissingAction', undefined],
  [{ Action: 'MakeUser' }, 'InvalidAction', 'Could not find operation MakeUser for version 2010-05-08'],
  [
    { Action: 'GetUser', Version: '2009-01-01' },
    'InvalidAction',
    'Could not find operation GetUser for version 2009-01-01',
  ],
  [
    { Action: 'CreateUser' },
    'ValidationError',
    "1 validation error detected: Value null at 'userName' failed to satisfy constraint: Member must not be null",
  ],
  [
    { Action: 'CreateUser', UserName: 'x'.repeat(65) },
    'ValidationError',
    `1 validation error detected: Value '${'x'.repeat(65)}' at 'userName' failed to satisfy constraint: Member must have length less than or equal to 64`,
  ],
  [
    { Action: 'CreateUser', UserName: '', Path: '' },
    'ValidationError',
    "2 validation errors detected: Value '' at 'userName' failed to satisfy constraint: Member must have length greater than or equal to 1; Value '' at 'path' failed to satisfy constraint: Member must have length greater than or equal to 1",
  ],
  [
    { Action: 'CreateUser', UserName: 'a b' },
    'ValidationError',
    'The specified value for userName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-',
  ],
  [
    { Action: 'CreateUser', UserName: 'a', 'Tags.member.1.Key': 'k' },
    'ValidationError',
    "1 validation error detected: Value null at 'tags.1.member.value' failed to satisfy constraint: Member must not be null",
  ],
  [
    'Action=GetUser&UserName=a&UserName=b',
    'ValidationError',
    'The parameter UserName may be sent once only.',
  ],
  ['Action=GetUser&UserName=%ff', 'ValidationError', 'The parameters are not form encoded in UTF-8.'],
  [`Action=GetUser${'&'.repeat(2000)}`, 'ValidationError', 'A request has at most 1024 parameters.'],
])('%j: 400 %s', async (parameters, code, message) => {
  const answer = await call(parameters as Parameters<typeof callIam>[1]);
  expect([answer.status, answer.code]).toEqual([400, code]);
  if (message !== undefined) expect(answer.message).toBe(message);
});

test('parameters that the action does not have are ignored', async () => {
  expect((await call({ Action: 'GetUser', Color: 'red' })).status).toBe(200);
});

test('who is not known, or has not signed it, is told so in the words of IAM', async () => {
  const { accessKey } = server;
  const nobody = { accessKey: 'HFNOBODY000000000000', secretKey: 'x'.repeat(40) };
  expect(await call({ Action: 'GetUser' }, { credentials: nobody })).toMatchObject({
    status: 403,
    code: 'InvalidClientTokenId',
    message: 'The security token included in the request is invalid.',
  });
  const wrong = { accessKey, secretKey: 'x'.repeat(40) };
  const refused = await call({ Action: 'GetUser' }, { credentials: wrong });
  expect(refused).toMatchObject({ status: 403, code: 'SignatureDoesNotMatch' });
  expect(refused.xml).not.toContain('CanonicalRequest');
});

async function send(changes: { headers?: Record<string, string>; body?: string; nowMs?: number } = {}) {
  const { body = 'Action=GetUser', nowMs = Date.now() } = changes;
  const { host: _, ...headers } = signRequest({
    method: 'POST',
    host: new URL(server.endpoint).host,
    path: '/',
    body,
    service: 'iam',
    credentials: server,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    nowMs,
  });
  const sent = { ...headers, ...changes.headers };
  return readAnswer(await fetch(server.endpoint, { method: 'POST', headers: sent, body }));
}

test('a signature of another time or of no good form is refused', async () => {
  const late = await send({ nowMs: Date.now() - 3_600_000 });
  expect(late).toMatchObject({ status: 403, code: 'SignatureDoesNotMatch' });
  expect(late.message).toMatch(
    /^Signature expired: \d{8}T\d{6}Z is now earlier than \d{8}T\d{6}Z \(\d{8}T\d{6}Z - 15 min\.\)$/,
  );
  const early = await send({ nowMs: Date.now() + 3_600_000 });
  expect([early.status, early.code]).toEqual([403, 'SignatureDoesNotMatch']);
  expect(early.message).toMatch(
    /^Signature not yet current: \d{8}T\d{6}Z is still later than \d{8}T\d{6}Z \(\d{8}T\d{6}Z \+ 15 min\.\)$/,
  );
  const half = `AWS4-HMAC-SHA256 Credential=${server.accessKey}/20260101/us-east-1/iam/aws4_request`;
  expect(await send({ headers: { authorization: half } })).toMatchObject({
    status: 400,
    code: 'IncompleteSignature',
  });
});

/** A link to GetUser or GetCallerIdentity that was made so long ago. */
async function follow(service: 'iam' | 'sts', { ageMs = 0, expiresSeconds = 604_800 } = {}) {
  const action = service === 'iam' ? 'GetUser&Version=2010-05-08' : 'GetCallerIdentity&Version=2011-06-15';
  const uri = presign({
    method: 'GET',
    uri: `/?Action=${action}`,
    headers: { host: new URL(server.endpoint).host },
    credentials: server,
    service,
    payloadHash: createHash('sha256').update('').digest('hex'),
    nowMs: Date.now() - ageMs,
    expiresSeconds,
  });
  return readAnswer(await fetch(new URL(uri, server.endpoint)));
}

test('a link to IAM or STS is good for 15 minutes, whatever X-Amz-Expires says', async () => {
  for (const service of ['iam', 'sts'] as const) {
    expect(await follow(service)).toMatchObject({ status: 200 });
    // Neither shorter, as AWS ignores it, nor longer.
    expect(await follow(service, { ageMs: 14 * 60_000, expiresSeconds: 60 })).toMatchObject({ status: 200 });
    const late = await follow(service, { ageMs: 16 * 60_000 });
    expect([late.status, late.code]).toEqual([403, 'SignatureDoesNotMatch']);
    expect(late.message).toMatch(/^Signature expired: .* is now earlier than .* - 15 min\.\)$/);
    const early = await follow(service, { ageMs: -16 * 60_000 });
    expect([early.status, early.code]).toEqual([403, 'SignatureDoesNotMatch']);
    expect(early.message).toMatch(/^Signature not yet current: /);
  }
});

test('a body that is too long, or not the signed one, is refused', async () => {
  const long = `Action=GetUser&UserName=${'x'.repeat(300_000)}`;
  expect(await send({ body: long })).toMatchObject({ status: 400, code: 'MaxMessageLengthExceeded' });
  const headers = { 'x-amz-content-sha256': createHash('sha256').update('other').digest('hex') };
  expect(await send({ headers })).toMatchObject({ status: 403, code: 'SignatureDoesNotMatch' });
});
