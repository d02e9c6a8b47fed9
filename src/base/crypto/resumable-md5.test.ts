import { hash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { digestOfMd5, extendMd5, MD5_BEGUN } from './resumable-md5.ts';

test('resumed anywhere, it gives the same digest as in one go', () => {
  const part = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      let state = MD5_BEGUN;
      let whole = Buffer.alloc(0);
      expect(digestOfMd5(state, 0)).toBe(hash('md5', whole));
      for (const bytes of parts) {
        state = extendMd5(state, bytes);
        whole = Buffer.concat([whole, bytes]);
        expect(digestOfMd5(state, whole.length)).toBe(hash('md5', whole));
      }
    }),
    { numRuns: amountOf({ short: 60, long: 300 }) },
  );
});

test('is correct for every length around the end of a block', () => {
  for (let length = 0; length <= 200; length++) {
    const bytes = Buffer.alloc(length, length);
    expect(digestOfMd5(extendMd5(MD5_BEGUN, bytes), length)).toBe(hash('md5', bytes));
  }
});

test('a saved state is not changed by its continuation', () => {
  const begun = extendMd5(MD5_BEGUN, Buffer.from('one'));
  const before = Buffer.from(begun).toString('hex');
  extendMd5(begun, Buffer.alloc(300, 'two'));
  digestOfMd5(begun, 3);
  expect(Buffer.from(begun).toString('hex')).toBe(before);
});
