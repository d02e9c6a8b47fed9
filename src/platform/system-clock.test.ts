import { expect, test } from 'vitest';
import { systemRandom } from './system-clock.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

test('random bytes come in every size, and never repeat', () => {
  const drawn = Array.from({ length: 2000 }, (_, at) => systemRandom.bytes(8 + (at % 40)));
  expect(drawn.map((bytes) => bytes.length)).toEqual(drawn.map((_, at) => 8 + (at % 40)));
  expect(new Set(drawn.map((bytes) => hex(bytes.subarray(0, 8)))).size).toBe(drawn.length);
  expect(systemRandom.bytes(0)).toHaveLength(0);
  const large = systemRandom.bytes(10_000);
  expect(new Set(large).size).toBe(256);
});

test('random bytes are the caller’s alone', () => {
  const [one, two] = [systemRandom.bytes(32), systemRandom.bytes(32)];
  const before = hex(two);
  one.fill(0);
  expect(one.buffer).not.toBe(two.buffer);
  expect(one.buffer.byteLength).toBe(32);
  expect(hex(two)).toBe(before);
});
