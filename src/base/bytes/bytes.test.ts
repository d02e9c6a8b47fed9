import { expect, test } from 'vitest';
import { afterPrefix, compareBytes, copyBytes, startsWithBytes } from './bytes.ts';

test('afterPrefix is above everything that begins with the prefix, and nothing else', () => {
  expect(afterPrefix(Uint8Array.of(1, 2))).toEqual(Uint8Array.of(1, 3));
  expect(afterPrefix(Uint8Array.of(1, 0xff, 0xff))).toEqual(Uint8Array.of(2));
  expect(afterPrefix(Uint8Array.of(0xff))).toBeUndefined();
  expect(afterPrefix(new Uint8Array(0))).toBeUndefined();
});

test('afterPrefix leaves a Buffer unchanged', () => {
  const prefix = Buffer.of(1, 2);
  afterPrefix(prefix);
  expect(prefix).toEqual(Buffer.of(1, 2));
});

test('bytes compare and begin as unsigned', () => {
  expect(compareBytes(Uint8Array.of(0x7f), Uint8Array.of(0x80))).toBeLessThan(0);
  expect(startsWithBytes(Uint8Array.of(1, 2, 3), Uint8Array.of(1, 2))).toBe(true);
  expect(startsWithBytes(Uint8Array.of(1), Uint8Array.of(1, 2))).toBe(false);
});

test.each([
  ['of one thread', new ArrayBuffer(200)],
  ['that threads share', new SharedArrayBuffer(200)],
])('bytes are copied into memory %s, and no others are touched', (_name, memory) => {
  const into = new Uint8Array(memory, 8, 150);
  const bytes = Uint8Array.from({ length: 150 }, (_, index) => index + 1);
  for (const [from, to, offset] of [
    [0, 150, 0],
    [3, 100, 41],
    [7, 8, 149],
    [5, 5, 150],
  ] as const) {
    new Uint8Array(memory).fill(255);
    copyBytes(into, bytes.subarray(from, to), offset);
    const expected = new Uint8Array(200).fill(255);
    expected.set(bytes.subarray(from, to), 8 + offset);
    expect(new Uint8Array(memory)).toEqual(expected);
  }
  expect(() => copyBytes(into, bytes, 1)).toThrow(RangeError);
});
