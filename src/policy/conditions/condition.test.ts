// The operators and their rules, by AWS "IAM JSON policy elements: Condition operators" and "Multivalued context keys".
import { expect, test } from 'vitest';
import type { ContextValue } from '../patterns.ts';
import { makeCondition } from './condition.ts';
import { findOperator, OPERATOR_NAMES } from './operators.ts';

type Values = Record<string, ContextValue>;

function holds(
  name: string,
  wanted: string | string[],
  value: ContextValue | undefined,
  {
    effect = 'Allow',
    others = {},
    key = 'X:Key',
  }: { effect?: 'Allow' | 'Deny'; others?: Values; key?: string } = {},
): boolean {
  const operator = findOperator(name);
  if (operator === undefined) throw new Error(`no operator ${name}`);
  const values = [wanted].flat();
  const condition = makeCondition({ name, operator, key, values, hasVariables: true, effect });
  if ('badValue' in condition) throw new Error(`bad value ${condition.badValue}`);
  return condition.holds((asked) => (asked === key.toLowerCase() ? value : others[asked]));
}

test.each<[operator: string, wanted: string, fits: string[], others: string[]]>([
  ['StringEquals', 'Ann', ['Ann'], ['ann', 'An', 'Anna']],
  ['StringEquals', 'a*', ['a*'], ['ab']],
  ['StringEqualsIgnoreCase', 'Ann', ['Ann', 'aNN'], ['anna']],
  ['StringLike', 'a*?', ['ab', 'abc'], ['a', 'Ab']],
  ['NumericEquals', '10', ['10', '10.0', '010', '+10'], ['1', '10.1']],
  ['NumericEquals', '9007199254740993', ['9007199254740993'], ['9007199254740992']],
  ['NumericEquals', '-0', ['0', '0.0', '-0'], ['-1']],
  ['NumericLessThan', '10', ['9.999', '-11', '2'], ['10', '100', 'x']],
  ['NumericLessThanEquals', '10', ['10', '9'], ['10.0001']],
  ['NumericGreaterThan', '-1.5', ['-1', '0', '2'], ['-1.5', '-2', '-1.51']],
  ['NumericGreaterThanEquals', '10', ['10', '11'], ['9', '1e9']],
  [
    'DateEquals',
    '2026-01-01T00:00:00Z',
    ['2026-01-01', '2026-01-01T01:00:00+01:00', '1767225600'],
    ['2026-01-02'],
  ],
  ['DateLessThan', '2026-01-01T00:00:00Z', ['2025-12-31T23:59:59.999Z', '0', '-1'], ['2026-01-01T00:00:00Z']],
  ['DateLessThanEquals', '2026-01-01', ['2026-01-01T00:00:00Z'], ['2026-01-01T00:00:01Z']],
  ['DateGreaterThan', '2026-01-01', ['2026-01-01T00:00:00.001Z'], ['2026-01-01']],
  ['DateGreaterThanEquals', '2026-01-01', ['2026-01-01'], ['2025-12-31']],
  ['Bool', 'true', ['true', 'TRUE'], ['false', 'x', '']],
  ['BinaryEquals', 'QUJD', ['QUJD'], ['QUJE', 'ABC', '']],
  ['IpAddress', '10.0.0.0/9', ['10.127.255.255', '::ffff:10.0.0.1'], ['10.128.0.0', '::1', 'x', '']],
  ['IpAddress', '10.1.2.3/8', ['10.9.9.9'], ['11.0.0.0']],
  ['IpAddress', '0.0.0.0/0', ['1.2.3.4'], ['::']],
  ['IpAddress', '2001:db8::/33', ['2001:db8:7fff::1'], ['2001:db8:8000::', '32.1.13.184']],
  ['IpAddress', '::ffff:10.0.0.0/104', ['10.1.2.3'], ['11.0.0.0']],
  ['IpAddress', '2001:DB8::1', ['2001:db8:0:0::1'], ['2001:db8::2', '2001:db8::1%eth0']],
  ['ArnLike', 'arn:aws:iam::1*:user/*', ['arn:aws:iam::12:user/a:b'], ['arn:aws:iam::1:x:user/a', 'user/a']],
  ['ArnEquals', 'arn:*:s3:::?', ['arn:aws:s3:::b'], ['arn:aws:s3:::bb', 'arn:aws:x:s3:::b']],
  ['ArnLike', '*', ['arn:a:b:c:d:e'], ['arn:a:b:c:d', 'x']],
])('%s %s', (operator, wanted, fits, others) => {
  const negated = operator.replace(
    /^(String|Numeric|Date|Arn|)(Equals|EqualsIgnoreCase|Like|IpAddress)$/,
    '$1Not$2',
  );
  for (const [values, expected] of [
    [fits, true],
    [others, false],
  ] as const) {
    for (const value of values) {
      expect(holds(operator, wanted, value), value).toBe(expected);
      if (negated !== operator) expect(holds(negated, wanted, value), `${negated} ${value}`).toBe(!expected);
    }
  }
});

