// Which statements of a user's own policies deny something under a bucket's old name that they do not deny under the new one.
import { describe, expect, test } from 'vitest';
import { withinOneTurn } from '../../tests/support/run/loop-watch.ts';
import { compilePolicy } from './documents/compile-policy.ts';
import { NO_POLICIES } from './evaluate.ts';
import { findLostLimit } from './renamed-bucket.ts';

function named(statements: readonly object[]) {
  const text = JSON.stringify({ Version: '2012-10-17', Statement: statements });
  const outcome = compilePolicy(text, { type: 'identity' });
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return { name: 'policy', policy: outcome.policy };
}

const contextOf = (key: string) => (key === 'aws:username' ? 'attic' : undefined);
const NAMES = { from: 'vault', to: 'attic' };
const ALLOW = { Effect: 'Allow', Action: 's3:*', Resource: '*' };
const deny = (...keys: string[]) => ({
  Effect: 'Deny',
  Action: 's3:DeleteObject',
  Resource: keys.map((key) => `arn:aws:s3:::${key}`),
});
const sparing = (...keys: string[]) => {
  const { Resource: NotResource, ...statement } = deny(...keys);
  return { ...statement, NotResource };
};

function findIn(statement: object) {
  const lost = findLostLimit({ ...NO_POLICIES, identity: [named([ALLOW, statement])] }, NAMES, contextOf);
  return lost?.reason === 'explicit-deny' ? lost.by.statement : lost?.lacking;
}

describe('the policies of users do not follow the name of a bucket', () => {
  test.each([
    ['the bucket', deny('vault')],
    ['all in it', deny('vault/*')],
    ['a part of it', deny('vault/keep/*')],
    ['by a pattern that does not fit the new name', deny('va*')],
    ['by letters that do not fit it', deny('v?ult/*')],
    ['more than under the new name', deny('vault/*', 'attic/keep/*')],
    ['by a variable', deny('${aws:username}/*')],
    ['by a variable behind letters', deny('v${aws:username}/*')],
    ['all but what is in the new one', sparing('attic/*')],
    ['all but what is in another, and in the new one', sparing('other/*', 'a*')],
    ['all but what a variable stands for', sparing('${aws:username}/*')],
    [
      'whatever the condition is',
      { ...deny('vault/*'), Condition: { Bool: { 'aws:SecureTransport': false } } },
    ],
  ])('lost: %s', (_, statement) => {
    expect(findIn(statement)).toBe(1);
  });

  test.each([
    ['everything', { ...deny(), Resource: '*' }],
    ['some keys of every bucket', deny('*/keep/*')],
    ['both', deny('vault/*', 'attic/*')],
    ['another bucket', deny('vaults/*', 'vaul/*', 'vault-2/*')],
    ['the new one', deny('attic/*')],
    ['another one by a variable', deny('home-${aws:username}/*')],
    ['all but what is in another', sparing('other/*')],
    ['all but what is in the old one', sparing('vault/*')],
    ['all but what is in both', sparing('vault/*', 'attic/*')],
  ])('kept: %s', (_, statement) => {
    expect(findIn(statement)).toBeUndefined();
  });

  test('what is allowed but for the bucket by its name is not allowed under another one', () => {
    const but = (...keys: string[]) => ({ ...sparing(...keys), Effect: 'Allow' });
    for (const statement of [but('vault/*'), but('vault/keep/*'), but('va*'), but('${aws:username}/*')])
      expect(findIn(statement)).toBe('identity');
    for (const statement of [but('other/*'), but('attic/*'), but('vault/*', 'attic/*'), but('*/keep/*')])
      expect(findIn(statement)).toBeUndefined();
  });

  test('what is allowed by the new name is allowed by the old one', () => {
    const allow = (actions: string | string[], ...keys: string[]) => ({
      ...deny(...keys),
      Effect: 'Allow',
      Action: actions,
    });
    const makes = allow(['s3:CreateBucket', 's3:DeleteBucket'], '*');
    const always = { Condition: { StringEquals: { 'aws:username': 'attic' } } };
    const winsWith = (...statements: object[]) =>
      findLostLimit({ ...NO_POLICIES, identity: [named([makes, ...statements])] }, NAMES, contextOf)?.reason;
    for (const won of [
      [allow('s3:GetObject', 'attic/*')],
      [allow('s3:*', 'att*')],
      [allow('s3:*', '${aws:username}/*')],
      [allow('s3:*', '${aws:PrincipalTag/home}/*')],
      [allow('s3:*', 'vault', 'attic', 'attic/*')],
      [allow('s3:*', 'vault/a/*', 'attic/*')],
      [allow('s3:*', 'attic/*'), allow('s3:Get*', 'vault/*')],
      [allow('s3:Get*', 'attic/*'), allow('s3:Get?bject', 'vault/*')],
      [allow('s3:*', 'attic/*'), { ...allow('s3:*', 'vault/*'), ...always }],
      [allow('s3:*', 'attic/*'), { ...sparing('vault/a'), Effect: 'Allow' }],
    ])
      expect(winsWith(...won), JSON.stringify(won)).toBe('no-allow');
    for (const kept of [
      [],
      [allow('s3:*', 'vault/*')],
      [allow('s3:*', 'other/*', 'home-${aws:username}/*')],
      [allow('s3:*', 'vault*', 'att*')],
      [allow('s3:*', 'vault', 'vault/*', 'att*')],
      [allow('s3:*', 'vault/*', 'attic/a/*')],
      [allow('s3:GetObject', '${aws:username}/*'), allow('s3:get*', 'vault/*')],
      [allow(['s3:GetObject', 's3:PutObject'], 'attic/*'), allow('s3:PutObject', '*'), allow('s3:Get*', '*')],
      [allow('s3:DeleteObject', 'attic/*'), { ...sparing('other/*'), Effect: 'Allow' }],
    ])
      expect(winsWith(...kept), JSON.stringify(kept)).toBeUndefined();
    const own = named([makes, allow('s3:*', 'attic/*')]);
    const all = [named([ALLOW])];
    const lost = findLostLimit({ identity: all, boundary: own }, NAMES, contextOf);
    expect(lost).toMatchObject({ reason: 'no-allow', lacking: 'boundary' });
    expect(findLostLimit({ identity: all, session: [own] }, NAMES, contextOf)).toMatchObject({
      lacking: 'session',
    });
  });

  test('of boundaries and sessions, too; what they allow by name is no matter', () => {
    const [lost, open] = [named([deny('vault/*')]), named([{ ...ALLOW, Resource: 'arn:aws:s3:::vault/*' }])];
    const ofKind = (kind: string) => ({ reason: 'explicit-deny', by: { kind, statement: 0 } });
    expect(findLostLimit({ identity: [open], boundary: lost }, NAMES, contextOf)).toMatchObject(
      ofKind('boundary'),
    );
    expect(findLostLimit({ identity: [open], session: [open, lost] }, NAMES, contextOf)).toMatchObject(
      ofKind('session'),
    );
    expect(
      findLostLimit({ identity: [open], boundary: open, session: [open] }, NAMES, contextOf),
    ).toBeUndefined();
    expect(findLostLimit(NO_POLICIES, NAMES, contextOf)).toBeUndefined();
  });
});

