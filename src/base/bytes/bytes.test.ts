import { expect, test } from 'vitest';
import { afterPrefix, compareBytes, startsWithBytes } from './bytes.ts';

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
