// What tenants may write to keep the server busy: large documents, patterns that make others go back and forth, texts and numbers
// at the edges. Every one is answered, and in time that grows with its length alone.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../tests/support/run/long-form.ts';
import { expectFreeLoop, withinOneTurn } from '../../tests/support/run/loop-watch.ts';
import { anyText, expectLinear, nearly } from '../../tests/support/run/properties.ts';
import { nextTurn } from '../base/async/next-turn.ts';
import { finishInTurns } from '../base/async/steps.ts';
import { COMPARED_UNITS_MAX } from './conditions/operators.ts';
import {
  compileInSteps,
  compilePolicy,
  compileStoredPolicy,
  POLICY_SIZES,
} from './documents/compile-policy.ts';
import { evaluate, findAbout, type NamedPolicy } from './evaluate.ts';
import { MATCH_WORK_MAX, matchWork } from './match-work.ts';
import { type ContextValue, matchPattern, parsePattern } from './patterns.ts';
import { parsePrincipal } from './principals.ts';

const ALLOW = { Effect: 'Allow', Action: 's3:*', Resource: 'arn:aws:s3:::b/*' };
const nothing = () => undefined;

function compiled(document: object): NamedPolicy {
  const outcome = compileStoredPolicy(JSON.stringify(document), 'identity');
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return { policy: outcome.policy, name: 'hostile' };
}

const of2012 = (Statement: unknown) => ({ Version: '2012-10-17', Statement });

function ask(identity: readonly NamedPolicy[], resource: string, values: Record<string, ContextValue> = {}) {
  return evaluate({
    caller: { kind: 'user', accountId: '1', canonicalId: 'c', arn: 'a' },
    policies: { identity },
    action: 's3:GetObject',
    resource,
    resourceAccount: '1',
    contextOf: (key) => values[key],
  });
}

test('ten thousand statements are judged, each of them, within one turn', () => {
  const deny = { Effect: 'Deny', Action: 's3:Get*', Resource: 'arn:aws:s3:::b/*x?' };
  const statements = Array.from({ length: 10_000 }, (_, at) => ({ ...deny, Sid: `s${at}` }));
  const policy = compiled(of2012([...statements, ALLOW]));
  const decision = withinOneTurn(() => ask([policy], `arn:aws:s3:::b/${'x'.repeat(100)}`));
  expect(decision).toMatchObject({ isAllowed: false, by: { sid: 's0' } });
  expect(withinOneTurn(() => ask([policy], 'arn:aws:s3:::b/k'))).toMatchObject({ isAllowed: true });
});

test('megabytes are refused unread', () => {
  const text = JSON.stringify(of2012(Array.from({ length: 40_000 }, () => ALLOW)));
  expect(text.length).toBeGreaterThan(2_000_000);
  expect(withinOneTurn(() => compilePolicy(text, { type: 'identity' })).kind).toBe('too-large');
  expect(withinOneTurn(() => compilePolicy(text, { type: 'resource', bucket: 'b' }))).toMatchObject({
    kind: 'malformed',
    message: expect.stringContaining('maximum allowed size'),
  });
});

/** Of many small things, or of one large one. */
test('the longest documents of identities take one turn', () => {
  const room = POLICY_SIZES.roleInlineCharactersMax - 300;
  const fill = (piece: string) => Array.from({ length: Math.floor(room / (piece.length + 3)) }, () => piece);
  const documents = [
    of2012({ ...ALLOW, Action: fill('s3:G*t?') }),
    of2012({ ...ALLOW, Resource: fill('arn:aws:s3:::b/${a:b}*?') }),
    of2012({ ...ALLOW, Resource: `arn:aws:s3:::b/${'*?'.repeat(room / 2)}` }),
    of2012({ ...ALLOW, Resource: `arn:aws:s3:::b/${'${'.repeat(room / 2)}` }),
    of2012({ ...ALLOW, Resource: `arn:aws:s3:::b/${'${a}'.repeat(room / 4)}` }),
    of2012({ ...ALLOW, Condition: { IpAddress: { 'aws:SourceIp': fill('2001:db8::/32') } } }),
    of2012({ ...ALLOW, Condition: { NumericEquals: { 's3:max-keys': fill('0'.repeat(99)) } } }),
    of2012({ ...ALLOW, Condition: { DateEquals: { 'aws:CurrentTime': fill('2026-01-01T00:00:00.000Z') } } }),
    of2012({ ...ALLOW, Condition: { ArnLike: { 'aws:PrincipalArn': ':'.repeat(room) } } }),
    of2012({ ...ALLOW, Sid: 'x'.repeat(room) }),
  ];
  for (const document of documents) {
    const text = JSON.stringify(document);
    expect(withinOneTurn(() => compilePolicy(text, { type: 'identity' })).kind).toBe('compiled');
  }
});

