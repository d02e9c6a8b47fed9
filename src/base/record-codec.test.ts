import { expect, test } from 'vitest';
import { packPlain, unpackPlain } from './record-codec.ts';

test('plain data comes back as it was, bytes as Buffers', () => {
  const plain = {
    nothing: null,
    flags: [true, false],
    numbers: [0, -1, 1.5, 2 ** 48],
    text: 'ä',
    bytes: Buffer.from([0, 255]),
    missing: undefined,
  };
  expect(unpackPlain(packPlain(plain))).toEqual(plain);
});

test.each([0x42, 0x62, 0x65, 0x69, 0x70, 0x73, 0x74, 0x78, 0xff])(
  'an extension of type %i is refused: it is no plain data',
  (type) => {
    // An extension of one byte.
    expect(() => unpackPlain(Buffer.of(0xd4, type, 0x01))).toThrow();
    // One with an array behind its id, as a part that others refer to has.
    expect(() => unpackPlain(Buffer.of(0xd6, type, 0, 0, 0, 1, 0x90))).toThrow();
  },
);
