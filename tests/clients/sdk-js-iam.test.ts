// IAM and STS by the AWS SDK for JavaScript v3 with its default settings: what its parsers make of the answers.
import {
  AttachRolePolicyCommand,
  CreateAccessKeyCommand,
  CreatePolicyCommand,
  CreateRoleCommand,
  CreateUserCommand,
  GetAccountAuthorizationDetailsCommand,
  GetPolicyVersionCommand,
  GetUserCommand,
  IAMClient,
  LimitExceededException,
  MalformedPolicyDocumentException,
  NoSuchEntityException,
  PutUserPolicyCommand,
  paginateListUsers,
  SimulatePrincipalPolicyCommand,
} from '@aws-sdk/client-iam';
import { CreateBucketCommand, ListBucketsCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import {
  AssumeRoleCommand,
  GetCallerIdentityCommand,
  GetSessionTokenCommand,
  STSClient,
} from '@aws-sdk/client-sts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { policyText } from '../support/objects/identities.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
let iam: IAMClient;
beforeAll(async () => {
  server = await startServer();
  iam = new IAMClient(configOf());
});
afterAll(() => server.stop());

interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

function configOf(credentials?: Credentials) {
  const { endpoint, accessKey, secretKey } = server;
  const root = { accessKeyId: accessKey, secretAccessKey: secretKey };
  return { endpoint, region: 'us-east-1', credentials: credentials ?? root, maxAttempts: 1 };
}

const s3Of = (credentials: Credentials) => new S3Client({ ...configOf(credentials), forcePathStyle: true });
const allow = (Action: string | string[], Resource: string) => ({ Effect: 'Allow', Action, Resource });

/** As the SDK gives temporary credentials. */
type Temporary = Record<'AccessKeyId' | 'SecretAccessKey' | 'SessionToken', string | undefined>;

function fromSts(given: Temporary | undefined) {
  return {
    accessKeyId: given?.AccessKeyId ?? '',
    secretAccessKey: given?.SecretAccessKey ?? '',
    sessionToken: given?.SessionToken ?? '',
  };
}

async function userWith(UserName: string, statements: readonly object[]): Promise<Credentials> {
  await iam.send(new CreateUserCommand({ UserName, Tags: [{ Key: 'made', Value: 'by test' }] }));
  const PolicyDocument = policyText(statements);
  await iam.send(new PutUserPolicyCommand({ UserName, PolicyName: 'own', PolicyDocument }));
  const { AccessKey } = await iam.send(new CreateAccessKeyCommand({ UserName }));
  return {
    accessKeyId: AccessKey?.AccessKeyId ?? '',
    secretAccessKey: AccessKey?.SecretAccessKey ?? '',
  };
}

test('a user has what its policies give, and its session the same', async () => {
  const keys = await userWith('lister', [allow('s3:ListAllMyBuckets', '*')]);
  const sts = new STSClient(configOf(keys));
  expect((await sts.send(new GetCallerIdentityCommand({}))).Arn).toMatch(/:user\/lister$/);
  const { Credentials } = await sts.send(new GetSessionTokenCommand({ DurationSeconds: 900 }));
  expect(Credentials?.Expiration).toBeInstanceOf(Date);
  for (const credentials of [keys, fromSts(Credentials)]) {
    expect((await s3Of(credentials).send(new ListBucketsCommand({}))).Buckets).toBeInstanceOf(Array);
    const making = s3Of(credentials).send(new CreateBucketCommand({ Bucket: 'not-for-lister' }));
    await expect(making).rejects.toMatchObject({ name: 'AccessDenied', $metadata: { httpStatusCode: 403 } });
  }
});

test('a role is assumed by who it trusts', async () => {
  await s3Of(must(configOf().credentials, 'the root')).send(new CreateBucketCommand({ Bucket: 'of-role' }));
  const keys = await userWith('actor', [allow('sts:AssumeRole', '*')]);
  const { User } = await iam.send(new GetUserCommand({ UserName: 'actor' }));
  const trust = [{ Effect: 'Allow', Principal: { AWS: User?.Arn }, Action: 'sts:AssumeRole' }];
  const role = { RoleName: 'writer', AssumeRolePolicyDocument: policyText(trust) };
  const { Role } = await iam.send(new CreateRoleCommand(role));
  const PolicyDocument = policyText([allow('s3:PutObject', 'arn:aws:s3:::of-role/*')]);
  const { Policy } = await iam.send(new CreatePolicyCommand({ PolicyName: 'write', PolicyDocument }));
  await iam.send(new AttachRolePolicyCommand({ RoleName: 'writer', PolicyArn: Policy?.Arn }));
  const assumed = await new STSClient(configOf(keys)).send(
    new AssumeRoleCommand({ RoleArn: Role?.Arn, RoleSessionName: 'sdk' }),
  );
  expect(assumed.AssumedRoleUser?.Arn).toMatch(/:assumed-role\/writer\/sdk$/);
  const s3 = s3Of(fromSts(assumed.Credentials));
  await s3.send(new PutObjectCommand({ Bucket: 'of-role', Key: 'a', Body: 'x' }));
  await expect(s3.send(new ListBucketsCommand({}))).rejects.toMatchObject({ name: 'AccessDenied' });
  const version = await iam.send(new GetPolicyVersionCommand({ PolicyArn: Policy?.Arn, VersionId: 'v1' }));
  expect(decodeURIComponent(version.PolicyVersion?.Document ?? '')).toBe(PolicyDocument);
});

test('lists, details and simulations are parsed', async () => {
  for (const name of ['p1', 'p2', 'p3'])
    await iam.send(new CreateUserCommand({ UserName: name, Path: '/paged/' }));
  const names: string[] = [];
  for await (const { Users = [] } of paginateListUsers(
    { client: iam, pageSize: 2 },
    { PathPrefix: '/paged/' },
  ))
    names.push(...Users.map(({ UserName }) => UserName ?? ''));
  expect(names).toEqual(['p1', 'p2', 'p3']);
  const details = await iam.send(new GetAccountAuthorizationDetailsCommand({ Filter: ['User'] }));
  expect(details.UserDetailList?.map(({ UserName }) => UserName)).toEqual(expect.arrayContaining(names));
  const { User } = await iam.send(new GetUserCommand({ UserName: 'p1' }));
  const simulated = await iam.send(
    new SimulatePrincipalPolicyCommand({ PolicySourceArn: User?.Arn, ActionNames: ['s3:GetObject'] }),
  );
  expect(simulated.EvaluationResults).toMatchObject([{ EvalDecision: 'implicitDeny' }]);
});

test('errors have their classes', async () => {
  await expect(iam.send(new GetUserCommand({ UserName: 'nobody' }))).rejects.toBeInstanceOf(
    NoSuchEntityException,
  );
  await expect(
    iam.send(new CreatePolicyCommand({ PolicyName: 'bad', PolicyDocument: '{}' })),
  ).rejects.toBeInstanceOf(MalformedPolicyDocumentException);
  await iam.send(new CreateUserCommand({ UserName: 'two-keys' }));
  const more = () => iam.send(new CreateAccessKeyCommand({ UserName: 'two-keys' }));
  await more();
  await more();
  await expect(more()).rejects.toBeInstanceOf(LimitExceededException);
});
