import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nearly, outcomeOf } from '../../../../tests/support/run/properties.ts';
import { AppError } from '../../../types/errors.ts';
import { makeUploadId, makeVersionId } from '../../../types/names.ts';
import {
  parseCount,
  parseEncodingType,
  parseNumberMarker,
  parsePartNumber,
  parseUploadId,
  parseVersionId,
} from './arguments.ts';

const query = (text: string) => new Map(new URLSearchParams(text));

function refusal(run: () => unknown): Pick<AppError, 'code' | 'message' | 'fields'> {
  try {
    run();
  } catch (error) {
    if (error instanceof AppError) return { code: error.code, message: error.message, fields: error.fields };
  }
  throw new Error('was not refused');
}

test('counts are clamped and default to the most', () => {
  const maxKeys = (text: string) => parseCount(query(text), { name: 'max-keys', most: 1000 });
  expect(maxKeys('')).toBe(1000);
  expect(maxKeys('max-keys=')).toBe(1000);
  expect(maxKeys('max-keys=0')).toBe(0);
  expect(maxKeys('max-keys=7')).toBe(7);
  expect(maxKeys('max-keys=2147483647')).toBe(1000);
});

test.each([
  ['abc', 'Provided max-keys not an integer or within integer range'],
  ['1.5', 'Provided max-keys not an integer or within integer range'],
  ['1e3', 'Provided max-keys not an integer or within integer range'],
  ['2147483648', 'Provided max-keys not an integer or within integer range'],
  ['-1', 'Argument max-keys must be an integer between 0 and 2147483647'],
])('max-keys=%s is refused', (value, message) => {
  expect(refusal(() => parseCount(query(`max-keys=${value}`), { name: 'max-keys', most: 1000 }))).toEqual({
    code: 'InvalidArgument',
    message,
    fields: { ArgumentName: 'max-keys', ArgumentValue: value },
  });
});

test('number markers begin at 0', () => {
  expect(parseNumberMarker(query(''), 'part-number-marker')).toBe(0);
  expect(parseNumberMarker(query('part-number-marker=12'), 'part-number-marker')).toBe(12);
});

test('encoding-type is url or nothing', () => {
  expect(parseEncodingType(query(''))).toBe(false);
  expect(parseEncodingType(query('encoding-type=url'))).toBe(true);
  expect(refusal(() => parseEncodingType(query('encoding-type=base64'))).fields).toEqual({
    ArgumentName: 'encoding-type',
    ArgumentValue: 'base64',
  });
});

test('version ids are ours or refused', () => {
  const id = makeVersionId(new Uint8Array(24).fill(255));
  expect(parseVersionId(undefined)).toBeUndefined();
  expect(parseVersionId('null')).toBe('null');
  expect(parseVersionId(id)).toBe(id);
  expect(refusal(() => parseVersionId('')).message).toBe('Version id cannot be the empty string');
  expect(refusal(() => parseVersionId('x y')).message).toBe('Invalid version id specified');
});

test('upload ids are ours or unknown', () => {
  const id = makeUploadId({ timeMs: Date.now(), random: new Uint8Array(16) });
  expect(parseUploadId(id)).toBe(id);
  expect(refusal(() => parseUploadId('../x')).code).toBe('NoSuchUpload');
  expect(refusal(() => parseUploadId('')).code).toBe('NoSuchUpload');
});

test('part numbers are 1 to 10,000', () => {
  expect(parsePartNumber('1')).toBe(1);
  expect(parsePartNumber('10000')).toBe(10000);
  for (const text of ['0', '10001', '-1', '', 'one', '1.0'])
    expect(refusal(() => parsePartNumber(text)).code).toBe('InvalidArgument');
});

test('any text is an argument within its bounds, or refused', () => {
  const texts = nearly(
    ['0', '1', '1000', '2147483647', '+7', 'null', '0'.repeat(44), 'A'.repeat(32)],
    ['-', '+', '.', 'e', '9', ' ', '0x', '\n'],
  );
  const within = (outcome: { value: number } | { code: string }, range: { least: number; most: number }) => {
    if ('code' in outcome) return expect(outcome.code).toBe('InvalidArgument');
    expect(Number.isInteger(outcome.value)).toBe(true);
    expect(outcome.value).toBeGreaterThanOrEqual(range.least);
    expect(outcome.value).toBeLessThanOrEqual(range.most);
  };
  fc.assert(
    fc.property(texts, (text) => {
      const named = new Map([['max-keys', text]]);
      within(
        outcomeOf(() => parseCount(named, { name: 'max-keys', most: 1000 })),
        { least: 0, most: 1000 },
      );
      within(
        outcomeOf(() => parseNumberMarker(named, 'max-keys')),
        { least: 0, most: 2 ** 31 - 1 },
      );
      within(
        outcomeOf(() => parsePartNumber(text)),
        { least: 1, most: 10_000 },
      );
      for (const parse of [parseVersionId, parseUploadId]) {
        const outcome = outcomeOf(() => parse(text));
        if ('value' in outcome) expect(outcome.value).toBe(text);
      }
      outcomeOf(() => parseEncodingType(new Map([['encoding-type', text]])));
    }),
  );
});
