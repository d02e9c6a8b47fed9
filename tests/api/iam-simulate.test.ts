// Simulated requests by the IAM API: for a principal, for documents, and the keys that policies look at.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
let account: string;
let user: string;
let role: string;

const call = (Action: string, parameters: Record<string, string | number | boolean> = {}) =>
  callIam(server, { Action, ...parameters });

const documentOf = (...statements: unknown[]) =>
  JSON.stringify({ Version: '2012-10-17', Statement: statements });
const allow = (Action: string, Resource = '*', more = {}) => ({ Effect: 'Allow', Action, Resource, ...more });
const members = (name: string, values: readonly string[]) =>
  Object.fromEntries(values.map((value, at) => [`${name}.member.${at + 1}`, value]));

const TRUST =
  '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}';

beforeAll(async () => {
  server = await startServer();
  account = (await call('GetUser')).text('UserId') ?? '';
  user = (await call('CreateUser', { UserName: 'Sim', Path: '/s/' })).text('Arn') ?? '';
  role = (await call('CreateRole', { RoleName: 'sim', AssumeRolePolicyDocument: TRUST })).text('Arn') ?? '';
  await call('AttachUserPolicy', {
    UserName: 'Sim',
    PolicyArn: 'arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess',
  });
  await call('PutUserPolicy', {
    UserName: 'Sim',
    PolicyName: 'home',
    PolicyDocument: documentOf(allow('s3:PutObject', `arn:aws:s3:::home/${'${aws:username}'}/*`), {
      Sid: 'No',
      Effect: 'Deny',
      Action: 's3:GetObject',
      Resource: 'arn:aws:s3:::home/secret',
    }),
  });
  await call('PutRolePolicy', {
    RoleName: 'sim',
    PolicyName: 'all',
    PolicyDocument: documentOf(allow('s3:*')),
  });
});
afterAll(() => server.stop());

const principal = (
  actions: string[],
  resources: string[] = [],
  parameters: Record<string, string | number> = {},
) =>
  call('SimulatePrincipalPolicy', {
    PolicySourceArn: user,
    ...members('ActionNames', actions),
    ...members('ResourceArns', resources),
    ...parameters,
  });

test('a user is allowed by what is attached, and the answer says which statement it was', async () => {
  const answer = await principal(['s3:GetObject']);
  expect(answer.status).toBe(200);
  expect([
    answer.text('EvalActionName'),
    answer.text('EvalResourceName'),
    answer.text('EvalDecision'),
  ]).toEqual(['s3:GetObject', '*', 'allowed']);
  expect([answer.text('SourcePolicyId'), answer.text('SourcePolicyType')]).toEqual([
    'AmazonS3ReadOnlyAccess',
    'IAM Policy',
  ]);
  expect(answer.xml).toContain('<StartPosition><Line>4</Line><Column>5</Column></StartPosition>');
  expect(answer.xml).not.toContain('ResourceSpecificResults');
});

test('an inline policy is named by its holder; variables are those of the user', async () => {
  const answer = await principal(['s3:PutObject'], ['arn:aws:s3:::home/Sim/x', 'arn:aws:s3:::home/other/x']);
  expect(answer.texts('EvalResourceDecision')).toEqual(['allowed', 'implicitDeny']);
  expect([answer.text('EvalDecision'), answer.text('EvalResourceName')]).toEqual(['implicitDeny', '*']);
  expect(answer.text('SourcePolicyId')).toBe('user_Sim_home');
  const denied = await principal(['s3:GetObject'], ['arn:aws:s3:::home/secret']);
  expect([denied.text('EvalDecision'), denied.texts('SourcePolicyId')]).toEqual([
    'explicitDeny',
    ['user_Sim_home', 'user_Sim_home'],
  ]);
});

test('documents are added, boundaries limit, policies are left out', async () => {
  const added = await principal(
    ['iam:GetUser'],
    [],
    members('PolicyInputList', [documentOf(allow('iam:*'))]),
  );
  expect([added.text('EvalDecision'), added.text('SourcePolicyId')]).toEqual([
    'allowed',
    'PolicyInputList.1',
  ]);
  const limited = await principal(
    ['s3:GetObject', 's3:ListBucket'],
    [],
    members('PermissionsBoundaryPolicyInputList', [documentOf(allow('s3:List*'))]),
  );
  expect(limited.texts('EvalDecision')).toEqual(['implicitDeny', 'allowed']);
  expect(limited.texts('AllowedByPermissionsBoundary')).toEqual(['false', 'true']);
  const excluded = await principal(['s3:GetObject'], ['arn:aws:s3:::home/secret'], {
    'PolicyExclusionList.member.1.PolicyType': 'inline',
    'PolicyExclusionList.member.1.InlinePolicyIdentifier.PolicyName': 'home',
    'PolicyExclusionList.member.1.InlinePolicyIdentifier.AttachmentType': 'user',
    'PolicyExclusionList.member.1.InlinePolicyIdentifier.AttachmentName': 'sim',
  });
  expect(excluded.text('EvalDecision')).toBe('allowed');
  const readOnly = 'arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess';
  const without = await principal(['s3:GetObject'], [], {
    'PolicyExclusionList.member.1.PolicyType': 'aws-managed',
    'PolicyExclusionList.member.1.PolicyArn': readOnly,
  });
  expect(without.text('EvalDecision')).toBe('implicitDeny');
});

