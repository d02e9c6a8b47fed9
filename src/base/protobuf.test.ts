import { expect, test } from 'vitest';
import { BrokenInvariant } from './assert.ts';
import { messageCodec } from './protobuf.ts';

interface Inner {
  name: string;
}
interface Outer {
  count: number;
  id: bigint;
  isOn: boolean;
  at: number;
  bytes: Buffer;
  inner: Inner | null;
  numbers: number[];
  inners: Inner[];
}
const INNER = messageCodec<Inner>({ name: { number: 1, type: 'string' } });
const OUTER = messageCodec<Outer>({
  count: { number: 1, type: 'uint32' },
  id: { number: 2, type: 'int64' },
  isOn: { number: 3, type: 'bool' },
  at: { number: 4, type: 'double' },
  bytes: { number: 5, type: 'bytes' },
  inner: { number: 6, type: INNER },
  numbers: { number: 7, type: 'uint32', isRepeated: true },
  inners: { number: 300, type: INNER, isRepeated: true },
});
const EMPTY: Outer = {
  count: 0,
  id: 0n,
  isOn: false,
  at: 0,
  bytes: Buffer.alloc(0),
  inner: null,
  numbers: [],
  inners: [],
};

// The bytes are those of the encoding's own documentation.
test.each([
  ['nothing', {}, ''],
  ['a small number', { count: 150 }, '089601'],
  ['the largest number of 32 bits', { count: 4294967295 }, '08ffffffff0f'],
  ['a negative number of 64 bits', { id: -2n }, '10feffffffffffffffff01'],
  ['the largest number of 64 bits', { id: 2n ** 63n - 1n }, '10ffffffffffffffff7f'],
  ['true', { isOn: true }, '1801'],
  ['a fraction', { at: 1.5 }, '21000000000000f83f'],
  ['bytes', { bytes: Buffer.of(0, 255) }, '2a0200ff'],
  ['a message', { inner: { name: 'testing' } }, '32090a0774657374696e67'],
  ['an empty message', { inner: { name: '' } }, '3200'],
  ['a list of numbers', { numbers: [3, 270, 86942, 0] }, '3a07038e029ea70500'],
  ['a list of messages', { inners: [{ name: 'ä' }, { name: '' }] }, 'e212040a02c3a4e21200'],
])('%s is written, and read again', (_, part, hex) => {
  const message = { ...EMPTY, ...part };
  expect(OUTER.encode(message).toString('hex')).toBe(hex);
  expect(OUTER.decode(Buffer.from(hex, 'hex'))).toEqual(message);
});

test('a message larger than the first buffer is written', () => {
  const message = { ...EMPTY, bytes: Buffer.alloc(1000, 7), inners: [{ name: 'x'.repeat(300) }] };
  expect(OUTER.decode(OUTER.encode(message))).toEqual(message);
});

test.each([
  ['a number', '98069601'],
  ['eight bytes', '99060102030405060708'],
  ['bytes', '9a06020102'],
  ['four bytes', '9d0601020304'],
])('an unknown field with %s is passed over', (_, hex) => {
  expect(OUTER.decode(Buffer.from(`${hex}0801`, 'hex'))).toEqual({ ...EMPTY, count: 1 });
});

test('a list of numbers is read that is not packed, and the last of two fields counts', () => {
  expect(OUTER.decode(Buffer.from('38033804', 'hex')).numbers).toEqual([3, 4]);
  expect(OUTER.decode(Buffer.from('08010802', 'hex')).count).toBe(2);
});

test.each([
  ['that ends within a number', '0896'],
  ['whose bytes are not all there', '2a0500ff'],
  ['whose fraction is not all there', '210000'],
  ['with a number without end', '08ffffffffffffffffffffff'],
  ['with a long number without end', '10ffffffffffffffffffffff'],
  ['with a field of an unknown kind', '9b06'],
  ['with a field of another type', '0d01020304'],
  ['with a list of another type', '3d01020304'],
])('a message %s is refused', (_, hex) => {
  expect(() => OUTER.decode(Buffer.from(hex, 'hex'))).toThrow(BrokenInvariant);
});
