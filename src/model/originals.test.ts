import fc from 'fast-check';
import { expect, test } from 'vitest';
import { multipartETag } from './etag.ts';
import {
  areFirstOf,
  composedETag,
  countOriginals,
  joinOriginals,
  NO_ORIGINALS,
  packOriginals,
  unpackOriginals,
} from './originals.ts';

const original = fc.record({
  sizeBytes: fc.integer({ min: 0, max: 5 * 2 ** 40 }),
  md5: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString('hex')),
});
const originals = fc.array(original, { maxLength: 40 });

test('packed and unpacked they are the same, and so is their number', () => {
  fc.assert(
    fc.property(originals, (some) => {
      const packed = packOriginals(...some);
      expect(unpackOriginals(packed)).toEqual(some);
      expect(countOriginals(packed)).toBe(some.length);
    }),
  );
  expect(unpackOriginals(NO_ORIGINALS)).toEqual([]);
});

test('joined they are one behind the other, and each begins with those that came first', () => {
  fc.assert(
    fc.property(originals, originals, (some, others) => {
      const [first, second] = [packOriginals(...some), packOriginals(...others)];
      const all = joinOriginals(first, second);
      expect(unpackOriginals(all)).toEqual([...some, ...others]);
      expect(areFirstOf(first, all)).toBe(true);
      expect(areFirstOf(all, first)).toBe(others.length === 0);
    }),
  );
  const [a, b] = ['a', 'b'].map((digit) => packOriginals({ sizeBytes: 1, md5: digit.repeat(32) }));
  expect(areFirstOf(a ?? NO_ORIGINALS, b ?? NO_ORIGINALS)).toBe(false);
});

test('their ETag is that of parts with these MD5s', () => {
  fc.assert(
    fc.property(originals, (some) => {
      expect(composedETag(packOriginals(...some))).toBe(multipartETag(some.map(({ md5 }) => md5)));
    }),
  );
});
