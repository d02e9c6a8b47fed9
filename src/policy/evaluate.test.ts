// The rules by which AWS decides, each with the case that shows it (AWS "Policy evaluation logic", "Cross-account policy
// evaluation logic", "How AWS enforcement code logic evaluates requests to allow or deny access").
import { expect, test } from 'vitest';
import { compileStoredPolicy } from './documents/compile-policy.ts';
import type { DocumentType } from './documents/wording.ts';
import {
  type AccessQuestion,
  evaluate,
  matchingStatements,
  mayAllowSomewhere,
  mentionsKey,
  type NamedPolicy,
} from './evaluate.ts';
import type { ContextValue } from './patterns.ts';
import type { Caller } from './principals.ts';

const OWN = '111111111111';
const OTHER = '222222222222';
const ANN = `arn:aws:iam::${OWN}:user/ann`;
const ROLE = `arn:aws:iam::${OWN}:role/path/r`;
const SESSION = `arn:aws:sts::${OWN}:assumed-role/r/s1`;
const ids = (accountId: string) => ({ accountId, canonicalId: accountId.slice(0, 1).repeat(64) });

const user: Caller = { kind: 'user', ...ids(OWN), arn: ANN };
const root: Caller = { kind: 'root', ...ids(OWN), arn: `arn:aws:iam::${OWN}:root` };
const session: Caller = { kind: 'role-session', ...ids(OWN), arn: SESSION, roleArn: ROLE };
const anonymous: Caller = { kind: 'anonymous' };

type Statement = Record<string, unknown>;

function policy(type: DocumentType, name: string, ...statements: Statement[]): NamedPolicy {
  const Statement = statements.map((statement) => ({ Effect: 'Allow', Action: '*', ...statement }));
  const outcome = compileStoredPolicy(JSON.stringify({ Version: '2012-10-17', Statement }), type);
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return { policy: outcome.policy, name };
}

const ALL = { Resource: '*' };
const DENY = { Effect: 'Deny', Resource: '*' };
const allowing = policy('identity', 'allowing', ALL);
const denying = policy('identity', 'denying', { ...DENY, Sid: 'no' });
const useless = policy('identity', 'useless', { Action: 'iam:*', Resource: '*' });
const ofBucket = (...statements: Statement[]) =>
  policy('resource', 'arn:aws:s3:::b', ...statements.map((statement) => ({ Resource: '*', ...statement })));
const named = (AWS: string | string[]) => ({ Principal: { AWS } });

const NOBODY = { identity: [] };
type Change = Partial<AccessQuestion> & { context?: Record<string, ContextValue> };

function question({ context = {}, ...change }: Change): AccessQuestion {
  return {
    caller: user,
    policies: NOBODY,
    action: 's3:GetObject',
    resource: 'arn:aws:s3:::b/k',
    resourceAccount: OWN,
    contextOf: (key) => context[key],
    ...change,
  };
}

function ask(change: Change): string {
  const decision = evaluate(question(change));
  if (decision.isAllowed) {
    return typeof decision.by === 'string' ? `by ${decision.by}` : `by ${decision.by.kind}`;
  }
  return decision.reason === 'explicit-deny' ? `denied by ${decision.by.kind}` : `no ${decision.lacking}`;
}

test('a user that is denied by its name is so under another one; what others were called by then is no matter', () => {
  const renamed: Caller = { ...user, arn: `arn:aws:iam::${OWN}:user/renamed`, id: 'AIDAANN' };
  const denied = ofBucket({ ...named([ANN, ROLE]), Effect: 'Deny' });
  const as = (caller: Caller, held: Record<string, string>) =>
    ask({ caller, policies: { identity: [allowing] }, resourcePolicy: { ...denied, ids: held } });
  expect(as(renamed, { [ANN]: 'AIDAANN' })).toBe('denied by resource');
  expect(as({ ...renamed, arn: ANN }, { [ANN]: 'AIDAOTHER' })).toBe('denied by resource');
  expect(as(renamed, { [ANN]: 'AIDAOTHER', [ROLE]: 'AROAR' })).toBe('by identity');
  expect(as(renamed, {})).toBe('by identity');
});

