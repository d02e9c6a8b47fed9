// AWS's language of POST policies, condition by condition (s3-behaviour 19).
import { expect, test } from 'vitest';
import { textToBytes } from '../../../base/text/uri.ts';
import type { FormField } from './form-fields.ts';
import { parsePostPolicy, requirePostPolicy, requireSizes } from './post-policy.ts';

const NOW_MS = Date.parse('2030-01-01T00:00:00Z');
const EXPIRATION = '2030-01-01T01:00:00.000Z';
const encode = (document: unknown) =>
  Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)).toString('base64');
const parse = (document: unknown) => parsePostPolicy(encode(document));

/** Judges a form: the fields, `bucket` b, and key k where they have none. */
function judge(conditions: unknown[], fields: Record<string, string> = {}, nowMs = NOW_MS): void {
  const entries = Object.entries({ key: 'k', ...fields });
  const map = new Map<string, FormField>(
    entries.map(([name, value]) => [name.toLowerCase(), { name, value: textToBytes(value) }]),
  );
  const policy = parse({ expiration: EXPIRATION, conditions });
  requirePostPolicy(policy, { fields: map, bucket: 'b', key: map.get('key')?.value ?? '', nowMs });
}
const denied = (message: string) =>
  expect.objectContaining({ code: 'AccessDenied', message: `Invalid according to Policy: ${message}` });
const invalid = (message: string) =>
  expect.objectContaining({ code: 'InvalidPolicyDocument', message: `Invalid Policy: ${message}` });

const BASE = [{ bucket: 'b' }, ['starts-with', '$key', '']];

test.each<[string, unknown[], Record<string, string>]>([
  ['exact, as an object and as a list', [{ acl: 'private' }, ['eq', '$acl', 'private']], { acl: 'private' }],
  ['a beginning', [['starts-with', '$x-amz-meta-a', 'be']], { 'x-amz-meta-a': 'beginning' }],
  ['any value', [['starts-with', '$success_action_redirect', '']], { success_action_redirect: 'x' }],
  ['names in any case', [{ AcL: 'private' }, ['eq', '$KEY', 'k']], { aCl: 'private' }],
  [
    'a list of types',
    [['starts-with', '$Content-Type', 'image/']],
    { 'Content-Type': 'image/jpg,image/png, image/gif' },
  ],
  ['text beyond ASCII', [{ 'x-amz-meta-a': 'é€😀' }], { 'x-amz-meta-a': 'é€😀' }],
  [
    'fields that need none',
    [],
    {
      'x-ignore-a': '1',
      policy: '',
      signature: '',
      AWSAccessKeyId: '',
      'x-amz-signature': '',
      'x-amz-checksum-crc32': '',
    },
  ],
])('%s', (_what, conditions, fields) => {
  expect(() => judge([...BASE, ...conditions], fields)).not.toThrow();
});

test.each<[string, unknown[], Record<string, string>, string]>([
  [
    'another value',
    [{ acl: 'private' }],
    { acl: 'Private' },
    'Policy Condition failed: ["eq", "$acl", "private"]',
  ],
  [
    'another beginning',
    [['starts-with', '$Acl', 'pub']],
    { acl: 'private' },
    'Policy Condition failed: ["starts-with", "$Acl", "pub"]',
  ],
  [
    'a field that is not there',
    [['starts-with', '$acl', '']],
    {},
    'Policy Condition failed: ["starts-with", "$acl", ""]',
  ],
  [
    'an operator in another case',
    [['StArTs-WiTh', '$acl', '']],
    { acl: 'x' },
    'Policy Condition failed: ["StArTs-WiTh", "$acl", ""]',
  ],
  [
    'a name without its dollar',
    [['eq', 'acl', 'x']],
    { acl: 'x' },
    'Policy Condition failed: ["eq", "acl", "x"]',
  ],
  [
    'one type of a list',
    [['starts-with', '$Content-Type', 'image/']],
    { 'Content-Type': 'image/jpg,text/plain' },
    'Policy Condition failed: ["starts-with", "$Content-Type", "image/"]',
  ],
  ['another bucket', [{ bucket: 'c' }], { bucket: 'c' }, 'Policy Condition failed: ["eq", "$bucket", "c"]'],
  ['a field without a condition', [], { Acl: 'private' }, 'Extra input fields: Acl'],
  ['a signer without a condition', [], { 'x-amz-credential': 'x' }, 'Extra input fields: x-amz-credential'],
  [
    'quotes, and a secret',
    [{ 'x-amz-security-token': '"' }],
    { 'x-amz-security-token': '' },
    'Policy Condition failed: ["eq", "$x-amz-security-token", "***"]',
  ],
])('s3-behaviour 19: %s is AccessDenied', (_what, conditions, fields, message) => {
  expect(() => judge([...BASE, ...conditions], fields)).toThrow(denied(message));
});

test('s3-behaviour 19: a policy without a condition for the bucket or the key is AccessDenied', () => {
  expect(() => judge([{ bucket: 'b' }])).toThrow(denied('Extra input fields: key'));
  expect(() => judge([{ key: 'k' }])).toThrow(denied('Extra input fields: bucket'));
});

