import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareBytes, utf8 } from '../../base/bytes/bytes.ts';
import type { BucketId, ObjectKey, UploadId } from '../../types/names.ts';
import { escapedKey, unescapeKey } from './key-parts.ts';
import {
  currentRow,
  partRange,
  partRow,
  readVersionPosition,
  TABLES,
  uploadRow,
  versionPosition,
  versionRow,
} from './keyspace.ts';

const BUCKET = 'b000000000000001' as BucketId;
const keyArbitrary = fc
  .array(fc.constantFrom('a', 'b', '\u0000', '\u0001', 'é', '😀'), { minLength: 1, maxLength: 6 })
  .map((letters) => letters.join('') as ObjectKey);

test('tables have numbers of their own, below the engine’s', () => {
  const ids = Object.values(TABLES).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(Math.max(...ids)).toBeLessThan(0xf0);
});

test('escaped keys order as keys do, with what follows them, and come back', () => {
  const property = fc.property(keyArbitrary, keyArbitrary, (a, b) => {
    expect(unescapeKey(escapedKey(a), 0)).toEqual({ key: a, end: escapedKey(a).length });
    const order = Math.sign(compareBytes(utf8(a), utf8(b)));
    expect(Math.sign(compareBytes(escapedKey(a), escapedKey(b)))).toBe(order);
    if (order === 0) return;
    const [newer, older] = [versionRow(BUCKET, a, 2).key, versionRow(BUCKET, b, 1).key];
    expect(Math.sign(compareBytes(newer, older))).toBe(order);
  });
  fc.assert(property);
});

test('a version has one position, wherever it lies', () => {
  const property = fc.property(keyArbitrary, fc.nat(), (key, order) => {
    const position = versionPosition(currentRow(BUCKET, key).key, order);
    expect(position).toEqual(Uint8Array.from(versionRow(BUCKET, key, order).key.subarray(1)));
    expect(readVersionPosition(position)).toEqual({ bucketId: BUCKET, key, order });
  });
  fc.assert(property);
});

test('newer versions come first', () => {
  const key = 'a' as ObjectKey;
  expect(compareBytes(versionRow(BUCKET, key, 10).key, versionRow(BUCKET, key, 9).key)).toBeLessThan(0);
});

test('an upload id that was never given out leads nowhere', () => {
  const key = 'a' as ObjectKey;
  const real = '018cc251f400'.padEnd(44, '1') as UploadId;
  for (const odd of ['', 'zz', real.toUpperCase().replace('1', 'A'), `${real}00`, '../x'] as UploadId[]) {
    expect(uploadRow(BUCKET, key, odd).key).not.toEqual(uploadRow(BUCKET, key, real).key);
    const { gte, lt } = partRange({ uploadId: odd, after: 0, limit: 1 });
    const part = partRow(real, 1).key;
    expect(compareBytes(part, gte) >= 0 && compareBytes(part, lt) < 0).toBe(false);
  }
});