test('by default everything is denied', () => {
  expect(ask({})).toBe('no identity');
  expect(ask({ caller: session })).toBe('no identity');
  expect(ask({ caller: anonymous })).toBe('no resource');
});

test('an explicit deny in any policy overrides every allow', () => {
  const resourcePolicy = ofBucket(named(ANN));
  const boundary = policy('boundary', 'b', DENY);
  expect(ask({ policies: { identity: [allowing, denying] }, resourcePolicy })).toBe('denied by identity');
  expect(ask({ policies: { identity: [allowing], boundary }, resourcePolicy })).toBe('denied by boundary');
  const limited = { identity: [allowing], session: [policy('session', 's', ALL, DENY)] };
  expect(ask({ caller: session, policies: limited })).toBe('denied by session');
  const banned = ofBucket({ Principal: '*' }, { ...DENY, Principal: '*' });
  expect(ask({ policies: { identity: [allowing] }, resourcePolicy: banned })).toBe('denied by resource');
  expect(
    ask({ policies: { identity: [allowing] }, resourcePolicy: banned, aclGrant: () => 'everyone' }),
  ).toBe('denied by resource');
});

test('the decision names the policy, the statement and its Sid', () => {
  const decision = evaluate(question({ policies: { identity: [useless, allowing, denying] } }));
  expect(decision).toEqual({
    isAllowed: false,
    reason: 'explicit-deny',
    by: { kind: 'identity', name: 'denying', statement: 0, sid: 'no' },
  });
});

test('within an account the policies of identity and resource are a union', () => {
  expect(ask({ policies: { identity: [allowing] } })).toBe('by identity');
  expect(ask({ resourcePolicy: ofBucket(named(ANN)) })).toBe('by resource');
  expect(ask({ resourcePolicy: ofBucket({ Principal: '*' }) })).toBe('by resource');
});

test('policies of groups and of the user count alike', () => {
  expect(ask({ policies: { identity: [useless, policy('identity', 'group', ALL)] } })).toBe('by identity');
});

test('a statement that names the account leaves it to the policies of the identity', () => {
  for (const principal of [
    named(OWN),
    named(`arn:aws:iam::${OWN}:root`),
    { Principal: { CanonicalUser: '1'.repeat(64) } },
  ]) {
    const resourcePolicy = ofBucket(principal);
    expect(ask({ resourcePolicy })).toBe('no identity');
    expect(ask({ resourcePolicy, policies: { identity: [allowing] } })).toBe('by identity');
  }
});

test('a statement that denies an account denies all of it, its root too', () => {
  const resourcePolicy = ofBucket({ ...DENY, ...named(OWN) });
  for (const caller of [user, session, root]) {
    expect(ask({ caller, resourcePolicy, policies: { identity: [allowing] } })).toBe('denied by resource');
  }
  expect(ask({ caller: anonymous, resourcePolicy })).toBe('no resource');
});

test('a permissions boundary limits what identity policies allow, and allows nothing itself', () => {
  const boundary = policy('boundary', 'b', { Action: 's3:Get*', Resource: '*' });
  expect(ask({ policies: { identity: [], boundary } })).toBe('no identity');
  expect(ask({ policies: { identity: [allowing], boundary } })).toBe('by identity');
  expect(ask({ policies: { identity: [allowing], boundary }, action: 's3:PutObject' })).toBe('no boundary');
});

test('a bucket policy that names the ARN of a user is not limited by the implicit deny of a boundary', () => {
  const boundary = policy('boundary', 'b', { Action: 'iam:*', Resource: '*' });
  expect(ask({ policies: { identity: [], boundary }, resourcePolicy: ofBucket(named(ANN)) })).toBe(
    'by resource',
  );
  const everybody = ofBucket({ Principal: '*' });
  expect(ask({ policies: { identity: [], boundary }, resourcePolicy: everybody })).toBe('no boundary');
});

