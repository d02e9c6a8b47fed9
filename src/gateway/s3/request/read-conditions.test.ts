import fc from 'fast-check';
import { expect, test } from 'vitest';
import { expectLinear, nearly } from '../../../../tests/support/run/properties.ts';
import { httpDate } from '../../../base/text/http-dates.ts';
import { isRangeStillWanted, judgeRead } from './read-conditions.ts';

const ETAG = '5d41402abc4b2a76b9719d911017c592';
const MODIFIED = 'Sun, 06 Nov 1994 08:49:37 GMT';
const NOW = Date.UTC(2020, 0, 1);
const BEFORE = 'Sun, 06 Nov 1994 08:49:36 GMT';
const validators = { etag: ETAG, modifiedAtMs: Date.UTC(1994, 10, 6, 8, 49, 37, 500) };

test.each([
  ['no condition', {}, 'met'],
  ['If-Match: the ETag', { 'if-match': `"${ETAG}"` }, 'met'],
  ['If-Match: without quotes', { 'if-match': ETAG }, 'met'],
  ['If-Match: *', { 'if-match': '*' }, 'met'],
  ['If-Match: in a list', { 'if-match': `"a", "${ETAG}"` }, 'met'],
  ['If-Match: another', { 'if-match': '"a"' }, 'precondition-failed'],
  ['If-Match: weak', { 'if-match': `W/"${ETAG}"` }, 'precondition-failed'],
  ['If-None-Match: the ETag', { 'if-none-match': `"${ETAG}"` }, 'not-modified'],
  ['If-None-Match: weak', { 'if-none-match': `W/"${ETAG}"` }, 'not-modified'],
  ['If-None-Match: *', { 'if-none-match': '*' }, 'not-modified'],
  ['If-None-Match: another', { 'if-none-match': '"a"' }, 'met'],
  ['If-Modified-Since: the time', { 'if-modified-since': MODIFIED }, 'not-modified'],
  ['If-Modified-Since: earlier', { 'if-modified-since': BEFORE }, 'met'],
  ['If-Modified-Since: now', { 'if-modified-since': httpDate(NOW) }, 'not-modified'],
  ['If-Modified-Since: in the future is ignored', { 'if-modified-since': httpDate(NOW + 1000) }, 'met'],
  ['If-Modified-Since: no date', { 'if-modified-since': 'soon' }, 'met'],
  ['If-Unmodified-Since: the time', { 'if-unmodified-since': MODIFIED }, 'met'],
  ['If-Unmodified-Since: earlier', { 'if-unmodified-since': BEFORE }, 'precondition-failed'],
  ['If-Unmodified-Since: no date', { 'if-unmodified-since': 'soon' }, 'met'],
  [
    'If-Match outranks If-Unmodified-Since',
    { 'if-match': `"${ETAG}"`, 'if-unmodified-since': BEFORE },
    'met',
  ],
  [
    'If-None-Match outranks If-Modified-Since',
    { 'if-none-match': '"a"', 'if-modified-since': MODIFIED },
    'met',
  ],
  [
    'If-Match is decided before If-None-Match',
    { 'if-match': '"a"', 'if-none-match': `"${ETAG}"` },
    'precondition-failed',
  ],
])('%s', (_name, headers, kind) => {
  expect(judgeRead(headers, validators, NOW).kind).toBe(kind);
});

test('the header that failed is named', () => {
  expect(judgeRead({ 'if-unmodified-since': BEFORE }, validators, NOW)).toEqual({
    kind: 'precondition-failed',
    condition: 'If-Unmodified-Since',
  });
});

test.each([
  [undefined, true],
  [`"${ETAG}"`, true],
  ['"a"', false],
  [`W/"${ETAG}"`, false],
  [MODIFIED, true],
  [BEFORE, false],
])('If-Range: %s', (ifRange, isWanted) => {
  expect(isRangeStillWanted(ifRange, validators)).toBe(isWanted);
});

test('any texts are conditions, and an ETag is found in every list that holds it', () => {
  const texts = nearly(
    [`"${ETAG}"`, `W/"a", "${ETAG}"`, MODIFIED, '*'],
    ['"', ',', ' ', 'W/', '*', 'GMT', '24', ':'],
  );
  const text = fc.option(texts, { nil: undefined });
  fc.assert(
    fc.property(text, text, text, text, (match, noneMatch, modified, unmodified) => {
      const given = { 'if-match': match, 'if-none-match': noneMatch, 'if-modified-since': modified };
      const all = Object.entries({ ...given, 'if-unmodified-since': unmodified });
      const headers = Object.fromEntries(all.filter(([, value]) => value !== undefined)) as Record<
        string,
        string
      >;
      expect(['met', 'not-modified', 'precondition-failed']).toContain(
        judgeRead(headers, validators, NOW).kind,
      );
      expect(typeof isRangeStillWanted(match, validators)).toBe('boolean');
    }),
  );
  const other = fc.string({ unit: fc.constantFrom('a', '1', ',', ' ', '-', '*') }).map((tag) => `"${tag}"`);
  fc.assert(
    fc.property(fc.array(other), fc.array(other), (before, behind) => {
      const list = [...before, `"${ETAG}"`, ...behind].join(' , ');
      expect(judgeRead({ 'if-match': list }, validators, NOW).kind).toBe('met');
      expect(judgeRead({ 'if-none-match': list }, validators, NOW).kind).toBe('not-modified');
    }),
  );
});

test('a long list takes time in proportion to its length', () => {
  const pieces = ['"', ',', ' ', 'W/', 'W/"', '"a"', '"a",', 'a', '* '];
  expectLinear((text) => judgeRead({ 'if-match': text }, validators, NOW), {
    pieces,
    starts: ['', '"', 'W/'],
  });
  expectLinear((text) => judgeRead({ 'if-modified-since': text }, validators, NOW), {
    pieces: [' ', '0', 'Sun, ', ':'],
  });
});
