import { expect, test } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatForeign,
  formatPrinted,
  formatTable,
} from './format.ts';

test('tables align every column but the last', () => {
  expect(
    formatTable([
      ['ID', 'NAME', 'E-MAIL'],
      ['1', 'backup', 'a@b'],
    ]),
  ).toBe('ID  NAME    E-MAIL\n1   backup  a@b');
});

test.each([
  [0, '0 bytes'],
  [1023, '1023 bytes'],
  [1024, '1.00 KiB'],
  [15.25 * 1024, '15.3 KiB'],
  [200 * 1024 ** 2, '200 MiB'],
  [3 * 1024 ** 6, '3072 PiB'],
])('%d bytes are %s', (sizeBytes, text) => expect(formatBytes(sizeBytes)).toBe(text));

test.each([
  [7, '7'],
  [1234, '1,234'],
  [1234567, '1,234,567'],
])('%d is %s', (count, text) => expect(formatCount(count)).toBe(text));

test.each([
  [999, '0 s'],
  [61_000, '1 min 1 s'],
  [3_600_000, '1 h 0 min'],
  [273_600_000, '3 d 4 h'],
])('%d ms are %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

test('keys of clients give a terminal no orders', () => {
  expect(formatForeign('a\u001b[2Jb\u009bc\nä to d')).toBe('a\\x1b[2Jb\\x9bc\\x0aä to d');
});

test('no control character is printed but those of lines, and a document stays what it is', () => {
  const document = '{\r\n\t"Sid": "a\u009b2Jb\u007fc"\n}';
  const printed = formatPrinted(document);
  expect(printed).toBe('{\r\n\t"Sid": "a\\u009b2Jb\\u007fc"\n}');
  expect(JSON.parse(printed)).toEqual(JSON.parse(document));
  expect(formatPrinted('hidden\rshown\u001b[1A')).toBe('hidden\\u000dshown\\u001b[1A');
  expect(formatPrinted('{"key":"a\u2028b\u2029"}')).toBe('{"key":"a\\u2028b\\u2029"}');
});
