import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatTimestamp, parseTimestamp, readRequestTime } from './signing-dates.ts';

test('a timestamp in the basic form is read', () => {
  expect(parseTimestamp('20130524T000000Z')).toBe(Date.parse('2013-05-24T00:00:00Z'));
  const seconds = fc.integer({ min: 0, max: 253_402_300_799 });
  fc.assert(
    fc.property(seconds, (second) => parseTimestamp(formatTimestamp(second * 1000)) === second * 1000),
  );
});

test.each([
  '',
  '2013-05-24T00:00:00Z',
  '20130524T000000',
  '20131324T000000Z',
  '20130524T240001Z',
  '20130230T000000Z',
])('%j is none', (text) => {
  expect(parseTimestamp(text)).toBeUndefined();
});

test('x-amz-date has precedence over Date; HTTP dates are returned in the basic form', () => {
  const basic = '20130524T000000Z';
  expect(readRequestTime({ 'x-amz-date': basic, date: 'nonsense' })?.timestamp).toBe(basic);
  expect(readRequestTime({ date: 'Fri, 24 May 2013 00:00:00 -0000' })?.timestamp).toBe(basic);
  expect(
    readRequestTime({ 'x-amz-date': 'nonsense', date: 'Fri, 24 May 2013 00:00:00 GMT' }),
  ).toBeUndefined();
  expect(readRequestTime({})).toBeUndefined();
  expect(readRequestTime({ date: 'Wed, 31 Dec 1969 23:59:59 GMT' })).toBeUndefined();
});

test('any text is a time or undefined', () => {
  const piece = fc.constantFrom(
    '2013',
    '05',
    '24',
    'T',
    'Z',
    ' ',
    ',',
    'Fri',
    'May',
    ':',
    '00',
    'GMT',
    '-0000',
    '\u00ff',
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const time = readRequestTime({ date: pieces.join('') });
      expect(time === undefined || Number.isSafeInteger(time.timeMs)).toBe(true);
    }),
  );
});