test('policies of thousands of statements do not keep the thread: what is left to compare denies', () => {
  const allow = (key: string) => ({
    Effect: 'Allow',
    Action: 's3:GetObject',
    Resource: `arn:aws:s3:::${key}`,
  });
  const find = (count: number, statements: (at: number) => object[]) => {
    const identity = Array.from({ length: count }, (_, at) => named(statements(at)));
    return withinOneTurn(() => findLostLimit({ ...NO_POLICIES, identity }, NAMES, contextOf));
  };
  const pairs = (policy: number) =>
    Array.from({ length: 25 }, (_, at) => `key-${policy}-${at}`).flatMap((key) => [
      allow(`vault/${key}`),
      allow(`attic/${key}`),
    ]);
  const others = (policy: number) => Array.from({ length: 60 }, (_, at) => deny(`other-${policy}-${at}/*`));
  expect(find(100, pairs)).toEqual({ isAllowed: false, reason: 'no-allow', lacking: 'identity' });
  expect(find(5, pairs)).toBeUndefined();
  expect(find(100, others)).toBeUndefined();
  // Long patterns take longer to compare, all the more where they differ at their ends.
  const long = (count: number, length: number) => (policy: number) =>
    ['attic', 'vault'].flatMap((bucket) =>
      Array.from({ length: count }, (_, at) =>
        allow(`${bucket}/${'k'.repeat(length)}${1000 * (policy + 1) + at}*`),
      ),
    );
  const refused = { isAllowed: false, reason: 'no-allow', lacking: 'identity' };
  expect(find(100, long(2, 1000))).toEqual(refused);
  expect(find(60, long(9, 300))).toEqual(refused);
  expect(find(10, long(2, 1000))).toBeUndefined();
});

test('patterns of many wildcards are held against long names in linear time', () => {
  const names = { from: 'a'.repeat(63), to: `${'a'.repeat(62)}b` };
  for (const piece of ['*?', '?*', '*a']) {
    const pattern = (at: number) => `${piece.repeat(45)}${at}`;
    const policies = Array.from({ length: 20 }, () =>
      named([ALLOW, ...Array.from({ length: 40 }, (_, at) => deny(pattern(at)))]),
    );
    const lost = () => findLostLimit({ ...NO_POLICIES, identity: policies }, names, contextOf);
    expect(withinOneTurn(lost), piece).toBeUndefined();
  }
});