test('a bucket policy that names the ARN of a role is limited by boundary and session policies', () => {
  const resourcePolicy = ofBucket(named(ROLE));
  const limit = { Action: 'iam:*', Resource: '*' };
  const ofRole = (policies: AccessQuestion['policies']) => ask({ caller: session, resourcePolicy, policies });
  expect(ofRole(NOBODY)).toBe('by resource');
  expect(ofRole({ identity: [], boundary: policy('boundary', 'b', limit) })).toBe('no boundary');
  expect(ofRole({ identity: [], session: [policy('session', 's', limit)] })).toBe('no session');
  expect(ofRole({ identity: [], session: [policy('session', 's', ALL)] })).toBe('by resource');
});

test('a bucket policy that names the ARN of a session is limited by neither', () => {
  const limit = { Action: 'iam:*', Resource: '*' };
  const policies = {
    identity: [],
    boundary: policy('boundary', 'b', limit),
    session: [policy('session', 's', limit)],
  };
  expect(ask({ caller: session, policies, resourcePolicy: ofBucket(named([ROLE, SESSION])) })).toBe(
    'by resource',
  );
  const twice = ofBucket(named(ROLE), named(SESSION));
  expect(ask({ caller: session, policies, resourcePolicy: twice })).toBe('by resource');
});

test('session policies limit what the role allows; an empty list of them limits nothing away but all', () => {
  const of = (sessionPolicies: NamedPolicy[] | undefined) =>
    ask({ caller: session, policies: { identity: [allowing], session: sessionPolicies } });
  expect(of(undefined)).toBe('by identity');
  expect(of([policy('session', 's', { Action: 's3:Put*', Resource: '*' })])).toBe('no session');
  expect(
    of([policy('session', 'one', { Action: 's3:Put*', Resource: '*' }), policy('session', 'two', ALL)]),
  ).toBe('by identity');
  expect(of([])).toBe('no session');
});

test('across accounts both sides must allow', () => {
  const resourcePolicy = ofBucket(named(ANN));
  const there = { resourceAccount: OTHER };
  expect(ask({ ...there, resourcePolicy })).toBe('no identity');
  expect(ask({ ...there, policies: { identity: [allowing] } })).toBe('no resource');
  expect(ask({ ...there, resourcePolicy, policies: { identity: [allowing] } })).toBe('by resource');
  const boundary = policy('boundary', 'b', { Action: 'iam:*', Resource: '*' });
  expect(ask({ ...there, resourcePolicy, policies: { identity: [allowing], boundary } })).toBe('no boundary');
});

test('across accounts it is enough that the bucket policy names the account, or everybody', () => {
  const policies = { identity: [allowing] };
  for (const principal of [
    named(OWN),
    { Principal: '*' },
    { Principal: { CanonicalUser: '1'.repeat(64) } },
  ]) {
    const change = { resourceAccount: OTHER, resourcePolicy: ofBucket(principal) };
    expect(ask({ ...change, policies })).toBe('by resource');
    expect(ask({ ...change, caller: root })).toBe('by resource');
    expect(ask(change)).toBe('no identity');
  }
});

test('the root of another account needs the bucket policy', () => {
  expect(ask({ caller: root, resourceAccount: OTHER })).toBe('no resource');
});

test('the root of the account may do everything with what is its own', () => {
  expect(ask({ caller: root })).toBe('by root');
  expect(ask({ caller: root, resourcePolicy: ofBucket({ ...DENY, Principal: '*' }) })).toBe(
    'denied by resource',
  );
});

test('s3-behaviour 24: a deny of the policy operations hits everyone but the root of the account', () => {
  const resourcePolicy = ofBucket({ ...DENY, Principal: '*', Action: 's3:*' });
  for (const action of ['s3:GetBucketPolicy', 's3:PutBucketPolicy', 's3:DeleteBucketPolicy']) {
    const change = { action, resource: 'arn:aws:s3:::b', resourcePolicy };
    expect(ask({ ...change, caller: root })).toBe('by root');
    expect(ask({ ...change, policies: { identity: [allowing] } })).toBe('denied by resource');
    expect(ask({ ...change, caller: root, resourceAccount: OTHER })).toBe('denied by resource');
  }
});