test('s3-behaviour 19: a policy is good up to its expiration', () => {
  const expiresAtMs = Date.parse(EXPIRATION);
  expect(() => judge(BASE, {}, expiresAtMs)).not.toThrow();
  expect(() => judge(BASE, {}, expiresAtMs + 1)).toThrow(denied('Policy expired.'));
});

test.each<[string, unknown, string]>([
  ['no JSON', 'x', 'Invalid JSON.'],
  ['no object', '[]', 'Invalid JSON.'],
  ['a member twice', '{"expiration":"a","expiration":"b"}', 'Invalid JSON.'],
  ['depth', '['.repeat(9000), 'Invalid JSON.'],
  ['another member', { expiration: EXPIRATION, conditions: BASE, Statement: 1 }, "Unexpected: 'statement'"],
  ['EXPIRATION', { EXPIRATION, conditions: BASE }, "Unexpected: 'expiration'"],
  ['CONDITIONS', { expiration: EXPIRATION, CONDITIONS: BASE }, "Unexpected: 'conditions'"],
  ['no expiration', { conditions: BASE }, 'Policy missing expiration.'],
  ['a number', { expiration: 1, conditions: BASE }, "Invalid 'expiration' value: 'number'"],
  [
    'an offset',
    { expiration: '2030-01-01T00:00:00+02:00', conditions: BASE },
    "Invalid 'expiration' value: '2030-01-01T00:00:00+02:00'",
  ],
  [
    'no such day',
    { expiration: '2030-13-01T00:00:00Z', conditions: BASE },
    "Invalid 'expiration' value: '2030-13-01T00:00:00Z'",
  ],
  ['no conditions', { expiration: EXPIRATION }, 'Policy missing conditions.'],
  ['no list', { expiration: EXPIRATION, conditions: {} }, "Invalid 'conditions' value: must be a List."],
  [
    'an empty list',
    { expiration: EXPIRATION, conditions: [] },
    "Invalid 'conditions' value: must not be empty.",
  ],
])('s3-behaviour 19: a document with %s is InvalidPolicyDocument', (_what, document, message) => {
  expect(() => parse(document)).toThrow(invalid(message));
});

test.each<[unknown, string]>([
  [{}, 'Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.'],
  [
    { a: 'x', b: 'y' },
    'Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.',
  ],
  [{ a: 1 }, 'Invalid Simple-Condition: value must be a string.'],
  [[], 'Invalid Condition: missing operation identifier.'],
  [[1, '$a', 'b'], 'Invalid JSON.'],
  [['eq', '$a'], 'Invalid eq: wrong number of arguments.'],
  [['eq', '$a', 1], 'Invalid JSON.'],
  ['eq', 'Invalid Condition: must be a List or Object.'],
])('s3-behaviour 19: the condition %j is InvalidPolicyDocument', (condition, message) => {
  expect(() => judge([...BASE, condition])).toThrow(invalid(message));
});

test.each([[], [0], [0, 1, 2], [-1, 0], ['a', 1], [1.5, 2], [2, 1], [null, 1]])(
  's3-behaviour 19: content-length-range of %j is InvalidPolicyDocument',
  (...operands) => {
    expect(() => judge([['content-length-range', ...operands]])).toThrow(
      invalid('Invalid content-length-range: it has a least and a greatest size.'),
    );
  },
);

test('text that is no base64, and bytes that are no UTF-8', () => {
  expect(() => parsePostPolicy('{"')).toThrow(invalid('invalid Base64 encoding.'));
  expect(() => parsePostPolicy(Buffer.from([0x7b, 0xff]).toString('base64'))).toThrow(
    invalid('Invalid JSON.'),
  );
});

test('base64 in lines, and the escapes that JSON has not', () => {
  const text = `{"expiration":"${EXPIRATION}","conditions":[["eq","\\$key","a\\$\\v\\\\$"]]}`;
  const lines = encode(text).replace(/.{20}/g, '$&\r\n');
  expect(parsePostPolicy(lines).conditions).toMatchObject([{ field: 'key', value: 'a$\v\\$' }]);
});

test('s3-behaviour 19: a file outside of content-length-range', async () => {
  const { sizes } = parse({
    expiration: EXPIRATION,
    conditions: [
      ['content-length-range', 2, 100],
      ['content-length-range', '0', '4'],
    ],
  });
  async function sizeOf(...lengths: number[]): Promise<number> {
    let sum = 0;
    const file = (async function* () {
      for (const length of lengths) yield Buffer.alloc(length);
    })();
    for await (const buffer of requireSizes(file, sizes)) sum += buffer.length;
    return sum;
  }
  expect([await sizeOf(1, 1), await sizeOf(4)]).toEqual([2, 4]);
  const small = { code: 'EntityTooSmall', fields: { ProposedSize: 1, MinSizeAllowed: 2 } };
  await expect(sizeOf(1)).rejects.toMatchObject(small);
  const large = { code: 'EntityTooLarge', fields: { ProposedSize: 5, MaxSizeAllowed: 4 } };
  await expect(sizeOf(3, 2, 1000)).rejects.toMatchObject(large);
});