test('the largest bucket policies are checked and judged in one turn', () => {
  const grant = { ...ALLOW, Principal: '*' };
  const room = POLICY_SIZES.bucketBytesMax - 300;
  const fill = (make: (at: number) => string) => {
    const list: string[] = [];
    for (let size = 0, at = 0; ; at++) {
      const text = make(at);
      size += text.length + 3;
      if (size > room) return list;
      list.push(text);
    }
  };
  const key = `arn:aws:s3:::b/${'a'.repeat(1024)}`;
  const statements = [
    { ...grant, Action: fill((at) => `s3:*${at % 2 ? 'e' : 't'}*${'*'.repeat(at % 60)}`) },
    { ...grant, Resource: fill((at) => `arn:aws:s3:::b/*${'a'.repeat(at % 500)}?b*`) },
    { ...grant, Resource: fill(() => `arn:aws:s3:::b/*${'a'.repeat(510)}?b*`) },
    { ...grant, Resource: fill(() => `arn:aws:s3:::b/*${'a?'.repeat(255)}b*`) },
    { ...grant, Resource: fill(() => `arn:aws:s3:::b/${'*a'.repeat(300)}*b`) },
    { ...grant, Condition: { StringLike: { 'aws:UserAgent': `*${'a?'.repeat(room / 2)}b*` } } },
    { ...grant, Condition: { StringLike: { 'aws:UserAgent': fill(() => `*${'a'.repeat(5000)}?b*`) } } },
  ];
  for (const statement of statements) {
    const text = JSON.stringify(of2012([statement]));
    const outcome = withinOneTurn(() => compilePolicy(text, { type: 'resource', bucket: 'b' }));
    if (outcome.kind !== 'compiled') throw new Error(`${outcome.message} ${outcome.place}`);
    const policy: NamedPolicy = { policy: outcome.policy, name: 'b' };
    withinOneTurn(() => ask([policy], key, { 'aws:useragent': 'a'.repeat(COMPARED_UNITS_MAX) }));
  }
});

test('a bucket policy of many actions and many keys of tags is checked in short steps', async () => {
  const keys = Array.from({ length: 290 }, (_, at) => [`s3:ExistingObjectTag/${at}`, '']);
  const wild = (at: number) => at.toString(2).replaceAll('0', '*').replaceAll('1', '?');
  const statement = {
    ...ALLOW,
    Principal: '*',
    Action: Array.from({ length: 550 }, (_, at) => `s3:${wild(at)}*`),
    Condition: { StringLike: Object.fromEntries(keys) },
  };
  const text = JSON.stringify(of2012([statement]));
  await expectFreeLoop('a policy', async () => {
    const steps = compileInSteps(text, { type: 'resource', bucket: 'b' });
    expect(await finishInTurns(steps, nextTurn)).toMatchObject({ kind: 'compiled' });
  });
});

/** A document of a bucket's largest size with many values, as JSON makes them. */
function manyValues(value: string): string[] {
  const count = Math.floor((POLICY_SIZES.bucketBytesMax - 400) / (value.length + 3));
  return Array.from({ length: count }, () => value);
}

const LONG_AGENT = { 'aws:useragent': 'a'.repeat(COMPARED_UNITS_MAX) };

