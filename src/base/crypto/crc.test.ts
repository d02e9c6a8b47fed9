import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toHex } from '../bytes/bytes.ts';
import { type CrcAlgorithm, crcCombine, crcOf, createCrc } from './crc.ts';

const ALGORITHMS: CrcAlgorithm[] = ['CRC32', 'CRC32C', 'CRC64NVME'];
const CHECK_INPUT = Buffer.from('123456789');

describe.each([
  ['CRC32', 'cbf43926', '00000000'],
  ['CRC32C', 'e3069283', '00000000'],
  ['CRC64NVME', 'ae8b14860a799888', '0000000000000000'],
] as const)('%s', (algorithm, check, empty) => {
  test('gives the check value of its definition', () => {
    expect(toHex(crcOf(algorithm, CHECK_INPUT))).toBe(check);
  });

  test('is zero for no bytes', () => {
    expect(toHex(crcOf(algorithm, new Uint8Array(0)))).toBe(empty);
  });

  test('does not depend on how the input is cut or aligned', () => {
    const whole = randomBytes(5000);
    const expected = bitwise(algorithm, whole);
    fc.assert(
      fc.property(fc.nat(5000), fc.nat(5000), fc.nat(7), (left, right, shift) => {
        const shifted = new Uint8Array(whole.length + 8).subarray(shift, shift + whole.length);
        shifted.set(whole);
        const [from, to] = [Math.min(left, right), Math.max(left, right)];
        const crc = createCrc(algorithm);
        for (const piece of [shifted.subarray(0, from), shifted.subarray(from, to), shifted.subarray(to)])
          crc.update(piece);
        expect(toHex(crc.digest())).toBe(expected);
      }),
      { numRuns: 60 },
    );
  });

  test('of two neighbours combines to that of the whole', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (a, b) => {
        const combined = crcCombine(algorithm, crcOf(algorithm, a), crcOf(algorithm, b), b.length);
        expect(toHex(combined)).toBe(toHex(crcOf(algorithm, Buffer.concat([a, b]))));
      }),
    );
  });

  test('combines over sizes beyond 32 bits: doubling equals one long step', () => {
    let value = crcOf(algorithm, CHECK_INPUT);
    let sizeBytes = CHECK_INPUT.length;
    const zero = new Uint8Array(value.length);
    const once = crcCombine(algorithm, value, zero, sizeBytes * (2 ** 38 - 1));
    for (let k = 0; k < 38; k++) {
      value = crcCombine(algorithm, value, zero, sizeBytes);
      sizeBytes *= 2;
    }
    expect(toHex(value)).toBe(toHex(once));
  });
});

test('CRC32 is that of zlib', () => {
  const bytes = randomBytes(1000);
  expect(Buffer.from(crcOf('CRC32', bytes)).readUInt32BE()).toBe(crc32(bytes));
});

test('refuses to combine values of another width', () => {
  for (const algorithm of ALGORITHMS)
    expect(() => crcCombine(algorithm, new Uint8Array(5), new Uint8Array(5), 1)).toThrow('bytes');
});

/** The definition, bit by bit. */
function bitwise(algorithm: CrcAlgorithm, bytes: Uint8Array): string {
  const width = algorithm === 'CRC64NVME' ? 64n : 32n;
  const polynomial = { CRC32: 0xedb88320n, CRC32C: 0x82f63b78n, CRC64NVME: 0x9a6c9329ac4bc9b5n }[algorithm];
  const ones = (1n << width) - 1n;
  let register = ones;
  for (const byte of bytes) {
    register ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++)
      register = register & 1n ? (register >> 1n) ^ polynomial : register >> 1n;
  }
  return (register ^ ones).toString(16).padStart(Number(width) / 4, '0');
}
