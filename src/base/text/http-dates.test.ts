import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cpuMs } from '../../../tests/support/run/cpu-time.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { expectLinear, nearly } from '../../../tests/support/run/properties.ts';
import { httpDate, isoSeconds, parseHttpDate } from './http-dates.ts';

const TIME_MS = Date.UTC(1994, 10, 6, 8, 49, 37);

test('all three forms of an HTTP date are read', () => {
  expect(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT')).toBe(TIME_MS);
  expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT')).toBe(TIME_MS);
  expect(parseHttpDate('Sun Nov  6 08:49:37 1994')).toBe(TIME_MS);
  expect(parseHttpDate('06 Nov 1994 08:49:37 -0000')).toBe(TIME_MS);
  expect(parseHttpDate('Sun, 06 Nov 1994 10:49:37 +0200')).toBe(TIME_MS);
  expect(parseHttpDate('Sun, 06 Nov 1994 04:19:37 -0430')).toBe(TIME_MS);
});

test.each([
  '',
  'yesterday',
  'Sun, 06 Nov 1994 08:49:37',
  'Sun, 06 Nov 1994 08:49:37 CET',
  'Sun, 06 Nov 1994 08:49:37 +2400',
  'Sun, 06 Nov 1994 08:49:37 +02:00',
  'Sun, 06 ovD 1994 08:49:37 GMT',
  'Sun, 31 Feb 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 24:00:00 GMT',
  '1994-11-06T08:49:37Z',
])('%j is no HTTP date', (text) => {
  expect(parseHttpDate(text)).toBeUndefined();
});

test('written dates have whole seconds', () => {
  expect(httpDate(TIME_MS + 999)).toBe('Sun, 06 Nov 1994 08:49:37 GMT');
  expect(isoSeconds(TIME_MS + 999)).toBe('1994-11-06T08:49:37.000Z');
  expect(parseHttpDate(httpDate(TIME_MS))).toBe(TIME_MS);
});

test('times in XML are those of the platform, cut to seconds', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), (timeMs) => {
      expect(isoSeconds(timeMs)).toBe(new Date(timeMs - (timeMs % 1000)).toISOString());
    }),
  );
});

test('a date with an offset is the moment that it names', () => {
  const offset = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e9 }), offset, (second, east) => {
      const local = httpDate((second + east * 60) * 1000).slice(0, -'GMT'.length);
      const [hours, minutes] = [Math.trunc(Math.abs(east) / 60), Math.abs(east) % 60];
      const zone = `${east < 0 ? '-' : '+'}${String(hours).padStart(2, '0')}${String(minutes).padStart(2, '0')}`;
      return parseHttpDate(local + zone) === second * 1000;
    }),
  );
});

test('any text is a date or none, in bounded time', () => {
  const piece = fc.constantFrom(
    'Sun',
    ', ',
    ' ',
    '06',
    'Nov',
    '-',
    '1994',
    '94',
    '08:49:37',
    'GMT',
    '+0200',
    '9',
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece).map((pieces) => pieces.join('')),
  );
  fc.assert(
    fc.property(text, (given) => {
      const timeMs = parseHttpDate(given);
      return timeMs === undefined || Number.isSafeInteger(timeMs);
    }),
  );
  const startedMs = cpuMs();
  for (const unit of ['a', ' ', '1', '-', 'Sun, ']) parseHttpDate(`Sunday${unit.repeat(100_000)}`);
  expect(cpuMs() - startedMs).toBeLessThan(1000);
});

test('every second is read in each of its forms', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2_145_916_799 }), (second) => {
      const timeMs = second * 1000;
      const date = new Date(timeMs);
      const [weekday = '', day = '', month = '', year = '', time = ''] = date
        .toUTCString()
        .replace(',', '')
        .split(' ');
      expect(parseHttpDate(httpDate(timeMs))).toBe(timeMs);
      expect(parseHttpDate(`${weekday}day, ${day}-${month}-${year.slice(2)} ${time} GMT`)).toBe(timeMs);
      expect(parseHttpDate(`${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`)).toBe(
        timeMs,
      );
      expect(parseHttpDate(`${day} ${month} ${year} ${time} +0000`)).toBe(timeMs);
    }),
  );
});

test('any text is a time or none, in time that grows with it alone', () => {
  const forms = [
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
  ];
  fc.assert(
    fc.property(nearly(forms, ['9', '0', ' ', ':', '-', ',', 'Feb', 'GMT', '+', '\xff']), (text) => {
      const timeMs = parseHttpDate(text);
      expect(timeMs === undefined || Number.isSafeInteger(timeMs)).toBe(true);
    }),
    { numRuns: amountOf({ short: 200, long: 1000 }) },
  );
  expectLinear(parseHttpDate, {
    pieces: [' ', 'a', '0', 'Sun, ', ':', '-'],
    starts: ['', 'Sun', 'Sun, ', 'Sunday, 06-'],
  });
});