test.each([
  ['*?b*'],
  ['*ab*'],
  ['*aa?b*'],
  ['*aaab*'],
  [`*${'a'.repeat(29)}?b*`],
  [`*${'a'.repeat(31)}?b*`],
  [`*${'a'.repeat(28)}b*`],
  [`*${'a'.repeat(250)}b${'a'.repeat(255)}*`],
])('thousands of short patterns, %s, are held against a long text within one turn', (pattern) => {
  const Condition = { StringLike: { 'aws:UserAgent': manyValues(pattern) } };
  const policy = compiled(of2012([{ ...ALLOW, Condition }]));
  const hundred = Array.from({ length: 100 }, () => policy);
  const decision = withinOneTurn(() => ask(hundred, 'arn:aws:s3:::b/k', LONG_AGENT));
  expect(decision).toMatchObject({ isAllowed: false });
});

test.each([
  ['ArnLike', '*:*:*:*:*:a', 'arn:aws:s3:::b'],
  ['ForAnyValue:StringEquals', 'b', Array.from({ length: 50 }, (_, at) => `a${at}`)],
  ['ForAnyValue:NumericEquals', '1', Array.from({ length: 1000 }, (_, at) => `${at + 2}`)],
])(
  '%s: hundreds of thousands of short values are held against what is short within one turn',
  (operator, value, asked) => {
    const policy = () =>
      compiled(of2012([{ ...ALLOW, Condition: { [operator]: { 'aws:X': manyValues(value) } } }]));
    // Ten in memory, each judged ten times: to read a hundred takes far longer than to judge them.
    const ten = Array.from({ length: 10 }, policy);
    const hundred = Array.from({ length: 10 }, () => ten).flat();
    const before = matchWork();
    const decision = withinOneTurn(() => ask(hundred, 'arn:aws:s3:::b/k', { 'aws:x': asked }));
    expect(decision).toMatchObject({ isAllowed: false });
    expect(matchWork() - before).toBeGreaterThan(MATCH_WORK_MAX);
  },
);

test.each<[operator: string, value: string, asked: (at: number) => string]>([
  ['DateEquals', '2026', (at) => `2020-01-01T00:00:00.${at}Z`],
  ['BinaryEquals', 'QUJD', (at) => Buffer.from(`ab${at}`).toString('base64')],
  ['IpAddress', '1.2.3.4', (at) => `999.0.0.${at}`],
  ['IpAddress', '1.2.3.4', (at) => `1.1.${at >> 8}.${at & 255}`],
  ['IpAddress', '::1', (at) => `fe80::1:2:${at}`],
  ['StringLike', '*z*?q', (at) => `a${at}`],
])(
  '%s %s: a thousand values are understood again for each of hundreds of statements, within one turn',
  (operator, value, asked) => {
    const Condition = { [`ForAnyValue:${operator}`]: { 'aws:X': value } };
    const policy = compiled(of2012([...Array.from({ length: 600 }, () => ({ ...ALLOW, Condition })), ALLOW]));
    const values = Array.from({ length: 1000 }, (_, at) => asked(at));
    const decision = withinOneTurn(() => ask([policy], 'arn:aws:s3:::b/k', { 'aws:x': values }));
    expect(decision).toMatchObject({ isAllowed: false });
  },
);

const LONG = 'abcdefgh'.repeat(500);
const PARTS = Array.from({ length: 120 }, (_, at) => `${at}`.padEnd(33, 'xyz'));