test('zeros before a number hide it from no comparison', () => {
  expect(holds('NumericGreaterThan', '30', `${'0'.repeat(200)}31`)).toBe(true);
});

test('numbers of a thousand digits are compared exactly', () => {
  const nines = '9'.repeat(1000);
  expect(holds('NumericGreaterThan', '30', nines)).toBe(true);
  expect(holds('NumericLessThan', '30', `-${nines}.5`)).toBe(true);
  expect(holds('NumericEquals', '1', `1.${'0'.repeat(999)}1`)).toBe(false);
  expect(holds('NumericLessThan', '1', `0.${nines}`)).toBe(true);
});

test.each([
  ['Numeric', '10', ['', 'x', '1e9', '0x1F', 'NaN', 'Infinity', ' 11', '1_0', '\u0663', '1'.repeat(2000)]],
  ['Date', '2026-01-01', ['', 'x', '2026-13-01', 'NaN', '1e9', 'Thu, 01 Jan 2026 00:00:00 GMT']],
])(
  '%s operators: what is no value of theirs allows nothing, and no Deny is passed by with it',
  (type, wanted, values) => {
    for (const name of OPERATOR_NAMES.filter((each) => each.startsWith(type))) {
      for (const value of values) {
        for (const asked of [name, `${name}IfExists`, `ForAnyValue:${name}`, `ForAllValues:${name}`]) {
          expect(holds(asked, wanted, value, { effect: 'Allow' }), `${asked} ${value}`).toBe(false);
          expect(holds(asked, wanted, value, { effect: 'Deny' }), `${asked} ${value}`).toBe(true);
        }
      }
    }
  },
);

test('a key that the request lacks: what asks for a value does not hold, what forbids one does', () => {
  for (const name of OPERATOR_NAMES) {
    if (name === 'Null') continue;
    const wanted = name.startsWith('Date')
      ? '0'
      : name.includes('Ip')
        ? '::'
        : name === 'BinaryEquals'
          ? 'AAAA'
          : name === 'Bool'
            ? 'true'
            : '1';
    expect(holds(name, wanted, undefined), name).toBe(name.includes('Not'));
    expect(holds(name, wanted, []), name).toBe(name.includes('Not'));
    expect(holds(`${name}IfExists`, wanted, undefined), name).toBe(true);
    expect(holds(`ForAllValues:${name}`, wanted, undefined), name).toBe(true);
    expect(holds(`ForAnyValue:${name}`, wanted, undefined), name).toBe(false);
    expect(holds(`ForAnyValue:${name}IfExists`, wanted, []), name).toBe(true);
  }
});

test('Null true: the key is not there; an empty text is there, an empty list is not', () => {
  expect(holds('Null', 'true', undefined)).toBe(true);
  expect(holds('Null', 'true', [])).toBe(true);
  expect(holds('Null', 'true', '')).toBe(false);
  expect(holds('Null', 'FALSE', 'x')).toBe(true);
  expect(holds('Null', 'false', undefined)).toBe(false);
  expect(holds('Null', ['true', 'false'], 'x')).toBe(true);
});

test('of several values any may fit, and a negation holds if none does', () => {
  expect(holds('StringEquals', ['a', 'b'], 'b')).toBe(true);
  expect(holds('StringNotEquals', ['a', 'b'], 'b')).toBe(false);
  expect(holds('StringNotEquals', ['a', 'b'], 'c')).toBe(true);
  expect(holds('StringEquals', [], 'a')).toBe(false);
  expect(holds('StringNotEquals', [], 'a')).toBe(true);
  expect(holds('NotIpAddress', ['10.0.0.0/8', '192.0.2.0/24'], '192.0.2.1')).toBe(false);
});

