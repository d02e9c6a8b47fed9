// PutBucketPolicy: kept byte for byte, refused in AWS's words.
import {
  DeleteBucketPolicyCommand,
  GetBucketPolicyCommand,
  PutBucketPolicyCommand,
} from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { callIam } from '../support/servers/iam-api.ts';
import {
  type Account,
  createAccount,
  expectError,
  expectStatus,
  freshWord,
  useApi,
} from '../support/servers/s3-api.ts';

const api = useApi();
let owner: Account;
let bucket: string;
beforeEach(async () => {
  owner ??= await api.makeAccount();
  bucket = await api.makeBucket(owner);
});

const put = (text: string | Buffer, headers: Record<string, string> = {}, as: Account = owner) =>
  api.send({ method: 'PUT', path: `/${bucket}?policy`, headers, body: Buffer.from(text) }, as);
const get = () => api.send({ method: 'GET', path: `/${bucket}?policy` }, owner);

const statement = (fields: Record<string, unknown> = {}) => ({
  Effect: 'Allow',
  Principal: { AWS: owner.id },
  Action: 's3:GetObject',
  Resource: `arn:aws:s3:::${bucket}/*`,
  ...fields,
});
const document = (...statements: object[]) =>
  JSON.stringify({ Version: '2012-10-17', Statement: statements });

test('s3-behaviour 20: it is returned byte for byte, and replaced as a whole', async () => {
  const text = `{ "Version" : "2012-10-17",\r\n\t"Id":"é\\u00e9", "Statement":[${JSON.stringify(statement())}]\n}`;
  const answer = await put(text);
  expectStatus(answer, 204);
  expect(answer.body).toHaveLength(0);
  const stored = await get();
  expectStatus(stored, 200);
  expect(stored.headers['content-type']).toBe('application/json');
  expect(stored.body.equals(Buffer.from(text))).toBe(true);
  expectStatus(await put(document(statement())), 204);
  expect((await get()).body.toString()).toBe(document(statement()));
});

test('through the SDK', async () => {
  const Bucket = bucket;
  const Policy = document(statement());
  await owner.s3.send(new PutBucketPolicyCommand({ Bucket, Policy, ConfirmRemoveSelfBucketAccess: true }));
  expect((await owner.s3.send(new GetBucketPolicyCommand({ Bucket }))).Policy).toBe(Policy);
  await owner.s3.send(new DeleteBucketPolicyCommand({ Bucket }));
  await expect(owner.s3.send(new GetBucketPolicyCommand({ Bucket }))).rejects.toMatchObject({
    name: 'NoSuchBucketPolicy',
  });
});

test.each<[string, () => string | Buffer, string]>([
  ['what is no JSON', () => 'Allow', "Policies must be valid JSON and the first byte must be '{'"],
  [
    'what is no UTF-8',
    () => Buffer.from('{"Version":"\xff"}', 'latin1'),
    'This policy contains invalid Json',
  ],
  ['an open object', () => '{"Version":', 'This policy contains invalid Json'],
  ['no statement', () => '{"Version":"2012-10-17"}', 'Missing required field Statement'],
  ['no principal', () => document(statement({ Principal: undefined })), 'Missing required field Principal'],
  [
    'an unknown principal',
    () => document(statement({ Principal: { AWS: 'me' } })),
    'Invalid principal in policy',
  ],
  ['an unknown action', () => document(statement({ Action: 's3:Fly' })), 'Policy has invalid action'],
  [
    'another bucket',
    () => document(statement({ Resource: 'arn:aws:s3:::other/*' })),
    'Policy has invalid resource',
  ],
  [
    'an action that its resource has not',
    () => document(statement({ Resource: `arn:aws:s3:::${bucket}` })),
    'Action does not apply to any resource(s) in statement',
  ],
  [
    'Null on the algorithm of customers’ keys (service 4.6)',
    () =>
      document(
        statement({
          Action: 's3:PutObject',
          Condition: { Null: { 's3:x-amz-server-side-encryption-customer-algorithm': 'true' } },
        }),
      ),
    'Policy has an invalid condition key',
  ],
  [
    'more than 20 KB',
    () => document(statement({ Sid: 'x'.repeat(20_480) })),
    'Normalized policy document exceeds the maximum allowed size of 20480 bytes',
  ],
])('%s is MalformedPolicy, and the one that was there stays', async (_name, make, Message) => {
  expectStatus(await put(document(statement())), 204);
  expectError(await put(make()), { status: 400, code: 'MalformedPolicy', Message });
  expect((await get()).body.toString()).toBe(document(statement()));
});