test('anonymous callers have what the bucket policy or an ACL gives everybody', () => {
  expect(ask({ caller: anonymous, resourcePolicy: ofBucket({ Principal: '*' }) })).toBe('by resource');
  expect(ask({ caller: anonymous, resourcePolicy: ofBucket({ Principal: { AWS: '*' } }) })).toBe(
    'by resource',
  );
  expect(ask({ caller: anonymous, resourcePolicy: ofBucket(named(OWN)) })).toBe('no resource');
  expect(ask({ caller: anonymous, aclGrant: () => 'everyone' })).toBe('by acl');
  expect(ask({ caller: anonymous, aclGrant: () => 'account' })).toBe('no resource');
});

test('an ACL is a side of the resource: for others beside their own policies, within the account only for everybody', () => {
  const policies = { identity: [allowing] };
  expect(ask({ resourceAccount: OTHER, policies, aclGrant: () => 'account' })).toBe('by acl');
  expect(ask({ resourceAccount: OTHER, aclGrant: () => 'everyone' })).toBe('no identity');
  expect(ask({ aclGrant: () => 'everyone' })).toBe('by acl');
  expect(ask({ aclGrant: () => 'account' })).toBe('no identity');
});

test('the ACL is asked only where policies have not decided', () => {
  const aclGrant = () => {
    throw new Error('asked');
  };
  expect(ask({ policies: { identity: [allowing] }, aclGrant })).toBe('by identity');
  expect(ask({ policies: { identity: [denying] }, aclGrant })).toBe('denied by identity');
  expect(ask({ caller: root, aclGrant })).toBe('by root');
  expect(() => ask({ aclGrant })).toThrow('asked');
});

test("s3-behaviour 4: of an object of another account the bucket's policy can only deny", () => {
  const resourcePolicy = ofBucket({ Principal: '*' });
  const change = { objectAccount: OTHER, resourcePolicy, policies: { identity: [allowing] } };
  expect(ask(change)).toBe('no resource');
  expect(ask({ ...change, caller: root })).toBe('no resource');
  expect(ask({ ...change, aclGrant: () => 'account' })).toBe('by acl');
  expect(ask({ ...change, caller: anonymous, aclGrant: () => 'everyone' })).toBe('by acl');
  expect(ask({ ...change, policies: NOBODY, aclGrant: () => 'everyone' })).toBe('no identity');
  const banned = ofBucket({ ...DENY, Principal: '*' });
  expect(ask({ ...change, resourcePolicy: banned, aclGrant: () => 'account' })).toBe('denied by resource');
  expect(ask({ ...change, objectAccount: OWN })).toBe('by resource');
});

test('NotPrincipal denies all but those whose account and own ARN it names', () => {
  const denied = (
    AWS: string[],
    caller: Caller = user,
    policies: AccessQuestion['policies'] = { identity: [allowing] },
  ) =>
    ask({ caller, policies, resourcePolicy: ofBucket({ ...DENY, NotPrincipal: { AWS } }) }) ===
    'denied by resource';
  expect(denied([ANN, OWN])).toBe(false);
  expect(denied([ANN])).toBe(true);
  expect(denied([OWN])).toBe(true);
  expect(denied([OWN], root)).toBe(false);
  expect(denied([OWN, ROLE], session)).toBe(true);
  expect(denied([OWN, ROLE, SESSION], session)).toBe(false);
  expect(denied([OWN], anonymous)).toBe(true);
  const boundary = policy('boundary', 'b', ALL);
  expect(denied([ANN, OWN], user, { identity: [allowing], boundary })).toBe(true);
});