test('ForAllValues: every value of the request fits; ForAnyValue: at least one does', () => {
  expect(holds('ForAllValues:StringEquals', ['a', 'b'], ['a', 'b', 'a'])).toBe(true);
  expect(holds('ForAllValues:StringEquals', ['a', 'b'], ['a', 'c'])).toBe(false);
  expect(holds('ForAnyValue:StringEquals', ['a', 'b'], ['c', 'b'])).toBe(true);
  expect(holds('ForAnyValue:StringEquals', ['a', 'b'], ['c'])).toBe(false);
  expect(holds('ForAllValues:StringNotEquals', ['a'], ['b', 'c'])).toBe(true);
  expect(holds('ForAnyValue:StringNotEquals', ['a'], ['a', 'b'])).toBe(true);
  expect(holds('ForAnyValue:StringNotEquals', ['a'], ['a'])).toBe(false);
  expect(holds('ForAllValues:StringLike', ['a*'], 'ab')).toBe(true);
});

test('a list without a qualifier is any of its values, and a negation none of them', () => {
  expect(holds('StringEquals', 'a', ['b', 'a'])).toBe(true);
  expect(holds('StringNotEquals', 'a', ['b', 'a'])).toBe(false);
  expect(holds('StringNotEquals', 'a', ['b', 'c'])).toBe(true);
});

test('variables stand in values of texts and ARNs', () => {
  const others = { 'aws:username': 'ann' };
  expect(holds('StringEquals', 'home/${aws:username}', 'home/ann', { others })).toBe(true);
  expect(holds('StringEqualsIgnoreCase', '${aws:username}', 'ANN', { others })).toBe(true);
  expect(holds('StringLike', '${aws:username}/*', 'ann/x', { others })).toBe(true);
  expect(holds('ArnLike', 'arn:aws:iam::*:user/${aws:username}', 'arn:aws:iam::1:user/ann', { others })).toBe(
    true,
  );
});

test('a variable without a value allows nothing and spares nobody', () => {
  const wanted = '${aws:username}';
  expect(holds('StringEquals', wanted, 'x', { effect: 'Allow' })).toBe(false);
  expect(holds('StringEquals', wanted, 'x', { effect: 'Deny' })).toBe(false);
  expect(holds('StringNotEquals', wanted, 'x', { effect: 'Allow' })).toBe(false);
  expect(holds('StringNotEquals', wanted, 'x', { effect: 'Deny' })).toBe(true);
  expect(holds('StringNotLike', ['y', wanted], 'x', { effect: 'Deny' })).toBe(true);
  expect(holds('ArnNotLike', `arn:aws:iam::1:${wanted}`, 'arn:aws:iam::1:x', { effect: 'Allow' })).toBe(
    false,
  );
});

test.each([
  ['NumericEquals', ['', '.', '1e3', '0x1', '--1', ' 1', '1'.repeat(101), '٣']],
  [
    'DateEquals',
    [
      '',
      '2026',
      'x',
      '2026-00-01',
      '2026-02-29',
      '2026-01-01T24:00:00Z',
      '2026-01-01T00:00:60Z',
      '1'.repeat(16),
    ],
  ],
  [
    'DateEquals',
    ['2026-01-01T00:00:00+24:00', '2026-01-01T00:00:00.1234567890Z', '2026-1-1', '2026-01-01T0:00Z'],
  ],
  [
    'IpAddress',
    [
      '',
      '1.2.3',
      '1.2.3.4.5',
      '010.0.0.1',
      '0x7f.0.0.1',
      '1.2.3.4/',
      '1.2.3.4/033',
      '1.2.3.4/-1',
      '1.2.3.4/33',
    ],
  ],
  [
    'IpAddress',
    ['::/129', ':::', '1::2::3', 'fe80::1%eth0', '::1/64/64', '12345::', '4294967295', '١.٢.٣.٤'],
  ],
  ['Bool', ['1', 'yes', '', 'truefalse']],
  ['BinaryEquals', ['A', 'AAA', '!!!!', 'AA=A']],
  ['Null', ['', 'null', '0']],
] as const)('%s does not understand %j', (name, values) => {
  for (const value of values) {
    if (name === 'DateEquals' && value === '2026') continue;
    expect(() => holds(name, value, 'x'), value).toThrow(`bad value ${value}`);
  }
});

test('dates of four digits are seconds, as all that are digits alone', () => {
  expect(holds('DateEquals', '2026', '1970-01-01T00:33:46Z')).toBe(true);
});

test('operators have their exact names', () => {
  for (const name of [
    'stringequals',
    'StringEqual',
    'ForAnyValue:',
    'ForSomeValues:Bool',
    'IfExists',
    'NullIfExists',
    'BoolIfExistsIfExists',
  ]) {
    expect(findOperator(name), name).toBeUndefined();
  }
  expect(OPERATOR_NAMES).toHaveLength(27);
});

