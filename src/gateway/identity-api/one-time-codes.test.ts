// Codes of MFA devices: the values of RFC 6238, which step a code is of, and the QR code.
import { expect, test } from 'vitest';
import { codeAt, findStep, seedAsPng, seedInBase32, stepAt } from './one-time-codes.ts';

/** RFC 6238, appendix B. */
const SEED = Buffer.from('12345678901234567890');

test.each([
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
])('at second %i the code ends as RFC 6238 has it', (second, digits) => {
  expect(codeAt(SEED, stepAt(second * 1000))).toBe(digits.slice(2));
});

test('a code is found within reach of the step, and not beyond', () => {
  const search = { step: 100, reach: 1, after: -1 };
  for (const step of [99, 100, 101]) expect(findStep(SEED, [codeAt(SEED, step)], search)).toBe(step);
  for (const step of [98, 102]) expect(findStep(SEED, [codeAt(SEED, step)], search)).toBeUndefined();
});

test('a code at or before the last one that was used is not found', () => {
  const code = codeAt(SEED, 100);
  expect(findStep(SEED, [code], { step: 100, reach: 1, after: 99 })).toBe(100);
  expect(findStep(SEED, [code], { step: 100, reach: 1, after: 100 })).toBeUndefined();
});

test('two codes must follow one another', () => {
  const search = { step: 100, reach: 60, after: -1 };
  expect(findStep(SEED, [codeAt(SEED, 80), codeAt(SEED, 81)], search)).toBe(81);
  expect(findStep(SEED, [codeAt(SEED, 159), codeAt(SEED, 160)], search)).toBe(160);
  expect(findStep(SEED, [codeAt(SEED, 160), codeAt(SEED, 161)], search)).toBeUndefined();
  expect(findStep(SEED, [codeAt(SEED, 81), codeAt(SEED, 80)], search)).toBeUndefined();
  expect(findStep(SEED, [codeAt(SEED, 80), codeAt(SEED, 82)], search)).toBeUndefined();
});

test.each(['', '12345', '1234567', '12345x', '１２３４５６', '      '])('%j is no code', (code) => {
  expect(findStep(SEED, [code], { step: 0, reach: 1, after: -1 })).toBeUndefined();
});

test('the seed is shown in Base32 and as a PNG', () => {
  expect(seedInBase32(SEED)).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
  // A view of a larger buffer: only the view is the seed.
  expect(seedInBase32(Buffer.concat([SEED, SEED]).subarray(20))).toBe(seedInBase32(SEED));
  const png = seedAsPng(SEED, { deviceName: 'a'.repeat(226), accountName: 'b'.repeat(128) });
  expect(Buffer.from(png.subarray(0, 8)).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
});