test('actions are the same in any case, resources are not', () => {
  const only = (Action: unknown, Resource: unknown) =>
    ask({ policies: { identity: [policy('identity', 'p', { Action, Resource })] } });
  expect(only('S3:GETOBJECT', '*')).toBe('by identity');
  expect(only(['s3:Put*', 's3:?et*'], '*')).toBe('by identity');
  expect(only('s3:*', 'arn:aws:s3:::b/*')).toBe('by identity');
  expect(only('s3:*', 'arn:aws:s3:::B/*')).toBe('no identity');
  expect(only('s3:GetObjectTagging', '*')).toBe('no identity');
});

test('s3-behaviour 22: a statement about the bucket is not one about its objects', () => {
  const policies = {
    identity: [policy('identity', 'p', { Action: 's3:PutObject', Resource: 'arn:aws:s3:::b' })],
  };
  expect(ask({ action: 's3:PutObject', policies })).toBe('no identity');
});

test('NotAction and NotResource are all but those', () => {
  const but = (statement: Statement, change: Change = {}) =>
    ask({
      policies: { identity: [policy('identity', 'p', { Action: undefined, ...statement })] },
      ...change,
    });
  expect(but({ NotAction: 's3:Put*', Resource: '*' })).toBe('by identity');
  expect(but({ NotAction: ['iam:*', 's3:Get*'], Resource: '*' })).toBe('no identity');
  expect(but({ Action: '*', NotResource: 'arn:aws:s3:::b/secret' })).toBe('by identity');
  expect(but({ Action: '*', NotResource: ['arn:aws:s3:::c', 'arn:aws:s3:::b/*'] })).toBe('no identity');
});

test('a NotResource of a variable without a value allows nothing, and denies', () => {
  const statement = { NotResource: 'arn:aws:s3:::b/${aws:username}/*' };
  const mine = policy('identity', 'p', statement);
  expect(ask({ policies: { identity: [mine] } })).toBe('no identity');
  expect(ask({ policies: { identity: [mine] }, context: { 'aws:username': 'ann' } })).toBe('by identity');
  const but = policy('identity', 'p', { ...statement, Effect: 'Deny' });
  expect(ask({ policies: { identity: [allowing, but] } })).toBe('denied by identity');
});

test('variables in resources are the values of the request', () => {
  const home = policy('identity', 'p', { Resource: 'arn:aws:s3:::b/home/${aws:username}/*' });
  const get = (resource: string, username?: string) =>
    ask({ resource, policies: { identity: [home] }, context: username ? { 'aws:username': username } : {} });
  expect(get('arn:aws:s3:::b/home/ann/x', 'ann')).toBe('by identity');
  expect(get('arn:aws:s3:::b/home/bob/x', 'ann')).toBe('no identity');
  expect(get('arn:aws:s3:::b/home//x')).toBe('no identity');
});

test('all conditions of a statement must hold', () => {
  const Condition = {
    StringEquals: { 'aws:username': 'ann', 's3:prefix': ['a', 'b'] },
    Bool: { 'aws:SecureTransport': 'true' },
  };
  const policies = { identity: [policy('identity', 'p', { ...ALL, Condition })] };
  const context = { 'aws:username': 'ann', 's3:prefix': 'b', 'aws:securetransport': 'true' };
  expect(ask({ policies, context })).toBe('by identity');
  for (const key of Object.keys(context)) {
    expect(ask({ policies, context: { ...context, [key]: 'x' } }), key).toBe('no identity');
  }
});

test('keys are looked up only where a statement could apply', () => {
  const Condition = { StringEquals: { 's3:ExistingObjectTag/A': 'x' } };
  const asked: string[] = [];
  const contextOf = (key: string) => {
    asked.push(key);
    return undefined;
  };
  const get = (statement: Statement) =>
    evaluate({
      ...question({}),
      contextOf,
      policies: { identity: [policy('identity', 'p', { ...statement, Condition })] },
    });
  get({ Action: 's3:PutObject', Resource: '*' });
  get({ Resource: 'arn:aws:s3:::c/*' });
  expect(asked).toEqual([]);
  get(ALL);
  expect(asked).toEqual(['s3:existingobjecttag/A']);
});

