import fc from 'fast-check';
import { expect, test } from 'vitest';
import { multipartETag } from './etag.ts';
import { LIMITS } from './limits.ts';
import {
  areSound,
  composedETag,
  countOriginals,
  isPacked,
  joinOriginals,
  NO_ORIGINALS,
  type Original,
  type Originals,
  packOriginals,
  unpackOriginals,
} from './originals.ts';

const original = fc.record({
  sizeBytes: fc.integer({ min: 0, max: 5 * 2 ** 40 }),
  md5: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString('hex')),
});
const originals = fc.array(original, { maxLength: 40 });

test('packing and unpacking keeps them and their number', () => {
  fc.assert(
    fc.property(originals, (some) => {
      const packed = packOriginals(...some);
      expect(unpackOriginals(packed)).toEqual(some);
      expect(countOriginals(packed)).toBe(some.length);
      expect(areSound(packed)).toBe(true);
    }),
  );
  expect(unpackOriginals(NO_ORIGINALS)).toEqual([]);
});

test('their ETag is that of parts with these MD5s', () => {
  fc.assert(
    fc.property(originals, (some) => {
      expect(composedETag(packOriginals(...some))).toBe(multipartETag(some.map(({ md5 }) => md5)));
    }),
  );
});

test('joined lists have each of them in order, or what continues many', () => {
  fc.assert(
    fc.property(fc.array(originals, { maxLength: 8 }), (groups) => {
      const all: Original[] = groups.flat();
      const joined = groups.reduce<Originals>(
        (before, group) => joinOriginals(before, packOriginals(...group)),
        NO_ORIGINALS,
      );
      expect(joinOriginals(NO_ORIGINALS, ...groups.map((group) => packOriginals(...group)))).toEqual(joined);
      expect(countOriginals(joined)).toBe(all.length);
      expect(composedETag(joined)).toBe(multipartETag(all.map(({ md5 }) => md5)));
      expect(areSound(joined)).toBe(true);
      expect(isPacked(joined)).toBe(all.length <= LIMITS.composeOriginalsMax);
      if (isPacked(joined)) expect(unpackOriginals(joined)).toEqual(all);
      else {
        expect(unpackOriginals(joined)).toBeUndefined();
        const charged = all.map(({ sizeBytes }) => Math.max(sizeBytes, LIMITS.chargedBytesMin));
        expect(joined.chargedBytes).toBe(charged.reduce((sum, bytes) => sum + bytes, 0));
      }
    }),
  );
});
