// Whatever an error or a log line repeats goes through here, so every code of the catalogue is tried, in both renderers.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expectLinear } from '../../../tests/support/run/properties.ts';
import { AppError, ERRORS, type ErrorCode } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { errorXml } from '../s3/xml/error-xml.ts';
import { redact, redactError } from './redact.ts';
import { renderJsonError } from './serve-route.ts';

const MARK = 'bWFya2VyIG9mIGEgc2VjcmV0';
const NAMES = [
  'x-amz-server-side-encryption-customer-key',
  'X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key',
  'x-std-server-side-encryption-customer-key',
  'X-Amz-Signature',
  'Signature',
  'X-Amz-Security-Token',
  'x-amz-security-token',
  'Authorization',
  'password',
  'NewPassword',
  'TokenCode',
  'AuthenticationCode1',
  'secretKey',
];
const encoded = (name: string) => name.replaceAll('-', '%2D').replace('S', '%53');
/** Texts in which clients' mistakes and ours could carry a secret. */
const SHAPES: readonly ((name: string) => string)[] = [
  (name) => `/b/k?${name}=${MARK}`,
  (name) => `/b/k?a=b&${name}=${MARK}&c=%zz`,
  (name) => `/b/k?${encoded(name)}=${MARK}`,
  (name) => `/b/k%3F${name}%3D${MARK}`,
  (name) => `/b/k%253F${name}%253D${MARK}%26x=y`,
  (name) => `GET\n/k\n\nhost:h\n${name.toLowerCase()}:${MARK}\n\nhost`,
  (name) => `GET\n/k\n\n${name}: a b,${MARK}&${MARK}\nx-amz-date:1\n`,
  (name) => `{"a":1,"${name}":"${MARK}"}`,
  (name) => `AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=${MARK}; ${name}=${MARK}`,
];
const BARE = [`Basic ${MARK}`, `bearer ${MARK}`, `AWS key:${MARK}`];

describe.each(NAMES)('%s', (name) => {
  test.each(SHAPES.map((shape) => shape(name)))('in %j', (text) => {
    expect(redact(text)).not.toContain(MARK);
    expect(redact(text)).toContain('***');
  });
});

test.each(BARE)('%s', (text) => {
  expect(redact(text)).not.toContain(MARK);
});

test('text without secrets is unchanged', () => {
  for (const text of [
    '/b/logs/signature=abc/file',
    'a key with = and & and : in it',
    'SignedHeaders=host;x-amz-server-side-encryption-customer-key;x-amz-server-side-encryption-customer-key-md5',
    'x-amz-server-side-encryption-customer-key-MD5:AAAA',
    'aws-cli/2.1 md/Botocore#1.2 ua/2.0 os/linux lang/python',
    '%41%zz%',
    '',
  ]) {
    expect(redact(text)).toBe(text);
  }
});

test.each(Object.keys(ERRORS) as ErrorCode[])('no rendering of %s repeats a secret', (code) => {
  const place = { requestId: 'R', hostId: 'H' };
  for (const text of [...NAMES.flatMap((name) => SHAPES.map((shape) => shape(name))), ...BARE]) {
    const error = new AppError(code, {
      message: text,
      fields: {
        Text: text,
        ArgumentName: 'Authorization',
        ArgumentValue: MARK,
        SignatureProvided: MARK,
        'x-amz-server-side-encryption-customer-key': MARK,
      },
    });
    expect(errorXml(error, { ...place, resource: text })).not.toContain(MARK);
    expect(renderJsonError(error, 'R').body).not.toContain(MARK);
  }
});

test('fields and whole documents are bounded, whatever is escaped', () => {
  const fields = fc.dictionary(fc.stringMatching(/^[A-Z][a-z]{1,8}$/), fc.nat(40_000), { maxKeys: 8 });
  fc.assert(
    fc.property(fields, fc.constantFrom('x', '&', '"', '\u0001', 'ä', '😀', '\r'), (lengths, unit) => {
      const long = Object.fromEntries(
        Object.entries(lengths).map(([name, length]) => [name, unit.repeat(length)]),
      );
      const error = new AppError('InvalidArgument', { message: unit.repeat(5000), fields: long });
      const told = redactError(error);
      for (const value of [told.message, ...Object.values(told.fields)])
        expect(String(value).length).toBeLessThanOrEqual(LIMITS.echoedFieldCharactersMax);
      const xml = errorXml(error, { resource: `/${unit.repeat(20_000)}`, requestId: 'R', hostId: 'H' });
      const bound = LIMITS.echoedCharactersMax + LIMITS.echoedFieldCharactersMax + 1024;
      expect(xml.length).toBeLessThanOrEqual(bound);
    }),
    { numRuns: 50 },
  );
});

test('a long text takes linear time', () => {
  expectLinear(redact, {
    pieces: [
      'customer-key ',
      ' signature ',
      '&signature',
      'aws x',
      'aws ',
      '%25',
      '%',
      'basic ',
      'basic',
      '&"',
      ' ',
    ],
    starts: ['', 'signature', 'customer-key'],
  });
});