test('a boundary that the user has is simulated, too', async () => {
  await call('CreateUser', {
    UserName: 'bounded',
    PermissionsBoundary: 'arn:aws:iam::aws:policy/IAMReadOnlyAccess',
  });
  await call('AttachUserPolicy', {
    UserName: 'bounded',
    PolicyArn: 'arn:aws:iam::aws:policy/AdministratorAccess',
  });
  const PolicySourceArn = `arn:aws:iam::${account}:user/bounded`;
  const asked = await principal(['s3:GetObject', 'iam:GetUser'], [], { PolicySourceArn });
  expect(asked.texts('EvalDecision')).toEqual(['implicitDeny', 'allowed']);
});

test('what groups allow, their members may; and a group is simulated by itself', async () => {
  await call('CreateGroup', { GroupName: 'Admins' });
  await call('PutGroupPolicy', {
    GroupName: 'Admins',
    PolicyName: 'g',
    PolicyDocument: documentOf(allow('iam:*')),
  });
  await call('AddUserToGroup', { GroupName: 'Admins', UserName: 'Sim' });
  const member = await principal(['iam:GetUser']);
  expect([member.text('EvalDecision'), member.text('SourcePolicyId')]).toEqual(['allowed', 'group_Admins_g']);
  const PolicySourceArn = `arn:aws:iam::${account}:group/Admins`;
  const group = await principal(['iam:GetUser', 's3:GetObject'], [], { PolicySourceArn });
  expect(group.texts('EvalDecision')).toEqual(['allowed', 'implicitDeny']);
});

test('a role is simulated as a session of it', async () => {
  const answer = await principal(['s3:DeleteBucket', 'iam:GetUser'], [], { PolicySourceArn: role });
  expect(answer.texts('EvalDecision')).toEqual(['allowed', 'implicitDeny']);
  expect(answer.text('SourcePolicyId')).toBe('role_sim_all');
});

test('a resource policy of another account must allow as well', async () => {
  const ResourcePolicy = documentOf({
    Effect: 'Allow',
    Principal: { AWS: user },
    Action: 's3:GetObject',
    Resource: 'arn:aws:s3:::theirs/*',
  });
  const ResourceOwner = 'arn:aws:iam::210987654321:root';
  const resources = ['arn:aws:s3:::theirs/k', 'arn:aws:s3:::other/k'];
  const answer = await principal(['s3:GetObject'], resources, { ResourcePolicy, ResourceOwner });
  expect(answer.texts('EvalResourceDecision')).toEqual(['allowed', 'implicitDeny']);
  expect([answer.texts('key'), answer.texts('value')]).toEqual([
    ['IAM Policy', 'Resource Policy', 'IAM Policy', 'Resource Policy'],
    ['allowed', 'allowed', 'allowed', 'implicitDeny'],
  ]);
  expect(answer.texts('SourcePolicyType')).toContain('Resource Policy');
});

const custom = (documents: string[], actions: string[], parameters: Record<string, string | number> = {}) =>
  call('SimulateCustomPolicy', {
    ...members('PolicyInputList', documents),
    ...members('ActionNames', actions),
    ...parameters,
  });

test('conditions are asked of the context that is given; what is missing is named', async () => {
  const policy = documentOf(
    allow('s3:*', '*', {
      Condition: {
        IpAddress: { 'aws:SourceIp': '10.0.0.0/8' },
        'ForAllValues:StringEquals': { 'aws:TagKeys': ['a', 'b'] },
      },
    }),
  );
  const without = await custom([policy], ['s3:GetObject']);
  expect([without.text('EvalDecision'), without.texts('member')]).toEqual([
    'implicitDeny',
    ['aws:SourceIp', 'aws:TagKeys'],
  ]);
  const entries = (address: string) => ({
    'ContextEntries.member.1.ContextKeyName': 'aws:sourceip',
    'ContextEntries.member.1.ContextKeyType': 'ip',
    'ContextEntries.member.1.ContextKeyValues.member.1': address,
    'ContextEntries.member.2.ContextKeyName': 'aws:TagKeys',
    'ContextEntries.member.2.ContextKeyType': 'stringList',
    'ContextEntries.member.2.ContextKeyValues.member.1': 'a',
    'ContextEntries.member.2.ContextKeyValues.member.2': 'b',
  });
  expect((await custom([policy], ['s3:GetObject'], entries('10.1.2.3'))).text('EvalDecision')).toBe(
    'allowed',
  );
  expect((await custom([policy], ['s3:GetObject'], entries('11.1.2.3'))).text('EvalDecision')).toBe(
    'implicitDeny',
  );
});