test('mentionsKey: whether stored tags must be read, for the action that is asked', () => {
  const Condition = { StringEquals: { 's3:ExistingObjectTag/A': 'x' } };
  const family = 's3:existingobjecttag/';
  const mentions = (action: string, statement: Statement) =>
    mentionsKey(
      { action, policies: NOBODY, resourcePolicy: ofBucket({ Principal: '*', ...statement }) },
      family,
    );
  expect(mentions('s3:GetObject', { Condition })).toBe(true);
  expect(mentions('s3:GetObject', { Condition, Action: 's3:Put*' })).toBe(false);
  expect(mentions('s3:GetObject', {})).toBe(false);
  expect(mentions('s3:GetObject', { Resource: 'arn:aws:s3:::b/${s3:ExistingObjectTag/A}' })).toBe(true);
});

test('a role can be assumed only where its trust policy allows it', () => {
  const assume = (trust: Statement, change: Change = {}) =>
    ask({
      action: 'sts:AssumeRole',
      resource: ROLE,
      resourcePolicy: policy('trust', ROLE, { Action: 'sts:AssumeRole', ...trust }),
      mustBeAllowedByResource: true,
      ...change,
    });
  const policies = { identity: [allowing] };
  expect(assume(named(OTHER), { policies })).toBe('no trust');
  expect(assume(named(ANN))).toBe('by trust');
  expect(assume(named(OWN))).toBe('no identity');
  expect(assume(named(OWN), { policies })).toBe('by identity');
  expect(assume({ ...named(ANN), Effect: 'Deny' }, { policies })).toBe('denied by trust');
  const there = { caller: { ...user, ...ids(OTHER), arn: `arn:aws:iam::${OTHER}:user/bob` } as Caller };
  expect(assume(named(OTHER), there)).toBe('no identity');
  expect(assume(named(OTHER), { ...there, policies })).toBe('by trust');
  expect(assume({ Principal: '*' }, { ...there, policies })).toBe('by trust');
  const Condition = {
    StringEquals: { 'sts:ExternalId': 'x' },
    Bool: { 'aws:MultiFactorAuthPresent': 'true' },
  };
  const context = { 'sts:externalid': 'x', 'aws:multifactorauthpresent': 'true' };
  expect(assume({ ...named(OTHER), Condition }, { ...there, policies, context })).toBe('by trust');
  expect(assume({ ...named(OTHER), Condition }, { ...there, policies })).toBe('no trust');
  expect(assume(named(OTHER), { ...there, policies, resourcePolicy: undefined })).toBe('no trust');
});

test('mayAllowSomewhere: what no statement allows on any resource is known before the resource is', () => {
  const writing = policy('identity', 'p', { Action: 's3:PutObject', Resource: 'arn:aws:s3:::b/x' });
  const may = (change: Change) => mayAllowSomewhere(question(change));
  expect(may({ policies: { identity: [writing] }, action: 's3:PutObject' })).toBe(true);
  expect(may({ policies: { identity: [writing] } })).toBe(false);
  expect(may({ resourcePolicy: ofBucket(named(ANN)) })).toBe(true);
  expect(may({ resourcePolicy: ofBucket(named(OTHER)) })).toBe(false);
  expect(may({ caller: root })).toBe(true);
  expect(may({ caller: root, resourceAccount: OTHER })).toBe(false);
  expect(may({ caller: anonymous, resourcePolicy: ofBucket({ Principal: '*' }) })).toBe(true);
  expect(may({ caller: anonymous })).toBe(false);
  expect(
    may({ resourceAccount: OTHER, policies: { identity: [allowing] }, resourcePolicy: ofBucket(named(OWN)) }),
  ).toBe(true);
});

test('all statements that apply can be told', () => {
  const found = matchingStatements(
    question({
      policies: { identity: [useless, allowing, denying] },
      resourcePolicy: ofBucket(named(OTHER), named(ANN)),
    }),
  );
  expect(found.map(({ name, statement, effect }) => [name, statement, effect])).toEqual([
    ['allowing', 0, 'Allow'],
    ['denying', 0, 'Deny'],
    ['arn:aws:s3:::b', 1, 'Allow'],
  ]);
});