test.each<[where: string, pattern: string, asked: string]>([
  ['a long part is found at once', `*${LONG}*Z*?`, `${LONG}ab`],
  ['many parts are found at once', `*${PARTS.join('*')}*Z*?`, `${PARTS.join('')}ab`],
  ['a long part has no room any more', `*b*${LONG}?*`, `${'x'.repeat(LONG.length)}b?`],
  ['a long beginning is the same', `${LONG}z*`, `${LONG}yy`],
  ['a long beginning is the same, before parts', `${LONG}*z*z`, `${LONG}yy`],
  ['a long text is nearly the same', `${LONG}z`, LONG],
  ['a long end is the same', `*${LONG}z`, `yy${LONG}`],
])('where %s, what it takes counts: thousands of patterns take one turn', (_, pattern, asked) => {
  const Condition = { 'ForAnyValue:StringLike': { 'aws:X': [pattern, pattern] } };
  const policy = compiled(of2012([{ ...ALLOW, Condition }]));
  const hundred = Array.from({ length: 100 }, () => policy);
  const values = Array.from({ length: 300 }, (_, at) => asked + (at % 2 ? 'q' : 'r'));
  const before = matchWork();
  const decision = withinOneTurn(() => ask(hundred, 'arn:aws:s3:::b/k', { 'aws:x': values }));
  expect(decision).toMatchObject({ isAllowed: false });
  expect(matchWork() - before).toBeGreaterThan(MATCH_WORK_MAX);
});

test('when too much has been compared, tens of thousands of statements that are left take one turn', () => {
  const Condition = { StringLike: { 'aws:UserAgent': manyValues('*ab*') } };
  const costly = Array.from({ length: 10 }, () => compiled(of2012([{ ...ALLOW, Condition }])));
  const few = compiled(of2012(Array.from({ length: 500 }, () => ({ ...ALLOW, Resource: '*' }))));
  const many = Array.from({ length: 100 }, () => few);
  expect(ask([...costly, ...many], 'arn:aws:s3:::b/k')).toMatchObject({ isAllowed: true });
  const decision = withinOneTurn(() => ask([...costly, ...many], 'arn:aws:s3:::b/k', LONG_AGENT));
  expect(decision).toMatchObject({ isAllowed: false, reason: 'no-allow' });
});

test('to find the statements about an action is noted, and leaves the question as much as it has without', () => {
  const policies = Array.from({ length: 60 }, () =>
    compiled(of2012([{ ...ALLOW, Action: manyValues('*a*') }])),
  );
  const before = matchWork();
  expect(ask([...policies, compiled(of2012([ALLOW]))], 'arn:aws:s3:::b/k')).toMatchObject({
    isAllowed: true,
  });
  expect(matchWork() - before).toBeGreaterThan(MATCH_WORK_MAX);
});

test('what is left when too much has been compared denies, and does not allow', () => {
  const Condition = { StringLike: { 'aws:UserAgent': manyValues('*ab*') } };
  const costly = Array.from({ length: 10 }, () => compiled(of2012([{ ...ALLOW, Condition }])));
  const searching = compiled(of2012([{ ...ALLOW, Resource: '*b/*k*' }]));
  const plain = compiled(of2012([{ ...ALLOW, Sid: 'plain' }]));
  const denying = compiled(of2012([{ ...ALLOW, Effect: 'Deny', Sid: 'costly', Condition }]));
  const of = (...identity: NamedPolicy[]) => ask(identity, 'arn:aws:s3:::b/k', LONG_AGENT);
  expect(of(searching)).toMatchObject({ isAllowed: true });
  expect(of(...costly, searching)).toMatchObject({ isAllowed: false, reason: 'no-allow' });
  expect(of(plain, ...costly)).toMatchObject({ isAllowed: true, by: { sid: 'plain' } });
  expect(of(...costly, plain)).toMatchObject({ isAllowed: false, reason: 'no-allow' });
  expect(of(plain, denying)).toMatchObject({
    isAllowed: false,
    reason: 'explicit-deny',
    by: { sid: 'costly' },
  });
  // Each question has its own bound.
  expect(of(searching)).toMatchObject({ isAllowed: true });
});

