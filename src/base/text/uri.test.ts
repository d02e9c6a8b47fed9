import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  bytesToText,
  percentDecode,
  percentEncode,
  percentEncodePath,
  percentReencodePath,
  queryDecode,
  textToBytes,
} from './uri.ts';

test('escapes are decoded exactly once, a plus only in queries', () => {
  expect(percentDecode('a%2Fb%2fc+%25%32')).toBe('a/b/c+%2');
  expect(queryDecode('a+b%2Bc')).toBe('a b+c');
  expect(percentDecode('%C3%A9')).toBe('\u00c3\u00a9');
});

test.each(['%', '%4', '%zz', 'a%2', '%%41', '%u0041'])('%s is no encoding', (text) => {
  expect(percentDecode(text)).toBeUndefined();
  expect(queryDecode(text)).toBeUndefined();
});

test('everything but unreserved characters is encoded, in upper case', () => {
  expect(percentEncode("aZ09-._~ /!*'()")).toBe('aZ09-._~%20%2F%21%2A%27%28%29');
  expect(percentEncodePath('a b//c')).toBe('a%20b//c');
  expect(percentEncode(textToBytes('é'))).toBe('%C3%A9');
});

test('a path is encoded again, with its encoded slashes unchanged', () => {
  expect(percentReencodePath('/a/~b//')).toBe('/a/~b//');
  expect(percentReencodePath("/a%2fb/%7E%c3%a9'é")).toBe('/a%2Fb/~%C3%A9%27%E9');
  expect(percentReencodePath('/a%/')).toBeUndefined();
});

test('bytes are text only if they are UTF-8', () => {
  expect(bytesToText('\u00c3\u00a9')).toBe('é');
  expect(bytesToText(textToBytes('\ufeffa'))).toBe('\ufeffa');
  expect(bytesToText('\u00ff')).toBeUndefined();
  expect(bytesToText('\u00ed\u00a0\u0080')).toBeUndefined();
});

test('encoding and decoding are inverse for every text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const bytes = textToBytes(text);
      expect(percentDecode(percentEncode(bytes))).toBe(bytes);
      expect(percentDecode(percentEncodePath(bytes))).toBe(bytes);
      expect(queryDecode(percentEncode(bytes))).toBe(bytes);
      expect(bytesToText(bytes)).toBe(text.toWellFormed());
    }),
  );
});
