import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { expectLinear, nearly } from '../../../tests/support/run/properties.ts';
import { JsonFault, type JsonValue, placeOf, readJson } from './read-json.ts';

function plain(value: JsonValue): unknown {
  switch (value.kind) {
    case 'object':
      return Object.fromEntries([...value.members].map(([name, member]) => [name, plain(member)]));
    case 'array':
      return value.items.map(plain);
    case 'string':
      return value.text;
    case 'number':
      return Number(value.text);
    case 'boolean':
      return value.isTrue;
    case 'null':
      return null;
  }
}

test('what JSON.stringify writes is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8, stringUnit: 'binary' }), (text) => {
      expect(plain(readJson(text).value)).toEqual(JSON.parse(text));
    }),
  );
});

test('what is nearly JSON is taken or refused as JSON.parse does, but for members that are there twice', () => {
  const valid = ['{"a":[1,-2.5e+7,"x\\u0041\\n",true,false,null],"b":{}}', '[[],{"a":""}]', ' 0 '];
  const pieces = [
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '0',
    '-',
    '.',
    'e',
    'true',
    'nul',
    '\u0000',
    '\ufeff',
    ' ',
  ];
  fc.assert(
    fc.property(nearly(valid, pieces), (text) => {
      let expected: unknown;
      try {
        expected = JSON.parse(text.toWellFormed());
      } catch {
        expect(() => readJson(text)).toThrow(JsonFault);
        return;
      }
      let read: unknown;
      try {
        read = plain(readJson(text).value);
      } catch (error) {
        expect((error as Error).message).toContain('twice');
        return;
      }
      expect(read).toEqual(expected);
    }),
    { numRuns: amountOf({ short: 600, long: 3000 }) },
  );
});

test('a member that is there twice is refused, also where it is spelled in two ways', () => {
  expect(() => readJson('{"a":1,"\\u0061":2}')).toThrow('a twice');
  expect(plain(readJson('{"__proto__":1,"constructor":2}').value)).toHaveProperty('constructor', 2);
});

test('halves of surrogate pairs become U+FFFD', () => {
  expect(plain(readJson('"\\ud83d\\ude00 \\ud83d"').value)).toBe('😀 \ufffd');
});

test('depth is bounded, whatever is nested', () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    expect(() => readJson(`${open.repeat(16)}1${close.repeat(16)}`)).not.toThrow();
    expect(() => readJson(`${open.repeat(17)}1${close.repeat(17)}`)).toThrow('too deep');
    expect(() => readJson(open.repeat(1_000_000))).toThrow('too deep');
  }
});

test('places are told by line and column', () => {
  expect(placeOf('{\n  "a": x', 9)).toBe('line 2, column 8');
});

test('it takes time in proportion to the text, whatever is repeated', () => {
  expectLinear(readJson, {
    starts: ['', '[', '{', '"', '[1'],
    pieces: ['"', '\\"', '[],', '"a":1,', ' ', '0', '\\u0041', ',1', '"a",', 'é😀'],
  });
});