test('patterns are held against all keys below a long prefix within one turn', () => {
  const policies = Array.from({ length: 20 }, () =>
    compiled(of2012([{ ...ALLOW, Resource: `arn:aws:s3:::b/${'*a'.repeat(9000)}b` }])),
  );
  const decision = withinOneTurn(() =>
    evaluate({
      caller: { kind: 'user', accountId: '1', canonicalId: 'c', arn: 'a' },
      policies: { identity: policies },
      action: 's3:GetObject',
      resource: `arn:aws:s3:::b/${'a'.repeat(1024)}`,
      isPrefix: true,
      resourceAccount: '1',
      contextOf: nothing,
    }),
  );
  expect(decision).toMatchObject({ isAllowed: false });
});

test.each([
  ['Resource', (value: string) => ({ Resource: manyValues(`arn:aws:s3:::b/*${value}?`) })],
  [
    'StringEquals',
    (value: string) => ({ Condition: { StringEquals: { 'aws:Referer': manyValues(value) } } }),
  ],
  [
    'StringEqualsIgnoreCase',
    (value: string) => ({
      Condition: { StringEqualsIgnoreCase: { 'aws:Referer': value.repeat(900) } },
    }),
  ],
])('%s: long values are put into thousands of places within one turn', (_name, partsOf) => {
  const policy = compiled(of2012([{ ...ALLOW, ...partsOf('${aws:UserAgent}') }]));
  const hundred = Array.from({ length: 100 }, () => policy);
  for (const units of [1000, 30_000]) {
    const values = { 'aws:useragent': 'a'.repeat(units), 'aws:referer': 'a' };
    const decision = withinOneTurn(() => ask(hundred, `arn:aws:s3:::b/${'a'.repeat(900)}`, values));
    expect(decision).toMatchObject({ isAllowed: false });
  }
});

test('headers of grants with thousands of grantees, looked at in turn, end a decision', () => {
  const keys = ['s3:x-amz-grant-read', 's3:x-amz-grant-write'];
  const values = Object.fromEntries(
    keys.map((key, at) => [key, Array.from({ length: 3000 }, (_, name) => `${at}${name}`).join(',')]),
  );
  const StringNotEquals = Object.fromEntries(keys.map((key) => [key, 'a']));
  const deny = {
    ...ALLOW,
    Effect: 'Deny',
    Condition: { StringNotEquals, Bool: { 'aws:SecureTransport': 'false' } },
  };
  const ofStatements = (count: number) =>
    compiled(of2012([...Array.from({ length: count }, () => deny), ALLOW]));
  const askOf = (count: number) =>
    ask([ofStatements(count)], 'arn:aws:s3:::b/k', { ...values, 'aws:securetransport': 'true' });
  expect(askOf(5)).toMatchObject({ isAllowed: true });
  // Each look at a list of 3,000 takes some 0.4 ms.
  expect(withinOneTurn(() => askOf(50))).toMatchObject({ isAllowed: false });
});

test('a long text is folded once for all values, and held against no ARN', () => {
  const text = `arn:aws:s3:::${'A'.repeat(30_000)}`;
  const ofAgent = (operator: string, value: string) =>
    compiled(of2012([{ ...ALLOW, Condition: { [operator]: { 'aws:UserAgent': manyValues(value) } } }]));
  for (const policy of [ofAgent('StringEqualsIgnoreCase', 'a'), ofAgent('ArnLike', 'arn:*:*:*:*:*A?b*')]) {
    const decision = withinOneTurn(() => ask([policy], 'arn:aws:s3:::b/k', { 'aws:useragent': text }));
    expect(decision).toMatchObject({ isAllowed: false });
  }
  const [any, short] = [ofAgent('ArnLike', 'arn:*:*:*:*:*A'), text.slice(0, 100)];
  expect(ask([any], 'arn:aws:s3:::b/k', { 'aws:useragent': short })).toMatchObject({ isAllowed: true });
  expect(ask([any], 'arn:aws:s3:::b/k', { 'aws:useragent': text })).toMatchObject({ isAllowed: false });
});