const EVERYBODY = 'http://acs.amazonaws.com/groups/global/AllUsers';
const granted = (
  operator: string,
  wanted: string | string[],
  header: ContextValue,
  effect: 'Allow' | 'Deny',
) => holds(operator, wanted, header, { effect, key: 's3:x-amz-grant-Read' });

test.each(['id=a1', 'id="a1"', ' ID = "a1" ', 'id=a1,id="a1"'])(
  'grants: %s is the grant that a policy names in either of the two spellings of AWS',
  (header) => {
    for (const wanted of ['id=a1', 'id="a1"']) {
      expect(granted('StringEquals', wanted, header, 'Allow')).toBe(true);
      expect(granted('StringEquals', wanted, header, 'Deny')).toBe(true);
      expect(granted('StringNotEquals', wanted, header, 'Allow')).toBe(false);
      expect(granted('StringNotEquals', wanted, header, 'Deny')).toBe(false);
    }
    expect(granted('StringLike', '*id="a1"*', header, 'Deny')).toBe(true);
    expect(granted('StringEquals', 'id=a2', header, 'Deny')).toBe(false);
    expect(granted('StringNotEquals', 'id=a2', header, 'Allow')).toBe(true);
  },
);

test('grants: one of several is denied, and does not allow or spare the others', () => {
  for (const header of [
    `id="a1", uri="${EVERYBODY}"`,
    `uri=${EVERYBODY},id=a1`,
    ['id=a1', `uri=${EVERYBODY}`],
  ]) {
    expect(granted('StringEquals', 'id=a1', header, 'Deny')).toBe(true);
    expect(granted('StringEquals', 'id=a1', header, 'Allow')).toBe(false);
    expect(granted('StringNotEquals', 'id=a1', header, 'Deny')).toBe(true);
    expect(granted('StringNotEquals', 'id=a1', header, 'Allow')).toBe(false);
    expect(granted('StringLike', `uri="${EVERYBODY}"`, header, 'Deny')).toBe(true);
    expect(granted('ForAllValues:StringLike', '*AllUsers*', header, 'Deny')).toBe(true);
    expect(granted('ForAnyValue:StringEquals', 'id=a1', header, 'Allow')).toBe(false);
    for (const wanted of [`id=a1, uri="${EVERYBODY}"`, `uri=${EVERYBODY},id="a1"`]) {
      expect(granted('StringEquals', wanted, header, 'Allow')).toBe(true);
      expect(granted('StringNotEquals', wanted, header, 'Deny')).toBe(false);
    }
  }
});

test('grants: an account that is named in the other way may be the one that is denied', () => {
  const mail = 'emailAddress=Ann@Example.com';
  expect(granted('StringEquals', mail, 'emailaddress="ann@example.COM"', 'Allow')).toBe(true);
  expect(granted('StringLike', '*ann@example.com*', 'EMAILADDRESS="ANN@example.com"', 'Deny')).toBe(true);
  expect(granted('StringEquals', mail, 'emailaddress=bob@example.com', 'Deny')).toBe(false);
  for (const [wanted, header] of [
    ['id=a1', mail],
    [mail, 'id=a1'],
  ] as const) {
    expect(granted('StringEquals', wanted, header, 'Deny')).toBe(true);
    expect(granted('StringNotEquals', wanted, header, 'Deny')).toBe(true);
    expect(granted('StringEquals', wanted, header, 'Allow')).toBe(false);
    expect(granted('StringNotEquals', wanted, header, 'Allow')).toBe(false);
  }
  expect(granted('StringLike', `*${EVERYBODY}*`, mail, 'Deny')).toBe(false);
  expect(granted('StringNotLike', `*${EVERYBODY}*`, mail, 'Allow')).toBe(true);
});

test('grants: a variable stands for a name, and without a value it allows nothing and spares nobody', () => {
  const key = 's3:x-amz-grant-full-control';
  const wanted = 'id="${aws:PrincipalTag/Owner}"';
  const others = { 'aws:principaltag/Owner': 'a1' };
  expect(holds('StringEquals', wanted, 'id="a1"', { key, others })).toBe(true);
  expect(holds('StringEquals', wanted, 'id="a1", id=a2', { key, others, effect: 'Deny' })).toBe(true);
  expect(holds('StringNotEquals', wanted, 'id=a1', { key, effect: 'Deny' })).toBe(true);
  expect(holds('StringNotEquals', wanted, 'id=a1', { key, effect: 'Allow' })).toBe(false);
});
