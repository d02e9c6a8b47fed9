import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cpuMs } from '../../../../tests/support/run/cpu-time.ts';
import { AppError } from '../../../types/errors.ts';
import { parseDeleteConditions, parseWriteConditions } from './write-conditions.ts';

test.each([
  [{}, undefined],
  [{ 'if-match': '"x"' }, { ifMatch: ['x'] }],
  [{ 'if-match': 'x' }, { ifMatch: ['x'] }],
  [{ 'if-match': ' * ' }, { ifMatch: '*' }],
  [{ 'if-match': '"*"' }, { ifMatch: ['*'] }],
  [{ 'if-match': 'W/"x"' }, { ifMatch: [] }],
  [{ 'if-match': 'W/"x", "y"' }, { ifMatch: ['y'] }],
  [{ 'if-match': '"x","y" , z' }, { ifMatch: ['x', 'y', 'z'] }],
  [{ 'if-match': ', "x",, ' }, { ifMatch: ['x'] }],
  [{ 'if-match': '"x,y"' }, { ifMatch: ['x,y'] }],
  [{ 'if-match': '""' }, { ifMatch: [''] }],
  [{ 'if-none-match': '"x"' }, { ifNoneMatch: ['x'] }],
  [{ 'if-none-match': 'W/"x", "y"' }, { ifNoneMatch: ['x', 'y'] }],
  [
    { 'if-match': '"x"', 'if-none-match': '*' },
    { ifMatch: ['x'], ifNoneMatch: '*' },
  ],
])('of a write: %j', (headers, conditions) => {
  expect(parseWriteConditions(headers as Record<string, string>)).toEqual(conditions);
});

test('conditions of a delete', () => {
  const headers = {
    'if-match': '"x"',
    'x-amz-if-match-last-modified-time': 'Sun, 06 Nov 1994 08:49:37 GMT',
    'x-amz-if-match-size': '0',
  };
  const ifMatchLastModifiedMs = Date.UTC(1994, 10, 6, 8, 49, 37);
  expect(parseDeleteConditions(headers)).toEqual({
    ifMatch: ['x'],
    ifMatchLastModifiedMs,
    ifMatchSizeBytes: 0,
  });
});

test.each([
  ['if-match', ''],
  ['if-match', ' , '],
  ['if-match', '*, "x"'],
  ['if-match', '"x", *'],
  ['if-match', '"x'],
  ['if-match', '"x""y"'],
  ['if-none-match', 'a b'],
  ['if-none-match', '"a" "b"'],
  ['if-none-match', '*, *'],
])('%s: %j is InvalidArgument', (name, value) => {
  try {
    parseWriteConditions({ [name]: value });
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
    expect(error).toMatchObject({
      code: 'InvalidArgument',
      fields: { ArgumentName: name, ArgumentValue: value },
    });
    return;
  }
  expect.fail('it was taken');
});

test('any text is a condition or refused, and lists are returned completely', () => {
  const piece = fc.constantFrom('"', ',', ' ', '*', 'W/', '""', '"a"', 'b', '\t', '\\');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      try {
        expect(parseWriteConditions({ 'if-match': pieces.join('') })).toHaveProperty('ifMatch');
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        expect(error.code).toBe('InvalidArgument');
      }
    }),
  );
  const tag = fc.string({ unit: fc.constantFrom('a', '1', ',', ' ', '-', '*') });
  fc.assert(
    fc.property(fc.array(tag, { minLength: 1 }), (tags) => {
      const list = tags.map((text) => `"${text}"`).join(' , ');
      expect(parseWriteConditions({ 'if-match': list })).toEqual({ ifMatch: tags });
    }),
  );
});

test.each(['"', ',', 'W/', 'x,', '"",', 'W/"', ' ,'])('a header of nothing but %j takes no time', (piece) => {
  const value = piece.repeat(20_000);
  const startedMs = cpuMs();
  try {
    parseWriteConditions({ 'if-match': `${value}x x` });
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
  }
  expect(cpuMs() - startedMs).toBeLessThan(500);
});