test.each([
  ['StringLike', 'a'],
  ['StringNotLike', 'b'],
])('%s: a value that is longer than patterns are held against widens no Allow', (operator, fitting) => {
  const policy = compiled(of2012([{ ...ALLOW, Condition: { [operator]: { 'aws:UserAgent': 'a*' } } }]));
  const isAllowed = (units: number) =>
    ask([policy], 'arn:aws:s3:::b/k', { 'aws:useragent': fitting.repeat(units) }).isAllowed;
  expect([isAllowed(COMPARED_UNITS_MAX), isAllowed(COMPARED_UNITS_MAX + 1)]).toEqual([true, false]);
});

test.each([
  ['StringLike', 'a', '*b*'],
  ['StringNotLike', 'a', 'a*'],
  ['ArnLike', 'arn:aws:s3:::a', 'arn:*:*:*:*:*b*'],
  ['ArnNotLike', 'arn:aws:s3:::a', 'arn:*:*:*:*:*'],
])(
  '%s: no Deny is passed by with a value that is longer than patterns are held against',
  (operator, value, pattern) => {
    const denial = { ...ALLOW, Effect: 'Deny', Condition: { [operator]: { 'aws:UserAgent': pattern } } };
    const policy = compiled(of2012([ALLOW, denial]));
    const isAllowed = (units: number) =>
      ask([policy], 'arn:aws:s3:::b/k', { 'aws:useragent': value.padEnd(units, 'a') }).isAllowed;
    expect([isAllowed(COMPARED_UNITS_MAX), isAllowed(COMPARED_UNITS_MAX + 1)]).toEqual([true, false]);
  },
);

test('a match takes time in proportion to the text, whatever the pattern', () => {
  const options = { hasVariables: true, hasWildcards: true };
  const patterns = [
    `*${'a'.repeat(5000)}b*`,
    `*${'a'.repeat(5000)}?b*`,
    `*${'a?'.repeat(2500)}b*`,
    `${'*a'.repeat(2500)}*b`,
    `${'*a?'.repeat(2500)}*b`,
    `*${'ab'.repeat(2500)}c*`,
    `*${'?'.repeat(5000)}b`,
  ].map((source) => parsePattern(source, options));
  for (const pattern of patterns) {
    expectLinear((text) => matchPattern(pattern, text, nothing), { pieces: ['a', 'ab', '😀', 'aaab'] });
  }
});

test('reading a pattern takes time in proportion to it', () => {
  const options = { hasVariables: true, hasWildcards: true };
  expectLinear((text) => parsePattern(text, options), {
    pieces: ['*', '?', '${', '${a', '${a}', "${a,'", '}', '$', ','],
  });
});

test('a pattern of any text without wildcards matches that text alone', () => {
  fc.assert(
    fc.property(anyText, anyText, (text, other) => {
      const source = text.replace(/[*?$]/g, (mark) => `\${${mark}}`);
      const pattern = parsePattern(source, { hasVariables: true, hasWildcards: true });
      expect(matchPattern(pattern, text, nothing)).toBe(true);
      expect(matchPattern(pattern, `${text}x`, nothing)).toBe(false);
      const one = parsePattern(`*${source}?`, { hasVariables: true, hasWildcards: true });
      const character = String.fromCodePoint(other.codePointAt(0) ?? 0x61);
      expect(matchPattern(one, `${other}${text}${character}`, nothing)).toBe(true);
      expect(matchPattern(one, text, nothing)).toBe(false);
    }),
  );
});

test('what is nearly a policy is taken or refused with a place, in one turn', () => {
  const grant = { Sid: 's', ...ALLOW, Principal: { AWS: ['*', '111111111111'] } };
  const Condition = {
    IpAddress: { 'aws:SourceIp': ['10.0.0.0/8', '::/0'] },
    'ForAnyValue:StringLikeIfExists': { 's3:x-amz-acl': "${aws:username, 'x'}*" },
    NumericLessThan: { 's3:signatureAge': 1e3 },
  };
  const valid = [of2012([grant, { ...grant, Sid: 't', Condition }]), of2012({ ...ALLOW, Condition })].map(
    (document) => JSON.stringify(document),
  );
  const pieces = [
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '*',
    '?',
    '${',
    '/',
    '0',
    'arn:aws:',
    'Not',
    'null',
    '\u0000',
  ];
  fc.assert(
    fc.property(nearly(valid, pieces), (text) => {
      for (const options of [
        { type: 'identity' },
        { type: 'trust' },
        { type: 'resource', bucket: 'b' },
      ] as const) {
        const outcome = withinOneTurn(() => compilePolicy(text, options));
        if (outcome.kind === 'malformed') expect(outcome.place).not.toBe('');
      }
    }),
    { numRuns: amountOf({ short: 400, long: 2000 }) },
  );
});

