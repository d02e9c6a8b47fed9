import fc from 'fast-check';
import { expect, test } from 'vitest';
import { expectLinear, nearly } from '../../../../tests/support/run/properties.ts';
import { contentRange, parseCopyRange, resolveRange } from './ranges.ts';

test.each([
  ['bytes=0-0', 0, 1],
  ['bytes=0-4', 0, 5],
  ['bytes=3-', 3, 7],
  ['bytes=9-9', 9, 1],
  ['bytes=5-1000', 5, 5],
  ['bytes=5-99999999999999999999999999', 5, 5],
  ['bytes=-3', 7, 3],
  ['bytes=-1000', 0, 10],
  ['Bytes=1-2', 1, 2],
])('%s of ten bytes', (header, offsetBytes, sizeBytes) => {
  expect(resolveRange(header, 10)).toEqual({ kind: 'range', range: { offsetBytes, sizeBytes } });
});

test.each(['bytes=0-1,3-4', 'bytes=5-4', 'bytes=-', 'bytes=a-b', 'items=0-1', 'bytes 0-1', '', 'bytes=1'])(
  '%j asks for the whole',
  (header) => {
    expect(resolveRange(header, 10)).toEqual({ kind: 'whole' });
  },
);

test.each(['bytes=10-', 'bytes=10-12', 'bytes=-0', 'bytes=99999999999999999999-'])(
  '%s cannot be satisfied',
  (header) => {
    expect(resolveRange(header, 10)).toEqual({ kind: 'unsatisfiable' });
  },
);

test('an empty object satisfies no range', () => {
  expect(resolveRange('bytes=0-', 0)).toEqual({ kind: 'unsatisfiable' });
  expect(resolveRange('bytes=-1', 0)).toEqual({ kind: 'whole' });
  expect(resolveRange('bytes=-0', 0)).toEqual({ kind: 'unsatisfiable' });
});

test('a copy range has both ends', () => {
  expect(parseCopyRange('bytes=0-9')).toEqual({ offsetBytes: 0, sizeBytes: 10 });
  for (const header of [
    'bytes=0-',
    'bytes=-3',
    'bytes=9-0',
    '0-9',
    'bytes=0-9,11-12',
    'bytes=0-9007199254740993',
  ])
    expect(parseCopyRange(header)).toBeUndefined();
});

test('Content-Range counts the last byte in', () => {
  expect(contentRange({ offsetBytes: 0, sizeBytes: 5 }, 10)).toBe('bytes 0-4/10');
});

test('a range is the bytes that it names, of an object of any size', () => {
  const place = fc.nat({ max: 40 });
  fc.assert(
    fc.property(place, place, fc.nat({ max: 30 }), (first, last, sizeBytes) => {
      const bytes = Array.from({ length: sizeBytes }, (_, at) => at);
      const named = (header: string) => {
        const outcome = resolveRange(header, sizeBytes);
        if (outcome.kind !== 'range') return outcome.kind;
        const { offsetBytes, sizeBytes: length } = outcome.range;
        return bytes.slice(offsetBytes, offsetBytes + length);
      };
      const from = bytes.slice(first);
      expect(named(`bytes=${first}-`)).toEqual(from.length === 0 ? 'unsatisfiable' : from);
      const suffix = last === 0 ? [] : bytes.slice(-last);
      const ofNothing = last === 0 ? 'unsatisfiable' : 'whole';
      expect(named(`bytes=-${last}`)).toEqual(suffix.length === 0 ? ofNothing : suffix);
      const between = bytes.slice(first, last + 1);
      const wanted = last < first ? 'whole' : between.length === 0 ? 'unsatisfiable' : between;
      expect(named(` bytes= ${first} - ${last} `.trim())).toEqual(wanted);
    }),
  );
});

test('any text is a range within the object, or none', () => {
  const texts = nearly(
    ['bytes=0-4', 'bytes=-3', 'bytes=5-'],
    ['-', '=', ',', ' ', '9'.repeat(20), 'bytes', '+', '.'],
  );
  fc.assert(
    fc.property(texts, fc.nat(), (text, sizeBytes) => {
      const outcome = resolveRange(text, sizeBytes);
      if (outcome.kind === 'range') {
        const { offsetBytes, sizeBytes: length } = outcome.range;
        expect(length).toBeGreaterThan(0);
        expect(offsetBytes + length).toBeLessThanOrEqual(sizeBytes);
      }
      const copied = parseCopyRange(text);
      if (copied !== undefined) expect(copied.sizeBytes).toBeGreaterThan(0);
    }),
  );
});

test('a long header takes time in proportion to its length', () => {
  const pieces = [' ', '1', '-', '1 ', ',', '=', '\t'];
  const starts = ['', 'bytes=', 'bytes=1', 'bytes=-', 'bytes=1-1'];
  expectLinear((text) => resolveRange(text, 10), { pieces, starts });
  expectLinear(parseCopyRange, { pieces, starts });
});
