// A body comes as slowly as its client likes. What the client may do is asked again once it is there: no request that was begun
// with a key or a right does anything after these are gone (service 5, R45).
import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { signRequest } from '../../src/cli/sign-request.ts';
import { callIam } from '../support/servers/iam-api.ts';
import { beginUpload, completeXml, putPart, uploadPath } from '../support/servers/multipart.ts';
import { pathOf, type RawRequest } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import {
  type Account,
  type Api,
  callOperator,
  expectStatus,
  freshWord,
  useApi,
} from '../support/servers/s3-api.ts';

const api = useApi();
let account: Account;
let bucket: string;
beforeAll(async () => {
  account = await api.makeAccount();
  bucket = await api.makeBucket(account);
});

/** The api, as the root of the account. */
const asAccount = () => ({ ...api, send: (wanted: RawRequest) => api.send(wanted, account) }) as Api;

type Credentials = { accessKey: string; secretKey: string; token?: string };
interface Sender {
  readonly name: string;
  readonly credentials: Credentials;
}

async function iam(parameters: Record<string, string>) {
  const answer = await callIam(api.server, parameters, { credentials: account });
  expect(answer.status, answer.xml).toBe(200);
  return answer;
}

const documentOf = (...statements: object[]) =>
  JSON.stringify({ Version: '2012-10-17', Statement: statements });
const ALLOWED = documentOf({ Effect: 'Allow', Action: ['s3:*', 'sts:*', 'iam:*'], Resource: '*' });

/** A user that may do everything by its policy `p`. */
async function makeUser(): Promise<Sender> {
  const name = `user-${freshWord()}`;
  await iam({ Action: 'CreateUser', UserName: name });
  await iam({ Action: 'PutUserPolicy', UserName: name, PolicyName: 'p', PolicyDocument: ALLOWED });
  const key = await iam({ Action: 'CreateAccessKey', UserName: name });
  const credentials = {
    accessKey: must(key.text('AccessKeyId'), 'a key'),
    secretKey: must(key.text('SecretAccessKey'), 'a secret key'),
  };
  return { name, credentials };
}

/** A session of a user. */
async function beginSession(): Promise<Sender> {
  const { name, credentials } = await makeUser();
  const begun = await callIam(api.server, { Action: 'GetSessionToken' }, { credentials, service: 'sts' });
  expect(begun.status, begun.xml).toBe(200);
  const given = (element: string) => must(begun.text(element), element);
  const session = {
    accessKey: given('AccessKeyId'),
    secretKey: given('SecretAccessKey'),
    token: given('SessionToken'),
  };
  return { name, credentials: session };
}

interface Sent {
  method: string;
  path: string;
  body: Buffer;
  headers?: Record<string, string>;
}

/** Sends the head, waits until the server asks for the body, and sends that once `revoke` is done. */
async function sendAround(
  { credentials }: Sender,
  { method, path, body, headers = {} }: Sent,
  revoke: () => Promise<unknown>,
) {
  const all = {
    ...headers,
    'content-md5': createHash('md5').update(body).digest('base64'),
    'content-length': String(body.length),
    expect: '100-continue',
    ...(credentials.token !== undefined && { 'x-amz-security-token': credentials.token }),
  };
  const head = headOf({ ...api.server, ...credentials }, { method, path, headers: all });
  return sendParts({ head, body }, revoke);
}

async function sendParts({ head, body }: { head: string; body: Buffer }, revoke: () => Promise<unknown>) {
  const socket = await openSocket(api.server);
  socket.write(head);
  expect(await socket.answer()).toMatchObject({ status: 100 });
  socket.write(body.subarray(0, body.length / 2));
  await revoke();
  socket.write(body.subarray(body.length / 2));
  const answer = must(await socket.answer(), 'an answer');
  socket.destroy();
  return { status: answer.status, code: /<Code>(\w+)<\/Code>/.exec(answer.body)?.[1] };
}