test('results come in pages, one for each action', async () => {
  const actions = ['s3:GetObject', 's3:PutObject', 's3:ListBucket'];
  const first = await custom([documentOf(allow('s3:*'))], actions, { MaxItems: 2 });
  expect([first.texts('EvalActionName'), first.text('IsTruncated')]).toEqual([actions.slice(0, 2), 'true']);
  const Marker = first.text('Marker') ?? '';
  const rest = await custom([documentOf(allow('s3:*'))], actions, { MaxItems: 2, Marker });
  expect([rest.texts('EvalActionName'), rest.text('IsTruncated')]).toEqual([actions.slice(2), 'false']);
});

test('many actions on many resources are answered in bounded pages', async () => {
  const actions = Array.from({ length: 400 }, (_, at) => `s3:Get${at}`);
  const resources = Array.from({ length: 400 }, (_, at) => `arn:aws:s3:::b/${at}`);
  const answer = await custom([documentOf(allow('s3:*'))], actions, {
    ...members('ResourceArns', resources),
    MaxItems: 1000,
  });
  expect([answer.texts('EvalActionName').length, answer.text('IsTruncated')]).toEqual([5, 'true']);
});

test.each([
  ['SimulateCustomPolicy', {}, 'ValidationError'],
  [
    'SimulateCustomPolicy',
    { ...members('PolicyInputList', ['{']), ...members('ActionNames', ['s3:x']) },
    'InvalidInput',
  ],
  ['SimulatePrincipalPolicy', { PolicySourceArn: 'arn:aws:s3:::a-bucket-of-mine' }, 'InvalidInput'],
  ['SimulatePrincipalPolicy', { PolicySourceArn: 'arn:aws:iam::210987654321:user/x' }, 'InvalidInput'],
  ['GetContextKeysForCustomPolicy', members('PolicyInputList', ['{}']), 'InvalidInput'],
] as [string, Record<string, string>, string][])('%s with %j: %s', async (action, parameters, code) => {
  const actions = action === 'SimulatePrincipalPolicy' ? members('ActionNames', ['s3:GetObject']) : {};
  expect((await call(action, { ...actions, ...parameters })).code).toBe(code);
});

test('who is not there', async () => {
  for (const name of ['nobody', 'Sim']) {
    const PolicySourceArn = `arn:aws:iam::${account}:user/${name}`;
    expect(await principal(['s3:GetObject'], [], { PolicySourceArn })).toMatchObject({
      status: 404,
      code: 'NoSuchEntity',
    });
  }
});

test('a caller of documents is a user', async () => {
  const ResourcePolicy = documentOf({ ...allow('s3:*'), Principal: '*' });
  const identity = [documentOf(allow('s3:*'))];
  expect((await custom(identity, ['s3:GetObject'], { ResourcePolicy })).code).toBe('InvalidInput');
  expect((await custom(identity, ['s3:GetObject'], { CallerArn: role })).code).toBe('InvalidInput');
  const asked = await custom(identity, ['s3:GetObject'], { ResourcePolicy, CallerArn: user });
  expect(asked.text('EvalDecision')).toBe('allowed');
});

test('the keys that policies look at are told', async () => {
  const policy = documentOf(allow('s3:*', `arn:aws:s3:::${'${aws:PrincipalTag/Team}'}/*`), {
    ...allow('iam:*'),
    Condition: { Bool: { 'AWS:MultiFactorAuthPresent': 'true' } },
  });
  const given = await call('GetContextKeysForCustomPolicy', members('PolicyInputList', [policy]));
  expect(given.texts('member')).toEqual(['aws:PrincipalTag/Team', 'aws:MultiFactorAuthPresent']);
  const of = await call('GetContextKeysForPrincipalPolicy', {
    PolicySourceArn: user,
    ...members('PolicyInputList', [policy]),
  });
  expect(of.texts('member')).toEqual(['aws:username', 'aws:PrincipalTag/Team', 'aws:MultiFactorAuthPresent']);
});

