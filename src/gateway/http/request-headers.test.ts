import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byteText } from '../../../tests/support/run/properties.ts';
import { readHeaders, requireSingleHeaders } from './request-headers.ts';

test('names are in lower case, repeated headers joined, and the sent form is kept beside', () => {
  const { values, sentNames, sentValues } = readHeaders([
    'Host',
    'h',
    'X-A',
    '1',
    'x-a',
    '2',
    '__proto__',
    'p',
  ]);
  expect({ ...values }).toEqual({ host: 'h', 'x-a': '1, 2', ['__proto__']: 'p' });
  expect(sentNames).toEqual(['host', 'x-a', 'x-a', '__proto__']);
  expect(sentValues).toEqual(['h', '1', '2', 'p']);
});

test('vendor spellings have the same meaning, and keep their signed names', () => {
  const { values, sentNames } = readHeaders([
    'X-Std-Acl',
    'private',
    'X-Wasabi-Quiet',
    'true',
    'X-Svc-Prefix',
    'false',
  ]);
  expect({ ...values }).toEqual({ 'x-amz-acl': 'private', 'x-svc-quiet': 'true', 'x-svc-prefix': 'false' });
  expect(sentNames).toEqual(['x-std-acl', 'x-wasabi-quiet', 'x-svc-prefix']);
});

test('every header that was sent is present, whatever its name', () => {
  const name = fc.oneof(
    fc.constantFrom('__proto__', 'constructor', 'X-Std-A', 'x-amz-a'),
    fc.stringMatching(/^[a-zA-Z_-]{1,8}$/),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(name, byteText)), (sent) => {
      const { values, sentNames, sentValues } = readHeaders(sent.flat());
      expect(sentNames).toEqual(sent.map(([sentName]) => sentName.toLowerCase()));
      expect(sentValues).toEqual(sent.map(([, value]) => value));
      const joined = Object.keys(values).map((key) => values[key]?.length ?? 0);
      const separators = sent.length - joined.length;
      const bytes = sentValues.reduce((sum, value) => sum + value.length, 0);
      expect(joined.reduce((sum, length) => sum + length, 0)).toBe(bytes + 2 * separators);
    }),
  );
});

const twice =
  (...names: string[]) =>
  () =>
    requireSingleHeaders(readHeaders(['X-Other', 'x', ...names.flatMap((name) => [name, 'same'])]));

test.each([
  'Authorization',
  'Content-Length',
  'Content-MD5',
  'Content-Type',
  'Date',
  'Destination',
  'Host',
  'If-Modified-Since',
  'If-Range',
  'If-Unmodified-Since',
  'Overwrite',
  'Range',
  'Response-Content-Type',
  'Transfer-Encoding',
  'X-Amz-Acl',
  'X-Amz-Bypass-Governance-Retention',
  'X-Amz-Checksum-CRC32',
  'X-Amz-Content-Sha256',
  'X-Amz-Copy-Source',
  'X-Amz-Copy-Source-If-Match',
  'X-Amz-Copy-Source-Range',
  'X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key',
  'X-Amz-Date',
  'X-Amz-Decoded-Content-Length',
  'X-Amz-Security-Token',
  'X-Amz-Server-Side-Encryption-Customer-Key',
  'X-Amz-Tagging',
  'X-Amz-Write-Offset-Bytes',
  'X-Svc-Idempotency-Token',
  'X-Svc-Prefix',
])('%s decides, and is refused when it is there twice', (name) => {
  expect(twice(name)).not.toThrow();
  const refusal = expect.objectContaining({
    code: 'InvalidArgument',
    fields: { ArgumentName: name.toLowerCase() },
  });
  expect(twice(name, name)).toThrowError(refusal);
  expect(twice(name.toUpperCase(), 'X-More', name.toLowerCase())).toThrowError(refusal);
});

test('two spellings of a decisive header count as two', () => {
  expect(twice('x-std-date', 'x-amz-date')).toThrow('once only');
  expect(twice('X-Wasabi-Prefix', 'X-Svc-Prefix')).toThrow('once only');
});

test.each([
  'Accept',
  'Cache-Control',
  'Connection',
  'Content-Encoding',
  'Content-Language',
  'Cookie',
  'Expect',
  'If-Match',
  'If-None-Match',
  'Via',
  'X-Amz-Meta-A',
  'X-Amz-Object-Attributes',
  'X-Forwarded-For',
])('%s is a list, or of no account, and may be there twice', (name) => {
  expect(twice(name, name)).not.toThrow();
});