/** The same of a request to IAM, whose digest is signed beforehand. */
function sendIamAround({ credentials }: Sender, form: string, revoke: () => Promise<unknown>) {
  const signed = signRequest({
    method: 'POST',
    host: new URL(api.server.endpoint).host,
    path: '/',
    service: 'iam',
    body: form,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    credentials,
    nowMs: Date.now(),
  });
  const headers = { ...signed, 'content-length': String(form.length), expect: '100-continue' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return sendParts({ head: `POST / HTTP/1.1\r\n${lines.join('')}\r\n`, body: Buffer.from(form) }, revoke);
}

/** How a right goes, and what is answered then. */
const REVOCATIONS = [
  [
    'its key is disabled',
    'InvalidAccessKeyId',
    makeUser,
    ({ name, credentials: { accessKey } }: Sender) =>
      iam({ Action: 'UpdateAccessKey', UserName: name, AccessKeyId: accessKey, Status: 'Inactive' }),
  ],
  [
    'its policy is deleted',
    'AccessDenied',
    makeUser,
    ({ name }: Sender) => iam({ Action: 'DeleteUserPolicy', UserName: name, PolicyName: 'p' }),
  ],
  [
    "the policy of its session's user is deleted",
    'AccessDenied',
    beginSession,
    ({ name }: Sender) => iam({ Action: 'DeleteUserPolicy', UserName: name, PolicyName: 'p' }),
  ],
] as const;

const keyOf = (name: string) => `${name}-${freshWord()}`;
const REQUESTS: readonly (readonly [string, () => Promise<Sent>])[] = [
  ['PutObject of 1 KiB', async () => sent('PUT', pathOf(bucket, keyOf('put')), Buffer.alloc(1024))],
  [
    'PutObject of 3 MiB',
    async () => sent('PUT', pathOf(bucket, keyOf('put')), Buffer.alloc(3 * 1024 * 1024)),
  ],
  [
    'UploadPart',
    async () => {
      const upload = await beginUpload(asAccount(), { bucket, key: keyOf('part') });
      return sent('PUT', uploadPath(upload, 'partNumber=1&'), Buffer.alloc(1024));
    },
  ],
  [
    'CompleteMultipartUpload',
    async () => {
      const upload = await beginUpload(asAccount(), { bucket, key: keyOf('complete') });
      const etag = await putPart(asAccount(), upload, { partNumber: 1, body: Buffer.from('x') });
      return sent('POST', uploadPath(upload), completeXml([{ partNumber: 1, etag }]));
    },
  ],
  [
    'DeleteObjects',
    async () => {
      const key = keyOf('delete');
      expectStatus(
        await api.send({ method: 'PUT', path: pathOf(bucket, key), body: Buffer.from('x') }, account),
        200,
      );
      return sent('POST', `/${bucket}?delete`, `<Delete><Object><Key>${key}</Key></Object></Delete>`);
    },
  ],
  [
    'PutBucketPolicy',
    async () => {
      const resource = `arn:aws:s3:::${bucket}/*`;
      const statement = {
        Effect: 'Allow',
        Principal: { AWS: account.id },
        Action: 's3:*',
        Resource: resource,
      };
      return sent('PUT', `/${bucket}?policy`, documentOf(statement));
    },
  ],
  [
    'CreateBucket',
    async () =>
      sent(
        'PUT',
        `/b-${freshWord()}${freshWord()}`,
        '<CreateBucketConfiguration></CreateBucketConfiguration>',
      ),
  ],
];

function sent(method: string, path: string, body: Buffer | string): Sent {
  return { method, path, body: Buffer.from(body) };
}

describe.each(REVOCATIONS)('%s while the body comes: %s', (_how, code, makeSender, revoke) => {
  test.each(REQUESTS)('%s', async (_name, requestOf) => {
    const sender = await makeSender();
    expect(await sendAround(sender, await requestOf(), () => revoke(sender))).toEqual({ status: 403, code });
  });
});

const [KEY_GOES, POLICY_GOES] = REVOCATIONS;
test.each([
  [KEY_GOES[0], 'InvalidClientTokenId', KEY_GOES[3]],
  [POLICY_GOES[0], 'AccessDenied', POLICY_GOES[3]],
])('%s while a request to IAM comes, which makes no other key', async (_how, code, revoke) => {
  const sender = await makeUser();
  const form = `Action=CreateAccessKey&Version=2010-05-08&UserName=${sender.name}`;
  expect(await sendIamAround(sender, form, () => revoke(sender))).toEqual({ status: 403, code });
  const keys = await iam({ Action: 'ListAccessKeys', UserName: sender.name });
  expect(keys.texts('AccessKeyId')).toEqual([sender.credentials.accessKey]);
  const other = await makeUser();
  expect(await sendIamAround(other, form, async () => {})).toMatchObject({ status: 200 });
});

test.each(REQUESTS)('%s goes on while the rights of others change', async (_name, requestOf) => {
  const sender = await makeUser();
  const other = await makeUser();
  const change = () => iam({ Action: 'DeleteUserPolicy', UserName: other.name, PolicyName: 'p' });
  const { status } = await sendAround(sender, await requestOf(), change);
  expect([200, 204]).toContain(status);
});

test('what is denied meanwhile goes by the tags that the user has by then', async () => {
  const sender = await makeUser();
  const tagged = { StringEquals: { 'aws:PrincipalTag/state': 'left' } };
  const denied = documentOf({ Effect: 'Deny', Action: 's3:*', Resource: '*', Condition: tagged });
  await iam({ Action: 'PutUserPolicy', UserName: sender.name, PolicyName: 'd', PolicyDocument: denied });
  const leave = () =>
    iam({
      Action: 'TagUser',
      UserName: sender.name,
      'Tags.member.1.Key': 'state',
      'Tags.member.1.Value': 'left',
    });
  const put = sent('PUT', pathOf(bucket, keyOf('put')), 'x');
  expect(await sendAround(sender, put, leave)).toEqual({ status: 403, code: 'AccessDenied' });
});

describe('whose bucket is suspended while the body comes', () => {
  const setState = (state: 'paid' | 'suspended') =>
    callOperator(api.server, 'PATCH', `/accounts/${account.id}`, { state });

  test.each(['PutObject', 'DeleteObjects'])('%s of another account', async (name) => {
    const other = await api.makeAccount();
    const statement = {
      Effect: 'Allow',
      Principal: { AWS: other.id },
      Action: 's3:*',
      Resource: [`arn:aws:s3:::${bucket}/*`],
    };
    const policy = Buffer.from(documentOf(statement));
    expectStatus(await api.send({ method: 'PUT', path: `/${bucket}?policy`, body: policy }, account), 204);
    const request =
      name === 'PutObject'
        ? sent('PUT', pathOf(bucket, keyOf('put')), 'x'.repeat(1024))
        : sent('POST', `/${bucket}?delete`, '<Delete><Object><Key>any</Key></Object></Delete>');
    const answer = await sendAround({ name, credentials: other }, request, () => setState('suspended'));
    await setState('paid');
    expect(answer).toEqual({ status: 403, code: 'AccessDenied' });
  });
});

test('PutObject into a bucket whose account has not paid meanwhile', async () => {
  const setUnpaid = (isUnpaid: boolean) =>
    callOperator(api.server, 'PATCH', `/accounts/${account.id}`, { isUnpaid });
  const request = sent('PUT', pathOf(bucket, keyOf('put')), 'x'.repeat(1024));
  const answer = await sendAround(await makeUser(), request, () => setUnpaid(true));
  await setUnpaid(false);
  expect(answer).toEqual({ status: 403, code: 'AccountProblem' });
});