test('an answer that grows too long ends its page, and further results of its last action have decisions alone', async () => {
  const many = documentOf(...Array.from({ length: 200 }, () => allow('s3:*')));
  const resources = Array.from({ length: 500 }, (_, at) => `arn:aws:s3:::b/${at}`);
  const first = await custom([many], ['s3:GetObject', 's3:PutObject'], members('ResourceArns', resources));
  expect(first.texts('EvalResourceDecision')).toEqual(resources.map(() => 'allowed'));
  expect(first.texts('EvalActionName')).toEqual(['s3:GetObject']);
  expect(first.xml.length).toBeLessThan(5 * 1024 * 1024);
  expect(first.xml.endsWith('</SimulateCustomPolicyResponse>')).toBe(true);
  const last = first.xml.slice(first.xml.lastIndexOf('<EvalResourceName>'));
  expect(last).toContain('<MatchedStatements></MatchedStatements>');
  expect(first.text('IsTruncated')).toBe('true');
});

test('all authorization details come in pages, and by kind', async () => {
  await call('CreatePolicy', { PolicyName: 'own', PolicyDocument: documentOf(allow('s3:*')) });
  const whole = await call('GetAccountAuthorizationDetails');
  expect(whole.texts('UserName')).toEqual(['bounded', 'Sim']);
  expect(whole.xml).toContain('<GroupList><member>Admins</member></GroupList>');
  expect(whole.texts('GroupName')).toEqual(['Admins']);
  expect(whole.texts('RoleName')).toEqual(['sim']);
  expect(whole.xml).toMatch(/<UserPolicyList><member><PolicyName>home</);
  const policies = whole.xml.replace(/.*<Policies>/s, '');
  expect([...policies.matchAll(/<PolicyName>(\w+)</g)].map(([, name]) => name)).toEqual([
    'own',
    'AdministratorAccess',
    'AmazonS3ReadOnlyAccess',
    'IAMReadOnlyAccess',
  ]);
  expect(decodeURIComponent(whole.texts('Document')[0] ?? '')).toBe(documentOf(allow('s3:*')));

  const arns: string[] = [];
  for (let Marker: string | undefined, pages = 0; pages === 0 || Marker !== undefined; pages++) {
    expect(pages).toBeLessThan(20);
    const page = await call('GetAccountAuthorizationDetails', { MaxItems: 1, ...(Marker && { Marker }) });
    arns.push(...page.texts('Arn'));
    Marker = page.text('Marker');
  }
  expect(arns).toEqual(whole.texts('Arn'));
  const local = await call('GetAccountAuthorizationDetails', { 'Filter.member.1': 'LocalManagedPolicy' });
  expect(local.texts('Arn')).toEqual([`arn:aws:iam::${account}:policy/own`]);
  expect((await call('GetAccountAuthorizationDetails', { 'Filter.member.1': 'Bucket' })).code).toBe(
    'ValidationError',
  );
});

/** Takes some 0.3 s. */
function simulateLong() {
  const statements = Array.from({ length: 12 }, (_, at) =>
    allow('s3:*', `arn:aws:s3:::${'*a'.repeat(60)}${at}*`, {
      Condition: { StringLike: { 's3:prefix': '*b'.repeat(60) } },
    }),
  );
  const resources = Array.from(
    { length: 30 },
    (_, at) => `arn:aws:s3:::${'a'.repeat(400)}${at}/${'ab'.repeat(200)}`,
  );
  return call('SimulateCustomPolicy', {
    ...members('PolicyInputList', new Array(4).fill(documentOf(...statements))),
    ...members('ActionNames', new Array(30).fill('s3:GetObject')),
    ...members('ResourceArns', resources),
  });
}

/** It holds memory for its answer then. */
async function isUnderWay(): Promise<boolean> {
  const metrics = await (await fetch(`${server.endpoint}/metrics`)).text();
  return Number(/^holdfast_body_buffer_bytes (\d+)/m.exec(metrics)?.[1]) > 0;
}

test('simulations of one account are done one after the other, their policies not compiled before their turn', async () => {
  const ended: string[] = [];
  const long = simulateLong().then(({ status }) => ended.push(`long ${status}`));
  while (ended.length === 0 && !(await isUnderWay()));
  expect(ended).toEqual([]);
  const wrong = call('SimulateCustomPolicy', {
    ...members('PolicyInputList', ['{}']),
    ...members('ActionNames', ['s3:GetObject']),
  }).then(({ code }) => ended.push(`wrong ${code}`));
  await Promise.all([long, wrong]);
  expect(ended).toEqual(['long 200', 'wrong InvalidInput']);
});