test('white space does not count, up to the bytes that are read at all', async () => {
  const padded = (bytes: number) => document(statement()).replace('{', `{${' '.repeat(bytes)}`);
  expectStatus(await put(padded(100_000)), 204);
  expectError(await put(padded(140_000)), { status: 400, code: 'MaxMessageLengthExceeded' });
});

test('no body, and a confirmation that is none', async () => {
  expectError(await put(''), { status: 400, code: 'MissingRequestBodyError' });
  const answer = await put(document(statement()), { 'x-amz-confirm-remove-self-bucket-access': 'perhaps' });
  expectError(answer, { status: 400, code: 'InvalidArgument' });
});

test('s3-behaviour 24: the account’s root can read, replace and delete a policy that denies it', async () => {
  const deny = statement({
    Effect: 'Deny',
    Principal: '*',
    Action: ['s3:GetBucketPolicy', 's3:PutBucketPolicy', 's3:DeleteBucketPolicy'],
    Resource: `arn:aws:s3:::${bucket}`,
  });
  expectStatus(await put(document(deny)), 204);
  expectStatus(await put(document(deny), { 'x-amz-confirm-remove-self-bucket-access': 'true' }), 204);
  expect((await get()).body.toString()).toBe(document(deny));
  expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}?policy` }, owner), 204);
});

test('s3-behaviour 24: a user is locked out only where it says so; the root can still repair it', async () => {
  const iam = async (parameters: Record<string, string>) => {
    const answer = await callIam(api.server, parameters, { credentials: owner });
    expect(answer.status, answer.xml).toBe(200);
    return answer;
  };
  const UserName = `author-${freshWord()}`;
  await iam({ Action: 'CreateUser', UserName });
  const all = { Effect: 'Allow', Action: 's3:*', Resource: '*' };
  await iam({ Action: 'PutUserPolicy', UserName, PolicyName: 'all', PolicyDocument: document(all) });
  const made = await iam({ Action: 'CreateAccessKey', UserName });
  const user = {
    ...owner,
    accessKey: made.text('AccessKeyId') ?? '',
    secretKey: made.text('SecretAccessKey') ?? '',
  };
  const deny = document(
    statement({
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:PutBucketPolicy',
      Resource: `arn:aws:s3:::${bucket}`,
    }),
  );
  expectStatus(await put(document(statement()), {}, user), 204);
  expectError(await put(deny, {}, user), { status: 403, code: 'AccessDenied' });
  expect((await get()).body.toString()).toBe(document(statement()));
  expectStatus(await put(deny, { 'x-amz-confirm-remove-self-bucket-access': 'true' }, user), 204);
  expectError(await put(document(statement()), {}, user), { status: 403, code: 'AccessDenied' });
  expectStatus(await put(document(statement())), 204);
});

test('a policy follows a rename: it is about the same objects', async () => {
  const text = document(statement());
  expectStatus(await put(text), 204);
  const renamed = `${bucket}-renamed`;
  const headers = { Destination: renamed };
  expectStatus(await api.send({ method: 'MOVE', path: `/${bucket}`, headers }, owner), 200);
  const answer = await api.send({ method: 'GET', path: `/${renamed}?policy` }, owner);
  expect(answer.body.toString()).toBe(text.replace(bucket, renamed));
  const again = await api.send({ method: 'PUT', path: `/${renamed}?policy`, body: answer.body }, owner);
  expectStatus(again, 204);
});

test('public statements are for accounts that may share with everybody', async () => {
  const trial = await createAccount(api.server, { state: 'trial' });
  bucket = await api.makeBucket(trial);
  const as = trial as Account;
  const isPublic = document(statement({ Principal: '*' }));
  expectError(await put(isPublic, {}, as), { status: 403, code: 'AccessDenied' });
  const held = { IpAddress: { 'aws:SourceIp': '10.0.0.0/8' } };
  expectStatus(await put(document(statement({ Principal: '*', Condition: held })), {}, as), 204);
  expectStatus(await put(document(statement()), {}, as), 204);
  bucket = await api.makeBucket(owner);
  expectStatus(await put(document(statement({ Principal: '*' }))), 204);
});

test('only the owner may set it, and only of an existing bucket', async () => {
  const body = Buffer.from(document(statement()));
  const path = `/${bucket}?policy`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'PUT', path, body }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'PUT', path }), denied);
  const nowhere = await api.send({ method: 'PUT', path: '/no-such-bucket-here?policy', body });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
  expectError(await get(), { status: 404, code: 'NoSuchBucketPolicy' });
});