test('a principal is known for one in time that grows with its length alone', () => {
  expectLinear((text) => parsePrincipal('AWS', text), {
    starts: [
      'arn:aws:iam::111111111111:user/',
      'arn:aws:iam::111111111111:',
      'arn:aws:sts::111111111111:assumed-role/',
    ],
    pieces: ['a', 'a/', '/', '1', '.'],
    end: '*',
  });
  const long = 'a/'.repeat(1000);
  for (const end of ['*', '!', '']) {
    expect(
      withinOneTurn(() => parsePrincipal('AWS', `arn:aws:iam::111111111111:user/${long}${end}`)),
    ).toBeUndefined();
    expect(withinOneTurn(() => parsePrincipal('Federated', `${'a.'.repeat(1000)}${end}`))).toBeUndefined();
    expect(withinOneTurn(() => parsePrincipal('Service', `${'a.'.repeat(50)}${end}`))).toBeUndefined();
  }
  expect(parsePrincipal('AWS', `arn:aws:iam::111111111111:user/${long}ann`)).toMatchObject({ kind: 'user' });
});

test('odd Unicode is text as any other', () => {
  const odd = [
    '\u0000',
    '\u202e',
    '\ufeff',
    'e\u0301',
    '\u00e9',
    'İ',
    'ß',
    '\ud83d\ude00',
    '\u{10ffff}',
    '\ufffd',
  ];
  for (const key of odd) {
    const policy = compiled(of2012([{ ...ALLOW, Resource: `arn:aws:s3:::b/${key}` }]));
    for (const other of odd) {
      expect(ask([policy], `arn:aws:s3:::b/${other}`).isAllowed, JSON.stringify([key, other])).toBe(
        key === other,
      );
    }
  }
});

test('what of a hundred policies is about an action is found in turns', async () => {
  const actions = Array.from({ length: 300 }, (_, at) => `s3:?et*j?ct${at}`);
  const identity = Array.from({ length: 100 }, (_, at) =>
    compiled(of2012({ ...ALLOW, Action: actions, Sid: `s${at}` })),
  );
  let ofTurn = 0;
  let hasEnded = false;
  let last = matchWork();
  const look = () => {
    ofTurn = Math.max(ofTurn, matchWork() - last);
    last = matchWork();
    if (!hasEnded) setImmediate(look);
  };
  const began = matchWork();
  setImmediate(look);
  await findAbout({ identity }, 's3:GetObject');
  hasEnded = true;
  const work = matchWork() - began;
  expect(work).toBeGreaterThan(400_000);
  expect(ofTurn).toBeLessThan(100_000);
  // The question itself finds all of it.
  const before = matchWork();
  expect(ask(identity, 'arn:aws:s3:::b/k').isAllowed).toBe(false);
  expect(matchWork() - before).toBeLessThan(1000);
  expect(findAbout({ identity: identity.slice(0, 16) }, 's3:GetObject')).toBeUndefined();
});

test('to understand a long number counts by its length', () => {
  const number = compiled(of2012({ ...ALLOW, Condition: { NumericEquals: { 's3:max-keys': '1' } } }));
  const workOf = (digits: number) => {
    const before = matchWork();
    ask([number], 'arn:aws:s3:::b/k', { 's3:max-keys': '9'.repeat(digits) });
    return matchWork() - before;
  };
  expect(workOf(1000) - workOf(10)).toBeGreaterThan(3 * 990);
});
