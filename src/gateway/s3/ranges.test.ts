import { expect, test } from 'vitest';
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
  expect(resolveRange('bytes=-1', 0)).toEqual({ kind: 'unsatisfiable' });
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
