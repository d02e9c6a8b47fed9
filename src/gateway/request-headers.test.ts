import { expect, test } from 'vitest';
import { readHeaders } from './request-headers.ts';

test('names in lower case, repeated headers joined, as sent beside it', () => {
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

test('vendor spellings mean the same, and keep the name they were signed under', () => {
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
